#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "braid/trainers/pytorch/model_facts.h"
#include "braid/trainers/pytorch/python_text.h"

namespace braid {

/// A value that an operator takes apart along its last dimension before anything else.
struct ValueSplit {
  ValueId source = -1;
  std::vector<ValueId> parts;
  std::vector<std::string> names;  ///< For the parts: q, k and v; gate and up.
  std::vector<std::int64_t> widths;
};
std::vector<ValueSplit> splits_of(const ModelFacts& facts, const std::vector<NodeId>& nodes);

/// What the operators of a layer need beside their expressions.
struct OperatorParts {
  std::map<std::string, ValueId> parameters;
  std::set<std::string> helpers;
  bool attends = false;
};

/// Writes operators as expressions, and what they keep as members of their layer's module. A value
/// has a dimension for samples in front.
class OperatorWriter {
 public:
  OperatorWriter(const ModelFacts& facts, std::string layer, bool recomputes_attention);

  /// The variable that has a value.
  void set(ValueId id, const std::string& name);
  /// The right side of "q, k, v = …".
  std::string split(const ValueSplit& split, const std::vector<std::string>& names);
  /// Of all nodes of an operator. Throws Error, naming the operator, for what is not written.
  std::string expression(OperatorId op);

  const std::vector<std::string>& members() const { return members_; }
  bool takes_recomputation() const { return recomputes_attention_ && parts_.attends; }
  OperatorParts take() { return std::move(parts_); }

 private:
  struct Term {
    std::string text;
    Shape shape = {};    ///< Of a sample.
    bool varies = true;  ///< From sample to sample; else it has no dimension for samples.
    bool is_atom = true;
    int dropped = 0;  ///< Dimensions of the program's shape that are left out in front.
  };
  using Write = Term (OperatorWriter::*)(const ProgramNode&);
  static const std::map<std::string, Write, std::less<>>& writers();

  [[noreturn]] void refuse(const ProgramNode& node, const std::string& why) const;
  const Term& term(ValueId id);
  Term stored(ValueId id);
  /// A member that is a module; its name.
  std::string member(const std::string& module);
  void keep(const std::string& member, const char* leaf, ValueId id);
  std::string factor(ValueId id);  ///< In brackets where it is a sum.
  std::string widened(ValueId id, std::size_t rank);
  std::size_t dimension(const Term& of, std::int64_t axis) const;
  /// The node that follows adds a row of weights to the result alone.
  bool is_biased(const ProgramNode& node) const;

  Term pointwise(const ProgramNode& node);
  Term binary(const ProgramNode& node);
  Term product(const ProgramNode& node);
  Term linear(const ProgramNode& node, bool turned);
  Term gemm(const ProgramNode& node);
  Term reshape(const ProgramNode& node);
  Term transpose(const ProgramNode& node);
  Term slice(const ProgramNode& node);
  Term concat(const ProgramNode& node);
  Term gather(const ProgramNode& node);
  Term reduce(const ProgramNode& node);
  Term softmax(const ProgramNode& node);
  Term normalization(const ProgramNode& node);
  Term batch_normalization(const ProgramNode& node);
  Term convolution(const ProgramNode& node);
  Term max_pool(const ProgramNode& node);
  Term average_pool(const ProgramNode& node);
  Term experts(const ProgramNode& node);
  Term attention(const ProgramNode& node);

  const ModelFacts& facts_;
  std::string layer_;
  bool recomputes_attention_;
  PythonNames names_;  ///< Of members.
  std::vector<std::string> members_;
  std::map<ValueId, Term> terms_;
  std::map<ValueId, std::string> own_;  ///< Weights that are members themselves.
  OperatorParts parts_;
  std::string op_name_;
  const ProgramNode* next_ = nullptr;  ///< Of the same operator, behind the one being written.
  bool took_next_ = false;
};

}  // namespace braid
