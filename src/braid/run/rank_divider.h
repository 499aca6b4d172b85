#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/run/stage_sharding.h"

namespace braid {

/// Writes what one rank of those that share a replica's work computes of a stage, node by node:
/// operands are brought into the form that the operator wants, then the node's rule says how its
/// result lies.
class RankDivider {
 public:
  /// `stage` outlives it.
  RankDivider(const StageToShard& stage, int rank);

  /// Writes a segment's nodes. Exchanges are done once for all readers of a segment.
  void add_segment(const std::vector<NodeId>& nodes);
  /// Holds stored tensors of which all nodes take the same part as that part; the nodes of each
  /// segment, as they are then.
  std::vector<std::vector<NodeId>> hold_parts();

  std::vector<ValueLayout> layouts() const;  ///< By value of the model.
  RankProgram take() { return std::move(result_); }

 private:
  /// What an operator wants of a value.
  enum class Form : std::uint8_t {
    whole,    ///< All of it, for work that each rank does alike.
    share,    ///< All of it, for work that is sharded: its gradient is summed.
    rows,     ///< By rows, under sequence or context parallelism.
    sharded,  ///< By the last dimension.
    as_is,
  };

  void add(NodeId node);
  void add_stored(const ProgramNode& node);
  Form form_for(const ProgramNode& node) const;
  Form form_of_rows(const ProgramNode& node) const;
  /// Whether the operator's table or logits are sharded by entries.
  bool is_by_entries() const { return stage_.cp == 1 && op_->split == Split::vocab; }
  bool works_by_rows() const;
  bool can_be_rows(const Shape& shape) const;
  ValueId in_form(ValueId value, Form form);
  ValueId exchanged(ValueId value, const std::string& operation, const ValueLayout& layout,
                    const ValueLayout& result);
  ValueId gathered(ValueId value, bool is_share);
  ValueId taken(ValueId value, const ValueLayout& layout);
  /// A part of a stored tensor, or of what is computed from stored ones alone.
  ValueId taken_stored(ValueId value, std::int32_t axis, std::vector<Interval> held);
  ValueId of_first(ValueId value);

  // Rules. Each writes the node with these operands, and its result's shape and layout.
  void add_unsharded(ProgramNode node);
  void add_product(ProgramNode node);
  void add_product_of_two(ProgramNode node, const ValueLayout& layout);
  void add_lookup(ProgramNode node);
  void add_experts(ProgramNode node);
  void add_elementwise(ProgramNode node);
  void add_reshape(ProgramNode node);
  void add_transpose(ProgramNode node);
  void add_slice(ProgramNode node);
  void add_concat(ProgramNode node);
  void add_along(ProgramNode node);  ///< Softmax, norms, sums: along other dimensions.
  void finish(ProgramNode node, Shape shape, ValueLayout layout);
  /// The same of partial sums, which are summed.
  void finish_partial(ProgramNode node, Shape shape);

  /// Shape of a node's result where it is not sharded; empty where it is not known.
  Shape shape_of(const ProgramNode& node) const;
  std::vector<std::int64_t> constant(ValueId value) const;
  ValueId integers(const std::vector<std::int64_t>& numbers);
  ValueId new_value(const std::string& name, Shape shape, ValueLayout layout, bool varies);
  const Shape& shape(ValueId value) const { return shapes_[at(value)]; }
  const ValueLayout& layout(ValueId value) const { return layouts_[at(value)]; }
  bool is_stored(ValueId value) const { return value >= 0 && !varies_[at(value)]; }
  bool is_sharded(ValueId value) const { return !is_stored(value) && !layout(value).is_whole(); }
  [[noreturn]] void refuse(const std::string& what) const;

  const StageToShard& stage_;
  const LayeredProgram& model_;
  int rank_;
  RankProgram result_;
  std::vector<Shape> shapes_;         ///< By value: of all ranks together.
  std::vector<ValueLayout> layouts_;  ///< By value.
  std::vector<bool> varies_;          ///< By value: sample_values().
  std::vector<bool> trained_;         ///< By value: depends on a parameter.
  std::vector<OperatorId> writer_;    ///< By value of the model; -1: none.
  std::vector<std::vector<NodeId>> segments_;
  const Operator* op_ = nullptr;
  OperatorId op_id_ = -1;
  // Of this segment.
  std::map<std::pair<ValueId, Form>, ValueId> in_form_;
  std::map<std::tuple<ValueId, std::int32_t, std::vector<std::int64_t>>, ValueId> taken_;
  std::map<ValueId, ValueId> of_first_;
};

}  // namespace braid
