#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "braid/run/column_layout.h"
#include "braid/run/rank_divider.h"

namespace braid {
namespace {

std::int64_t integer_of(const ProgramNode& node, std::string_view name, std::int64_t otherwise) {
  const AttributeValue* value = node.attribute(name);
  return value == nullptr ? otherwise : std::get<std::int64_t>(*value);
}

/// Sizes that two shapes are broadcast to.
Shape broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t d = 0; d < result.size(); ++d) {
    for (const Shape* each : {&a, &b}) {
      if (d >= each->size()) continue;
      std::int64_t& size = result[result.size() - 1 - d];
      size = std::max(size, (*each)[each->size() - 1 - d]);
    }
  }
  return result;
}

std::vector<std::int64_t> order_of(const ProgramNode& node, std::size_t dimensions) {
  if (const AttributeValue* perm = node.attribute("perm")) {
    return std::get<std::vector<std::int64_t>>(*perm);
  }
  std::vector<std::int64_t> order;
  for (std::size_t d = dimensions; d > 0; --d) order.push_back(static_cast<std::int64_t>(d) - 1);
  return order;
}

bool turns_second(const ProgramNode& node) {
  return node.operation == "Gemm" && integer_of(node, "transB", 0) != 0;
}

/// Whether what a rank has of `a` lies in what it has of `b`, by shares of the dimension.
bool lies_in(const ValueLayout& a, const ValueLayout& b) {
  for (std::size_t r = 0; r < a.held.size(); ++r) {
    if (a.held[r].size() != 1 || b.held[r].size() != 1) return false;
    const Interval x = a.held[r].front(), y = b.held[r].front();
    if (x.first * b.units < y.first * a.units || x.last * b.units > y.last * a.units) return false;
  }
  return true;
}

/// Whether every rank has all of it, as of the one head of keys that all share.
bool is_full(const ValueLayout& layout) {
  return std::all_of(layout.held.begin(), layout.held.end(), [&](const auto& held) {
    return held.size() == 1 && held.front() == Interval{0, layout.units};
  });
}

}  // namespace

Shape RankDivider::shape_of(const ProgramNode& node) const {
  const ValueId result = node.outputs.front();
  if (at(result) < model_.shapes.size() && !model_.shapes[at(result)].empty()) {
    return model_.shapes[at(result)];
  }
  const Shape& x = shape(node.inputs.front());
  const std::string& operation = node.operation;
  if (operation == "Reshape") return constant(node.inputs[1]);
  if (operation == "Transpose") {
    Shape turned;
    for (const std::int64_t axis : order_of(node, x.size())) turned.push_back(x[at(axis)]);
    return turned;
  }
  if (operation == "Gather") {
    Shape rows = shape(node.inputs[1]);
    rows.insert(rows.end(), x.begin() + 1, x.end());
    return rows;
  }
  if (operation == "Slice") {
    Shape cut = x;
    const auto starts = constant(node.inputs[1]), ends = constant(node.inputs[2]),
               axes = constant(node.inputs[3]);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      std::int64_t& size = cut[at(axes[i])];
      size = std::min(size, ends[i]) - starts[i];
    }
    return cut;
  }
  if (operation == "MatMul" || operation == "Gemm") {
    const Shape& y = shape(node.inputs[1]);
    Shape product = x;
    product.back() = turns_second(node) ? y.front() : y.back();
    return product;
  }
  if (node.inputs.size() == 2 &&
      (operation == "Add" || operation == "Sub" || operation == "Mul" || operation == "Div")) {
    return broadcast(x, shape(node.inputs[1]));
  }
  const bool keeps = operation == "Softmax" || operation == "LayerNormalization" ||
                     operation == "RMSNormalization" || operation == "Relu" ||
                     operation == "Gelu" || operation == "Swish" || operation == "Tanh" ||
                     operation == "Sigmoid";
  return keeps ? x : Shape();
}

void RankDivider::add_unsharded(ProgramNode node) {
  Shape shape = shape_of(node);
  for (ValueId& input : node.inputs) {
    if (is_stored(input)) input = of_first(input);
  }
  finish(std::move(node), std::move(shape), {});
}

void RankDivider::add_product(ProgramNode node) {
  const ValueId x = node.inputs[0], w = node.inputs[1];
  const ValueLayout of = layout(x);
  if (!is_stored(w) || is_stored(x)) return add_product_of_two(std::move(node), of);
  Shape result = shape_of(node);
  const bool by_columns = is_by_entries() || (stage_.cp == 1 && op_->split == Split::column);
  if (of.is_whole() && !by_columns) return add_unsharded(std::move(node));
  if (shape(w).size() != 2 || integer_of(node, "transA", 0) != 0) {
    refuse("multiplies by weights of other than two dimensions");
  }
  const bool turned = turns_second(node);
  const auto last = static_cast<std::int32_t>(shape(x).size()) - 1;
  if (of.is_whole()) {
    ValueLayout columns = column_layout(*stage_.graph, *op_, stage_.tp, stage_.name);
    columns.axis = last;
    const std::vector<Interval>& held = columns.held[at(rank_)];
    node.inputs[1] = taken_stored(w, turned ? 0 : 1, held);
    if (node.inputs.size() > 2) node.inputs[2] = taken_stored(node.inputs[2], 0, held);
    return finish(std::move(node), std::move(result), std::move(columns));
  }
  if (of.axis != last) return finish(std::move(node), std::move(result), of);
  const auto held = held_indices(of, shape(x), at(rank_));
  if (!held || node.inputs.size() > 2) refuse("sums parts of rows");
  node.inputs[1] = taken_stored(w, turned ? 1 : 0, *held);
  finish_partial(std::move(node), std::move(result));
}

/// Batches of GEMMs, which ranks have parts of; or rows of one, by what all ranks have.
void RankDivider::add_product_of_two(ProgramNode node, const ValueLayout& of) {
  // Rows of queries see all keys, and rows of weights all values.
  const bool by_rows = of.axis == static_cast<std::int32_t>(shape(node.inputs[0]).size()) - 2;
  if (stage_.cp > 1 && by_rows && is_sharded(node.inputs[1])) {
    node.inputs[1] = gathered(node.inputs[1], true);
    Shape result = shape_of(node);
    return finish(std::move(node), std::move(result), of);
  }
  const ValueId b = node.inputs[1];
  if (!is_sharded(node.inputs[0]) && !is_sharded(b)) return add_unsharded(std::move(node));
  const auto batches = static_cast<std::int32_t>(shape(node.inputs[0]).size()) - 2;
  Shape result = shape_of(node);
  if (of.is_whole() || of.axis > batches || !is_sharded(b) ||
      shape(b).size() != shape(node.inputs[0]).size()) {
    refuse("multiplies what is sharded otherwise than by batches");
  }
  const bool fits =
      of.axis == batches ? is_full(layout(b)) : layout(b).axis == of.axis && lies_in(of, layout(b));
  if (!fits) refuse("multiplies batches that lie on different ranks");
  finish(std::move(node), std::move(result), of);
}

void RankDivider::add_lookup(ProgramNode node) {
  const ValueId table = node.inputs[0], ids = node.inputs[1];
  if (!is_stored(table)) refuse("looks up rows of what is computed");
  Shape result = shape_of(node);
  if (!is_by_entries()) {
    const ValueLayout of = layout(ids);
    return finish(std::move(node), std::move(result), of);
  }
  const ValueLayout rows = even_layout(0, shape(table).front(), stage_.sharers());
  if (rows.held.back().empty()) refuse("has fewer rows than ranks");
  const std::vector<Interval>& held = rows.held[at(rank_)];
  node.inputs[0] = taken_stored(table, 0, held);
  node.domain = kBraidDomain;
  node.operation = "GatherPart";
  node.attributes = {{"first", held.front().first}};
  finish_partial(std::move(node), std::move(result));
}

void RankDivider::add_experts(ProgramNode node) {
  const ValueId x = node.inputs[0], weights = node.inputs[2];
  Shape result = shape_of(node);
  if (is_sharded(x)) {
    const ValueLayout of = layout(x);
    if (of.axis != 0 || layout(node.inputs[1]) != of) refuse("reads columns of tokens");
    return finish(std::move(node), std::move(result), of);
  }
  if (op_->split != Split::expert || stage_.cp > 1) return add_unsharded(std::move(node));
  if (stage_.whole_experts) return add_unsharded(std::move(node));
  if (node.inputs.size() > 3) refuse("has biases behind sums");
  const std::int64_t inner = shape(weights).back();
  if (inner % stage_.sharers() != 0) refuse("has an inner width that the ranks do not divide");
  node.inputs[2] =
      taken_stored(weights, 3, even_layout(3, inner, stage_.sharers()).held[at(rank_)]);
  finish_partial(std::move(node), std::move(result));
}

void RankDivider::add_elementwise(ProgramNode node) {
  Shape result = shape_of(node);
  const auto rank = std::ssize(result);
  ValueLayout of;
  for (const ValueId input : node.inputs) {
    if (!of.is_whole() || !is_sharded(input)) continue;
    of = layout(input);
    of.axis += static_cast<std::int32_t>(rank - std::ssize(shape(input)));
  }
  for (ValueId& input : node.inputs) {
    ValueLayout own = of;
    own.axis -= static_cast<std::int32_t>(rank - std::ssize(shape(input)));
    if (is_sharded(input)) {
      if (layout(input) != own) refuse("reads what is sharded in two ways");
      continue;
    }
    const bool is_broadcast = own.axis < 0 || shape(input)[at(own.axis)] != result[at(of.axis)];
    if (is_broadcast) {
      if (!is_stored(input)) input = in_form(input, Form::share);
    } else if (is_stored(input)) {
      const auto held = held_indices(own, shape(input), at(rank_));
      if (!held) refuse("reads parts of rows of a weight");
      input = taken_stored(input, own.axis, *held);
    } else {
      input = taken(input, own);
    }
  }
  finish(std::move(node), std::move(result), std::move(of));
}

void RankDivider::add_reshape(ProgramNode node) {
  const ValueId x = node.inputs[0];
  Shape to = constant(node.inputs[1]);
  auto of = reshaped_layout(layout(x), shape(x), to);
  const auto own = of ? held_shape(*of, to, at(rank_)) : std::nullopt;
  if (!own) refuse("reshapes what is sharded, to " + shape_text(to));
  node.inputs[1] = integers(*own);
  finish(std::move(node), std::move(to), std::move(*of));
}

void RankDivider::add_transpose(ProgramNode node) {
  const ValueId x = node.inputs[0];
  const std::vector<std::int64_t> order = order_of(node, shape(x).size());
  ValueLayout of = layout(x);
  const auto place = std::find(order.begin(), order.end(), of.axis);
  of.axis = static_cast<std::int32_t>(place - order.begin());
  Shape result = shape_of(node);
  finish(std::move(node), std::move(result), std::move(of));
}

void RankDivider::add_slice(ProgramNode node) {
  const ValueId x = node.inputs[0];
  ValueLayout of = layout(x);
  Shape result = shape_of(node);
  std::vector<std::int64_t> starts = constant(node.inputs[1]), ends = constant(node.inputs[2]);
  const std::vector<std::int64_t> axes = constant(node.inputs[3]);
  if (node.inputs.size() > 4) refuse("cuts in steps");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != of.axis) continue;
    const std::int64_t size = shape(x)[at(of.axis)];
    const Interval cut{starts[i], std::min(ends[i], size)};
    const auto held = held_indices(of, shape(x), at(rank_));
    const auto sliced = sliced_layout(of, size, cut);
    if (!held || !sliced) refuse("cuts within what a rank has");
    starts[i] = ends[i] = 0;
    for (const Interval& each : *held) {
      starts[i] += std::clamp(cut.first, each.first, each.last) - each.first;
      ends[i] += std::clamp(cut.last, each.first, each.last) - each.first;
    }
    of = *sliced;
    for (const std::vector<Interval>& each : of.held) {
      if (each.empty()) refuse("leaves a rank without any part");
    }
  }
  node.inputs[1] = integers(starts);
  node.inputs[2] = integers(ends);
  finish(std::move(node), std::move(result), std::move(of));
}

void RankDivider::add_concat(ProgramNode node) {
  Shape result = shape_of(node);
  std::int64_t axis = integer_of(node, "axis", 0);
  if (axis < 0) axis += std::ssize(result);
  const auto any = std::find_if(node.inputs.begin(), node.inputs.end(),
                                [&](ValueId id) { return is_sharded(id); });
  ValueLayout of = layout(*any);
  if (of.axis != axis) {
    for (ValueId& input : node.inputs) {
      if (is_stored(input) || (is_sharded(input) && layout(input) != of)) {
        refuse("joins what is sharded in two ways");
      }
      if (!is_sharded(input)) input = taken(input, of);
    }
    return finish(std::move(node), std::move(result), std::move(of));
  }
  of.units = result[at(axis)];
  of.held.assign(at(stage_.sharers()), {});
  std::int64_t before = 0;
  for (const ValueId input : node.inputs) {
    if (!is_sharded(input) || layout(input).axis != axis) refuse("joins what is not sharded");
    for (std::size_t r = 0; r < of.held.size(); ++r) {
      const auto held = held_indices(layout(input), shape(input), r);
      if (!held) refuse("joins parts of rows");
      for (const Interval& each : *held) {
        of.held[r].push_back({before + each.first, before + each.last});
      }
    }
    before += shape(input)[at(axis)];
  }
  finish(std::move(node), std::move(result), std::move(of));
}

void RankDivider::add_along(ProgramNode node) {
  const ValueId x = node.inputs[0];
  ValueLayout of = layout(x);
  const auto rank = std::ssize(shape(x));
  std::vector<std::int64_t> axes{integer_of(node, "axis", -1)};
  const bool reduces = node.operation.starts_with("Reduce");
  if (reduces) {
    axes.clear();
    if (node.inputs.size() > 1) {
      axes = constant(node.inputs[1]);
    } else if (const AttributeValue* listed = node.attribute("axes")) {
      axes = std::get<std::vector<std::int64_t>>(*listed);
    }
    if (axes.empty()) refuse("sums what is sharded");
  }
  const bool keeps = !reduces || integer_of(node, "keepdims", 1) != 0;
  Shape result = shape_of(node);
  std::int32_t shift = 0;
  for (std::int64_t axis : axes) {
    if (axis < 0) axis += rank;
    if (axis == of.axis) refuse("sums or normalises along what is sharded");
    if (!keeps && axis < of.axis) ++shift;
  }
  of.axis -= shift;
  finish(std::move(node), std::move(result), std::move(of));
}

}  // namespace braid
