#include "braid/run/rank_divider.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/program/numbers.h"
#include "braid/run/column_layout.h"

namespace braid {
namespace {

bool is_binary(std::string_view operation) {
  return operation == "Add" || operation == "Sub" || operation == "Mul" || operation == "Div";
}

bool is_function(std::string_view operation) {
  return operation == "Relu" || operation == "Gelu" || operation == "Swish" ||
         operation == "Tanh" || operation == "Sigmoid";
}

bool is_along(std::string_view operation) {
  return operation == "Softmax" || operation == "LayerNormalization" ||
         operation == "RMSNormalization" || operation == "ReduceSum" || operation == "ReduceMean";
}

}  // namespace

RankDivider::RankDivider(const StageToShard& stage, int rank)
    : stage_(stage), model_(*stage.model), rank_(rank), shapes_(model_.shapes) {
  const Program& program = model_.program;
  result_.program = program;
  result_.program.nodes.clear();
  layouts_.resize(program.values.size());
  varies_ = sample_values(program);
  trained_.resize(program.values.size(), false);
  for (const ValueId parameter : model_.parameters) trained_[at(parameter)] = true;
  writer_.resize(program.values.size(), -1);
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const ProgramNode& node = program.nodes[n];
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId id) { return id >= 0 && trained_[at(id)]; });
    for (const ValueId output : node.outputs) {
      trained_[at(output)] = any;
      writer_[at(output)] = model_.operators[n];
    }
  }
  for (const MissingWeight& each : program.missing) shapes_[at(each.value)] = each.shape;
  for (const ProgramInput& each : program.inputs) {
    if (each.shape) shapes_[at(each.value)] = *each.shape;
  }
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].constant) shapes_[v] = program.values[v].constant->shape;
  }
  // What other stages hand over comes by rows where it can; the stage's own follows.
  std::vector<bool> own(program.values.size(), false);
  for (const std::vector<NodeId>* segment : stage.segments) {
    for (const NodeId node : *segment) {
      for (const ValueId output : program.nodes[at(node)].outputs) own[at(output)] = true;
    }
  }
  for (std::size_t v = 0; v < own.size(); ++v) {
    const bool comes = varies_[v] && writer_[v] >= 0 && !own[v];
    if (comes && can_be_rows(shapes_[v]))
      layouts_[v] = even_layout(0, shapes_[v][0], stage.sharers());
  }
}

void RankDivider::refuse(const std::string& what) const {
  throw Error(
      fmt::format("{} has tensor parallelism {}, and {} {}, which braid run does not divide",
                  stage_.name, stage_.sharers(), op_->name, what),
      "plan with --tp 1");
}

bool RankDivider::can_be_rows(const Shape& shape) const {
  if (shape.empty() || shape.front() % stage_.sharers() != 0) return false;
  return stage_.cp > 1 || (stage_.sequence_parallel && shape.size() >= 2);
}

/// Whether the operator does the same to each row, and to it alone.
bool RankDivider::works_by_rows() const {
  if (const auto* product = std::get_if<MatMul>(&op_->kind)) {
    return product->weight && product->batch == 1;
  }
  return std::holds_alternative<Normalization>(op_->kind) ||
         std::holds_alternative<Elementwise>(op_->kind) ||
         std::holds_alternative<Softmax>(op_->kind) ||
         std::holds_alternative<MoeRouter>(op_->kind) ||
         std::holds_alternative<MoeExperts>(op_->kind);
}

RankDivider::Form RankDivider::form_of_rows(const ProgramNode& node) const {
  const bool joins_rows =
      std::holds_alternative<DataMovement>(op_->kind) && node.operation == "Concat";
  const bool attends = stage_.cp > 1 && (std::holds_alternative<Attention>(op_->kind) ||
                                         std::holds_alternative<Embedding>(op_->kind));
  if (!works_by_rows() && !joins_rows && !attends) return Form::whole;
  const bool by_rows = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id < 0 || is_stored(id) || can_be_rows(shape(id));
  });
  return by_rows ? Form::rows : Form::whole;
}

RankDivider::Form RankDivider::form_for(const ProgramNode& node) const {
  if (stage_.cp > 1) return form_of_rows(node);
  switch (op_->split) {
    case Split::column:
      return Form::share;
    case Split::vocab:
      return std::holds_alternative<MatMul>(op_->kind) ? Form::share : Form::whole;
    case Split::row:
      return Form::sharded;
    case Split::heads:
    case Split::features:
      return Form::as_is;
    case Split::expert:
      if (!stage_.whole_experts) return Form::share;
      [[fallthrough]];
    case Split::sequence:
      return form_of_rows(node);
    case Split::replicated:
      return Form::whole;
  }
  return Form::whole;
}

void RankDivider::add_segment(const std::vector<NodeId>& nodes) {
  segments_.emplace_back();
  in_form_.clear();
  taken_.clear();
  of_first_.clear();
  for (const NodeId node : nodes) add(node);
}

void RankDivider::add(NodeId number) {
  ProgramNode node = model_.program.nodes[at(number)];
  op_id_ = model_.operators[at(number)];
  op_ = &stage_.graph->operators[at(op_id_)];
  if (!varies_[at(node.outputs.front())]) return add_stored(node);
  const Form form = form_for(node);
  for (ValueId& input : node.inputs) {
    if (input >= 0 && !is_stored(input) && writer_[at(input)] != op_id_) {
      input = in_form(input, form);
    }
  }
  const bool sharded = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return id >= 0 && is_sharded(id); });
  const bool by_features = op_->split == Split::heads || op_->split == Split::features;
  if (stage_.cp == 1 && by_features && !sharded) refuse("reads nothing that is sharded");
  const std::string operation = node.operation;
  if (operation == "MatMul" || operation == "Gemm") return add_product(std::move(node));
  if (operation == "Gather" && is_by_entries()) return add_lookup(std::move(node));
  if (operation == "Experts") return add_experts(std::move(node));
  if (!sharded) return add_unsharded(std::move(node));
  if (operation == "Gather") return add_lookup(std::move(node));
  if (is_binary(operation) || is_function(operation)) return add_elementwise(std::move(node));
  if (operation == "Reshape") return add_reshape(std::move(node));
  if (operation == "Transpose") return add_transpose(std::move(node));
  if (operation == "Slice") return add_slice(std::move(node));
  if (operation == "Concat") return add_concat(std::move(node));
  if (is_along(operation)) return add_along(std::move(node));
  refuse("is a " + operation);
}

void RankDivider::add_stored(const ProgramNode& node) {
  shapes_[at(node.outputs.front())] = shape_of(node);
  segments_.back().push_back(static_cast<NodeId>(result_.program.nodes.size()));
  result_.program.nodes.push_back(node);
}

void RankDivider::finish(ProgramNode node, Shape shape, ValueLayout layout) {
  shapes_[at(node.outputs.front())] = std::move(shape);
  layouts_[at(node.outputs.front())] = std::move(layout);
  segments_.back().push_back(static_cast<NodeId>(result_.program.nodes.size()));
  result_.program.nodes.push_back(std::move(node));
}

void RankDivider::finish_partial(ProgramNode node, Shape shape) {
  const ValueId result = node.outputs.front();
  const std::string name = node.name;
  node.name += ".partial";
  node.outputs.front() = new_value(node.name, shape, {}, true);
  const ValueId partial = node.outputs.front();
  const ValueLayout layout =
      can_be_rows(shape) ? even_layout(0, shape.front(), stage_.sharers()) : ValueLayout{};
  finish(std::move(node), shape, {});
  ProgramNode sum{name,      kBraidDomain, layout.is_whole() ? "Sum" : "SumTake",
                  {partial}, {result},     {}};
  if (!layout.is_whole()) {
    sum.attributes = {{"axis", std::int64_t{layout.axis}},
                      {"size", shape.front()},
                      {"held", held_list(layout.held)}};
  }
  finish(std::move(sum), shape, layout);
}

ValueId RankDivider::new_value(const std::string& name, Shape shape, ValueLayout layout,
                               bool varies) {
  result_.program.values.push_back({name, nullptr});
  shapes_.push_back(std::move(shape));
  layouts_.push_back(std::move(layout));
  varies_.push_back(varies);
  trained_.push_back(true);
  writer_.push_back(op_id_);
  return static_cast<ValueId>(result_.program.values.size()) - 1;
}

ValueId RankDivider::integers(const std::vector<std::int64_t>& numbers) {
  const ValueId value = new_value("", {std::ssize(numbers)}, {}, false);
  result_.program.values.back().constant = std::make_shared<const DenseTensor>(
      tensor_of(ElementType::i64, {std::ssize(numbers)}, numbers));
  trained_.back() = false;
  return value;
}

std::vector<std::int64_t> RankDivider::constant(ValueId value) const {
  const auto& tensor = result_.program.values[at(value)].constant;
  if (!tensor) refuse("takes numbers that are computed");
  return numbers_of<std::int64_t>(*tensor);
}

ValueId RankDivider::exchanged(ValueId value, const std::string& operation,
                               const ValueLayout& layout, const ValueLayout& result) {
  ProgramNode node{result_.program.values[at(value)].name + "." + operation,
                   kBraidDomain,
                   operation,
                   {value},
                   {-1},
                   {}};
  if (!layout.is_whole()) {
    std::vector<std::vector<Interval>> held;
    for (std::size_t r = 0; r < layout.held.size(); ++r) {
      const auto indices = held_indices(layout, shape(value), r);
      if (!indices) refuse("reads what ranks have parts of rows of");
      held.push_back(*indices);
    }
    node.attributes = {{"axis", std::int64_t{layout.axis}},
                       {"size", shape(value)[at(layout.axis)]},
                       {"held", held_list(held)}};
  }
  node.outputs.front() = new_value(node.name, shape(value), result, true);
  const ValueId made = node.outputs.front();
  finish(std::move(node), shape(value), result);
  return made;
}

ValueId RankDivider::gathered(ValueId value, bool is_share) {
  return exchanged(value, is_share ? "GatherShare" : "GatherAlike", layout(value), {});
}

ValueId RankDivider::taken(ValueId value, const ValueLayout& layout) {
  return exchanged(value, "Take", layout, layout);
}

ValueId RankDivider::in_form(ValueId value, Form form) {
  if (form == Form::as_is) return value;
  const auto known = in_form_.find({value, form});
  if (known != in_form_.end()) return known->second;
  const ValueLayout of = layout(value);
  const auto last = static_cast<std::int32_t>(shape(value).size()) - 1;
  ValueId result = value;
  if (form == Form::share) {
    result = of.is_whole() ? exchanged(value, "Share", {}, {}) : gathered(value, true);
  } else if (form == Form::whole) {
    if (!of.is_whole()) result = gathered(value, false);
  } else {
    const std::int32_t axis = form == Form::rows ? 0 : last;
    if (of.axis != axis) {
      const std::int64_t size = shape(value)[at(axis)];
      if (size % stage_.sharers() != 0) refuse("reads what the ranks do not divide evenly");
      const ValueId whole = in_form(value, Form::whole);
      result = taken(whole, even_layout(axis, size, stage_.sharers()));
    }
  }
  in_form_[{value, form}] = result;
  return result;
}

ValueId RankDivider::taken_stored(ValueId value, std::int32_t axis, std::vector<Interval> held) {
  const std::int64_t size = shape(value)[at(axis)];
  if (held.size() == 1 && held.front() == Interval{0, size}) return value;
  const std::vector<std::int64_t> list = held_list({held});
  ValueId& known = taken_.try_emplace({value, axis, list}, -1).first->second;
  if (known >= 0) return known;
  Shape part = shape(value);
  part[at(axis)] = total_length(held);
  ProgramNode node{
      result_.program.values[at(value)].name + ".part", kBraidDomain, "TakeStored", {value}, {-1},
      {{"axis", std::int64_t{axis}}, {"held", list}}};
  node.outputs.front() = new_value(node.name, part, {}, false);
  known = node.outputs.front();
  finish(std::move(node), part, {});
  return known;
}

ValueId RankDivider::of_first(ValueId value) {
  if (!trained_[at(value)]) return value;
  ValueId& known = of_first_.try_emplace(value, -1).first->second;
  if (known >= 0) return known;
  ProgramNode node{
      result_.program.values[at(value)].name + ".of_first", kBraidDomain, "OfFirst", {value}, {-1},
      {{"first", std::int64_t{rank_ == 0 ? 1 : 0}}}};
  node.outputs.front() = new_value(node.name, shape(value), {}, false);
  known = node.outputs.front();
  finish(std::move(node), shape(value), {});
  return known;
}

std::vector<std::vector<NodeId>> RankDivider::hold_parts() {
  std::vector<ProgramNode>& nodes = result_.program.nodes;
  std::map<ValueId, std::vector<const ProgramNode*>> readers;
  for (const ProgramNode& node : nodes) {
    for (const ValueId input : node.inputs) {
      if (input >= 0) readers[input].push_back(&node);
    }
  }
  std::map<ValueId, ValueId> held_as;
  for (const auto& [value, nodes_of] : readers) {
    if (static_cast<std::size_t>(value) >= model_.program.values.size()) continue;
    if (varies_[at(value)] || writer_[at(value)] >= 0) continue;
    const ProgramNode& one = *nodes_of.front();
    const auto same = [&](const ProgramNode* node) {
      return node->operation == "TakeStored" &&
             *node->attribute("axis") == *one.attribute("axis") &&
             *node->attribute("held") == *one.attribute("held");
    };
    if (one.operation != "TakeStored" || !std::all_of(nodes_of.begin(), nodes_of.end(), same)) {
      continue;
    }
    result_.parts[value] = {
        static_cast<std::int32_t>(std::get<std::int64_t>(*one.attribute("axis"))),
        held_of_list(std::get<std::vector<std::int64_t>>(*one.attribute("held"))).front()};
    for (const ProgramNode* node : nodes_of) held_as[node->outputs.front()] = value;
  }
  std::vector<ProgramNode> kept;
  std::vector<NodeId> number(nodes.size(), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (held_as.contains(nodes[n].outputs.front())) continue;
    for (ValueId& input : nodes[n].inputs) {
      const auto found = held_as.find(input);
      if (found != held_as.end()) input = found->second;
    }
    number[n] = static_cast<NodeId>(kept.size());
    kept.push_back(std::move(nodes[n]));
  }
  nodes = std::move(kept);
  std::vector<std::vector<NodeId>> segments;
  for (const std::vector<NodeId>& segment : segments_) {
    segments.emplace_back();
    for (const NodeId node : segment) {
      if (number[at(node)] >= 0) segments.back().push_back(number[at(node)]);
    }
  }
  return segments;
}

std::vector<ValueLayout> RankDivider::layouts() const {
  return {layouts_.begin(), layouts_.begin() + std::ssize(model_.program.values)};
}

}  // namespace braid
