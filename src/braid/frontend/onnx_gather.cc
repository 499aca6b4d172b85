#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_fold.h"
#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"
#include "braid/frontend/onnx_types.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

void fold_gather(OnnxNodeView& node, std::size_t axis) {
  const auto* chosen = node.integers(std::size_t{1});
  if (chosen == nullptr) return;
  const Dims& in = node.dims(0);
  const std::int64_t size = in[axis];
  for (const std::int64_t each : *chosen) {
    if (each < -size || each >= size) {
      node.fail(fmt::format("index {} does not lie in {} elements", each, size));
    }
  }
  const Dims strides = strides_of(in);
  const Dims chosen_strides = strides_of(node.dims(1));
  const std::size_t chosen_rank = node.rank(1);
  fold_places(node, [&](const Dims& indices) {
    std::int64_t place = 0;
    std::int64_t at = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (d < axis) {
        place += indices[d] * strides[d];
      } else if (d < axis + chosen_rank) {
        at += indices[d] * chosen_strides[d - axis];
      } else {
        place += indices[d] * strides[d - chosen_rank + 1];
      }
    }
    const std::int64_t index = (*chosen)[static_cast<std::size_t>(at)];
    return place + (index < 0 ? index + size : index) * strides[axis];
  });
}

/// Rows of a parameter are an embedding; other gathers move data.
std::optional<OperatorKind> gather(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  const Dims& data = node.dims(0);
  const Dims& indices = node.dims(1);
  node.need_rank(0, 1, 1 << 10);
  const std::size_t axis = node.axis(node.integer("axis", 0), data.size());
  Dims out(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  node.set(0, node.type(0), std::move(out));
  fold_gather(node, axis);
  const bool of_parameter =
      node.input(0).source == OnnxValue::Source::initializer && is_real(node.type(0));
  if (!of_parameter || axis != 0 || data.size() < 2) return DataMovement{};
  return Embedding{.rows = data.front(),
                   .width = node.product(std::span(data).subspan(1)),
                   .lookups = node.elements(1),
                   .pooling = 1};
}

std::optional<OperatorKind> gather_elements(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  node.need_rank(1, node.rank(0), node.rank(0));
  node.set(0, node.type(0), node.dims(1));
  return DataMovement{};
}

std::optional<OperatorKind> gather_nd(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  const Dims& data = node.dims(0);
  const Dims& indices = node.dims(1);
  node.need_rank(1, 1, 1 << 10);
  const std::int64_t batch = node.integer("batch_dims", 0);
  const std::int64_t depth = indices.back();
  const auto rank = static_cast<std::int64_t>(data.size());
  if (batch < 0 || batch >= static_cast<std::int64_t>(indices.size()) || depth < 1 ||
      depth > rank - batch) {
    node.fail(fmt::format("indices {} do not fit the data {}", text_of(indices), text_of(data)));
  }
  Dims out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), data.begin() + batch + depth, data.end());
  node.set(0, node.type(0), std::move(out));
  return DataMovement{};
}

/// The data, with elements of another operand put into it.
std::optional<OperatorKind> scatter(OnnxNodeView& node) {
  node.need_inputs(3, 3);
  node.set(0, node.type(0), node.dims(0));
  return DataMovement{};
}

std::optional<OperatorKind> one_hot(OnnxNodeView& node) {
  node.need_inputs(3, 3);
  const OnnxType type = node.type(2);
  const auto* depth = node.integers(std::size_t{1});
  if (depth == nullptr) {
    node.set_declared(0, type, 1);
    return DataMovement{};
  }
  if (depth->size() != 1) node.fail("its depth is not one number");
  Dims out = node.dims(0);
  const std::size_t axis = node.axis(node.integer("axis", -1), out.size() + 1);
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), depth->front());
  node.set(0, type, std::move(out));
  return DataMovement{};
}

/// Bilinear samples of [N, C, …] at the places in a grid [N, …, coordinates].
std::optional<OperatorKind> grid_sample(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  node.need_rank(0, 4, 5);
  node.need_rank(1, node.rank(0), node.rank(0));
  Dims out = node.dims(0);
  std::copy(node.dims(1).begin() + 1, node.dims(1).end() - 1, out.begin() + 2);
  node.set(0, node.type(0), out);
  return Elementwise{node.product(out), 8, Elementwise::Keeps::inputs};
}

constexpr std::array<OnnxRuleEntry, 8> gather_rules{{
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"GridSample", grid_sample},
    {"OneHot", one_hot},
    {"Scatter", scatter},
    {"ScatterElements", scatter},
    {"ScatterND", scatter},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_gather_rules() { return gather_rules; }

}  // namespace braid
