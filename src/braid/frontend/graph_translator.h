#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/frontend/graph_program.h"
#include "braid/graph/graph.h"
#include "braid/program/program_builder.h"

namespace braid {

/// Writes the operators of a graph as nodes of a program, one after the other. Feature maps
/// [channels × height × width] of a single sample get a dimension for samples in front.
class GraphTranslator {
 public:
  /// `with_experts`: they are written by the operation of kBraidDomain, else refused.
  GraphTranslator(const Graph& graph, bool with_experts,
                  AttentionForm attention = AttentionForm::written_out);
  LayeredProgram program();

 private:
  struct Written {
    ValueId value = -1;
    Shape shape;
  };

  /// Values that operators' tensors became, as LayeredProgram has them.
  void list_values(LayeredProgram& result) const;

  void add(const Operator& op);
  // Each is what an operator of that kind computes.
  Written result(const MatMul& kind);
  Written result(const Attention& kind);
  Written result(const Convolution& kind);
  Written result(const Normalization& kind);
  Written result(const Softmax& kind);
  Written result(const Elementwise& kind);
  Written result(const Embedding& kind);
  Written result(const Reduction& kind);
  Written result(const DataMovement& kind);
  Written result(const Recurrent& kind);
  Written result(const MoeRouter& kind);
  Written result(const MoeExperts& kind);
  Written result(const Loss& kind);
  Written result(const OptimizerStep& kind);

  Written one_operand(const Elementwise& kind);
  Written two_operands();
  Written gated();
  Written normalized_channels(const Written& x);
  Written joined();
  /// Q, K or V as [samples · heads × length × width].
  struct HeadsOf {
    std::int64_t samples, heads, length, width;
  };
  Written heads(ValueId x, const HeadsOf& of, bool transposed);
  std::vector<ValueId> queries_keys_values(const Attention& kind);
  Written mask(const Attention& kind);
  Written whole_attention(const Attention& kind);
  /// How many operands are queries, keys and values: all, but for a table of relative positions.
  std::size_t attended_operands();
  Written relative_table(const Attention& kind);
  /// What relative positions add to the scores of each head: [heads × q_len × kv_len].
  Written relative_bias(const Attention& kind);

  [[noreturn]] void refuse(const std::string& why) const;
  const Written& operand(std::size_t number);
  std::size_t operands() const { return op_->inputs.size(); }
  bool is_parameter(std::size_t operand) const;
  const Tensor& output() const;
  Shape output_shape() const;
  ValueId node(const std::string& operation, std::vector<ValueId> inputs,
               std::vector<Attribute> attributes = {}, const std::string& domain = "");
  ValueId reshaped(ValueId x, const Shape& shape);
  ValueId sliced(ValueId x, std::int64_t axis, std::int64_t first, std::int64_t last);

  const Graph& graph_;
  bool with_experts_;
  AttentionForm attention_;
  ProgramBuilder builder_;
  std::vector<Written> written_;  ///< By tensor.
  const Operator* op_ = nullptr;  ///< Being written.
  std::int64_t nodes_of_op_ = 0;
  std::vector<OperatorId> op_of_node_;
  std::map<ValueId, ValueId> places_in_table_;  ///< Of relative positions, by their table.
};

}  // namespace braid
