#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

/// The same numbers in the same order under another shape: known values stay known.
std::optional<OperatorKind> view(OnnxNodeView& node, Dims dims) {
  node.set(0, node.type(0), std::move(dims));
  node.same_numbers_as(0);
  node.share_values(0, 0);
  return DataMovement{.view = true};
}

std::optional<OperatorKind> identity(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  return view(node, node.dims(0));
}

/// A view whose shape depends on values that are known only at run time.
std::optional<OperatorKind> declared_view(OnnxNodeView& node) {
  node.set_declared(0, node.type(0), 1);
  if (node.product(node.results().front().dims) != node.elements(0)) {
    node.fail("its output is declared with another number of elements");
  }
  node.same_numbers_as(0);
  return DataMovement{.view = true};
}

bool depends_on_run(const OnnxNodeView& node) {
  return node.has(1) && node.integers(std::size_t{1}) == nullptr;
}

/// A target holds at most one -1, for what is left, and 0 for the input's own size there.
Dims reshaped(const OnnxNodeView& node, const Dims& target) {
  const Dims& in = node.dims(0);
  const bool zero_is_size = node.integer("allowzero", 0) != 0;
  Dims out = target;
  std::optional<std::size_t> rest;
  std::int64_t known = 1;
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 0 && !zero_is_size) {
      if (d >= in.size()) node.fail(fmt::format("the target {} does not fit", text_of(target)));
      out[d] = in[d];
    }
    if (out[d] < -1 || (out[d] == -1 && rest)) {
      node.fail(fmt::format("the target {} is not valid", text_of(target)));
    }
    if (out[d] == -1) {
      rest = d;
    } else {
      known = node.times(known, out[d]);
    }
  }
  const std::int64_t elements = node.elements(0);
  if (rest && known > 0) out[*rest] = elements / known;
  if (rest && known == 0) out[*rest] = 0;
  if (node.product(out) != elements) {
    node.fail(fmt::format("{} cannot be reshaped to {}", text_of(in), text_of(target)));
  }
  return out;
}

std::optional<OperatorKind> reshape(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  if (depends_on_run(node)) return declared_view(node);
  const auto target = node.integers_of(1, "shape");
  if (!target) node.fail("has no target shape");
  return view(node, reshaped(node, *target));
}

std::optional<OperatorKind> flatten(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  const Dims& in = node.dims(0);
  const std::int64_t given = node.integer("axis", 1);
  // One past the last dimension is allowed here.
  const std::size_t axis =
      given == static_cast<std::int64_t>(in.size()) ? in.size() : node.axis(given, in.size());
  return view(node,
              {node.product(std::span(in).first(axis)), node.product(std::span(in).subspan(axis))});
}

std::optional<OperatorKind> squeeze(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  if (depends_on_run(node)) return declared_view(node);
  const Dims& in = node.dims(0);
  const auto axes = node.integers_of(1, "axes");
  std::vector<bool> gone(in.size(), false);
  for (std::size_t d = 0; d < in.size() && !axes; ++d) gone[d] = in[d] == 1;
  for (const std::int64_t each : axes.value_or(Dims{})) {
    const std::size_t axis = node.axis(each, in.size());
    if (in[axis] != 1) node.fail(fmt::format("dimension {} of {} is not 1", axis, text_of(in)));
    gone[axis] = true;
  }
  Dims out;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (!gone[d]) out.push_back(in[d]);
  }
  return view(node, std::move(out));
}

std::optional<OperatorKind> unsqueeze(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  if (depends_on_run(node)) return declared_view(node);
  const Dims& in = node.dims(0);
  const auto axes = node.integers_of(1, "axes");
  if (!axes) node.fail("has no axes");
  const std::size_t rank = in.size() + axes->size();
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t each : *axes) {
    const std::size_t axis = node.axis(each, rank);
    if (is_new[axis]) node.fail(fmt::format("names the axis {} twice", each));
    is_new[axis] = true;
  }
  Dims out;
  std::size_t next = 0;
  for (std::size_t d = 0; d < rank; ++d) out.push_back(is_new[d] ? 1 : in[next++]);
  return view(node, std::move(out));
}

constexpr std::array<OnnxRuleEntry, 5> view_rules{{
    {"Flatten", flatten},
    {"Identity", identity},
    {"Reshape", reshape},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_view_rules() { return view_rules; }

}  // namespace braid
