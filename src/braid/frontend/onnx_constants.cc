#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_fold.h"
#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

std::optional<OperatorKind> constant(OnnxNodeView& node) {
  node.need_inputs(0, 0);
  node.is_constant();
  if (node.node().attributes.size() != 1) node.fail("has not exactly one value");
  const OnnxAttribute& attribute = node.node().attributes.front();
  if (const auto* tensor = std::get_if<std::unique_ptr<OnnxTensor>>(&attribute.value)) {
    node.set(0, (*tensor)->type, (*tensor)->dims);
    if ((*tensor)->values) node.set_values(0, *(*tensor)->values);
  } else if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
    node.set(0, OnnxType::i64, {});
    node.set_values(0, std::vector<std::int64_t>{*integer});
  } else if (const auto* real = std::get_if<double>(&attribute.value)) {
    node.set(0, OnnxType::f32, {});
    node.set_values(0, std::vector<double>{*real});
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    node.set(0, OnnxType::i64, {static_cast<std::int64_t>(integers->size())});
    node.set_values(0, *integers);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&attribute.value)) {
    node.set(0, OnnxType::f32, {static_cast<std::int64_t>(reals->size())});
    node.set_values(0, *reals);
  } else {
    node.fail("its value is neither a tensor nor numbers");
  }
  return std::nullopt;
}

std::optional<OperatorKind> constant_of_shape(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.is_constant();
  OnnxType type = OnnxType::f32;
  OnnxConstant one = std::vector<double>{0};
  if (const OnnxAttribute* value = node.attribute("value")) {
    const auto* tensor = std::get_if<std::unique_ptr<OnnxTensor>>(&value->value);
    if (tensor == nullptr) node.fail("attribute 'value' is no tensor");
    type = (*tensor)->type;
    if ((*tensor)->values) one = *(*tensor)->values;
  }
  const auto* dims = node.integers(std::size_t{0});
  if (dims == nullptr) {
    node.set_declared(0, type, 0);
    return std::nullopt;
  }
  node.set(0, type, *dims);
  const std::int64_t count = node.product(*dims);
  if (count > most_folded) return std::nullopt;
  std::visit(
      [&](const auto& list) {
        if (list.size() != 1) node.fail("attribute 'value' has not one element");
        auto values = list;
        values.assign(static_cast<std::size_t>(count), list.front());
        node.set_values(0, std::move(values));
      },
      one);
  return std::nullopt;
}

std::optional<OperatorKind> shape(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.is_constant();
  const Dims& in = node.dims(0);
  const auto rank = static_cast<std::int64_t>(in.size());
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = clamped(node.integer("start", 0));
  const std::int64_t end = std::max(start, clamped(node.integer("end", rank)));
  Dims values(in.begin() + start, in.begin() + end);
  node.set(0, OnnxType::i64, {end - start});
  node.set_values(0, std::move(values));
  return std::nullopt;
}

std::optional<OperatorKind> size(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.is_constant();
  node.set(0, OnnxType::i64, {});
  node.set_values(0, std::vector<std::int64_t>{node.elements(0)});
  return std::nullopt;
}

template <typename Number>
void fill_range(OnnxNodeView& node, Number start, Number step, std::int64_t count) {
  node.set(0, node.type(0), {count});
  if (count > most_folded) return;
  std::vector<Number> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(start + static_cast<Number>(i) * step);
  node.set_values(0, std::move(values));
}

/// The only element of an operand.
template <typename Number>
std::optional<Number> scalar(const OnnxNodeView& node, std::size_t input) {
  const auto& values = node.input(input).values;
  const auto* list = values ? std::get_if<std::vector<Number>>(values.get()) : nullptr;
  if (list == nullptr || list->size() != 1) return std::nullopt;
  return list->front();
}

std::optional<OperatorKind> range(OnnxNodeView& node) {
  node.need_inputs(3, 3);
  node.is_constant();
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const auto start = scalar<std::int64_t>(node, 0);
  const auto limit = scalar<std::int64_t>(node, 1);
  const auto step = scalar<std::int64_t>(node, 2);
  if (start && limit && step) {
    const auto in_range = [](std::int64_t value) { return value >= -most && value <= most; };
    if (*step == 0 || !in_range(*start) || !in_range(*limit) || !in_range(*step)) {
      node.fail(fmt::format("from {} to {} by {} is no range", *start, *limit, *step));
    }
    const std::int64_t span = *limit - *start;
    const std::int64_t count = span / *step + (span % *step != 0 ? 1 : 0);
    // A span against the step holds nothing.
    const bool empty = span == 0 || (span < 0) != (*step < 0);
    fill_range<std::int64_t>(node, *start, *step, empty ? 0 : count);
    return std::nullopt;
  }
  const auto from = scalar<double>(node, 0);
  const auto to = scalar<double>(node, 1);
  const auto by = scalar<double>(node, 2);
  if (from && to && by) {
    const double count = std::ceil((*to - *from) / *by);
    if (!(count < static_cast<double>(most))) {
      node.fail(fmt::format("from {} to {} by {} is no range", *from, *to, *by));
    }
    fill_range<double>(node, *from, *by, count > 0 ? static_cast<std::int64_t>(count) : 0);
    return std::nullopt;
  }
  const std::size_t unknown = node.input(0).values ? (node.input(1).values ? 2 : 1) : 0;
  node.set_declared(0, node.type(0), unknown);
  return std::nullopt;
}

/// Numbers that depend on nothing but a shape: random ones, and the identity matrix.
std::optional<OperatorKind> like(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.is_constant();
  const std::int64_t type = node.integer("dtype", static_cast<std::int64_t>(node.type(0)));
  node.set(0, static_cast<OnnxType>(type), node.dims(0));
  return std::nullopt;
}

std::optional<OperatorKind> random(OnnxNodeView& node) {
  node.need_inputs(0, 0);
  node.is_constant();
  const auto* dims = node.integers("shape");
  if (dims == nullptr) node.fail("attribute 'shape' is missing");
  node.set(0, static_cast<OnnxType>(node.integer("dtype", 1)), *dims);
  return std::nullopt;
}

constexpr std::array<OnnxRuleEntry, 10> constant_rules{{
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"EyeLike", like},
    {"RandomNormal", random},
    {"RandomNormalLike", like},
    {"RandomUniform", random},
    {"RandomUniformLike", like},
    {"Range", range},
    {"Shape", shape},
    {"Size", size},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_constant_rules() { return constant_rules; }

}  // namespace braid
