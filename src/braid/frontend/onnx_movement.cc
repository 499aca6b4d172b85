#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
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
constexpr std::size_t any = 1 << 20;

std::optional<OperatorKind> moved(OnnxNodeView& node, Dims dims) {
  node.set(0, node.type(0), std::move(dims));
  return DataMovement{};
}

/// As `moved`, where the shape depends on values of operand `input` that are not known.
std::optional<OperatorKind> moved_as_declared(OnnxNodeView& node, std::size_t input) {
  node.set_declared(0, node.type(0), input);
  return DataMovement{};
}

bool known(const OnnxNodeView& node, std::size_t input) {
  return !node.has(input) || node.integers(input) != nullptr;
}

std::optional<OperatorKind> same_shape(OnnxNodeView& node) {
  node.need_inputs(1, any);
  return moved(node, node.dims(0));
}

std::optional<OperatorKind> transpose(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  const Dims& in = node.dims(0);
  Dims order(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    order[d] = static_cast<std::int64_t>(in.size() - 1 - d);
  }
  if (const auto* given = node.integers("perm")) order = *given;
  std::vector<bool> seen(in.size(), false);
  Dims out;
  for (std::int64_t& each : order) {
    const std::size_t axis = node.axis(each, in.size());
    if (seen[axis]) node.fail(fmt::format("perm {} names an axis twice", text_of(order)));
    seen[axis] = true;
    each = static_cast<std::int64_t>(axis);
    out.push_back(in[axis]);
  }
  if (out.size() != in.size()) {
    node.fail(fmt::format("perm {} does not fit the shape {}", text_of(order), text_of(in)));
  }
  node.same_numbers_as(0);
  node.set(0, node.type(0), std::move(out));
  fold_places(node, [&, strides = strides_of(in)](const Dims& indices) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      place += indices[d] * strides[static_cast<std::size_t>(order[d])];
    }
    return place;
  });
  return DataMovement{};
}

/// Lists of known numbers one after the other.
template <typename Number>
void fold_concat(OnnxNodeView& node) {
  std::vector<Number> all;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const auto& values = node.input(i).values;
    const auto* list = values ? std::get_if<std::vector<Number>>(values.get()) : nullptr;
    if (list == nullptr || node.rank(i) != 1) return;
    all.insert(all.end(), list->begin(), list->end());
    if (all.size() > static_cast<std::size_t>(most_folded)) return;
  }
  node.set_values(0, std::move(all));
}

std::optional<OperatorKind> concat(OnnxNodeView& node) {
  node.need_inputs(1, any);
  Dims out = node.dims(0);
  const std::size_t axis = node.axis(node.integer("axis", node.opset() < 4 ? 1 : 0), out.size());
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    const Dims& next = node.dims(i);
    bool fits = next.size() == out.size();
    for (std::size_t d = 0; d < out.size() && fits; ++d) fits = d == axis || next[d] == out[d];
    if (!fits) {
      node.fail(fmt::format("{} and {} do not fit", text_of(node.dims(0)), text_of(next)));
    }
    if (__builtin_add_overflow(out[axis], next[axis], &out[axis])) node.fail("a size overflows");
  }
  node.set(0, node.type(0), out);
  fold_concat<std::int64_t>(node);
  fold_concat<double>(node);
  return DataMovement{};
}

/// What a slice takes from one dimension.
struct Range {
  std::int64_t start = 0, step = 1, count = 0;
};

Range clamped(const OnnxNodeView& node, std::int64_t size, std::int64_t start, std::int64_t end,
              std::int64_t step) {
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) {
    node.fail(fmt::format("its step is {}", step));
  }
  if (size == 0) return {0, 1, 0};
  const auto from_end = [&](std::int64_t at) { return at < 0 ? at + size : at; };
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  start = std::clamp(from_end(start), std::int64_t{0}, high);
  end = std::clamp(from_end(end), low, size);
  const std::int64_t span = step > 0 ? end - start : start - end;
  const std::int64_t stride = std::abs(step);
  if (span <= 0) return {0, 1, 0};
  return {start, step, (span - 1) / stride + 1};
}

std::optional<OperatorKind> slice(OnnxNodeView& node) {
  node.need_inputs(1, 5);
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    if (!known(node, i)) return moved_as_declared(node, i);
  }
  const auto starts = node.integers_of(1, "starts");
  const auto ends = node.integers_of(2, "ends");
  if (!starts || !ends || starts->size() != ends->size()) node.fail("has no starts and ends");
  Dims axes(starts->size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  axes = node.integers_of(3, "axes").value_or(axes);
  const Dims steps = node.integers_of(4, "").value_or(Dims(starts->size(), 1));
  if (axes.size() != starts->size() || steps.size() != starts->size()) {
    node.fail("starts, ends, axes and steps differ in length");
  }
  Dims out = node.dims(0);
  std::vector<Range> ranges(out.size());
  std::vector<bool> seen(out.size(), false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = node.axis(axes[i], out.size());
    if (seen[axis]) node.fail(fmt::format("names the axis {} twice", axes[i]));
    seen[axis] = true;
    ranges[axis] = clamped(node, out[axis], (*starts)[i], (*ends)[i], steps[i]);
    out[axis] = ranges[axis].count;
  }
  node.set(0, node.type(0), std::move(out));
  fold_places(node, [&, strides = strides_of(node.dims(0))](const Dims& indices) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      place += (ranges[d].start + indices[d] * ranges[d].step) * strides[d];
    }
    return place;
  });
  return DataMovement{};
}

std::optional<OperatorKind> split(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  Dims dims = node.dims(0);
  const std::size_t axis = node.axis(node.integer("axis", 0), dims.size());
  const auto parts = static_cast<std::int64_t>(node.output_count());
  const std::int64_t size = dims[axis];
  // Equal parts, the last one smaller when they do not divide the dimension (version 18).
  const std::int64_t part = (size + parts - 1) / parts;
  Dims sizes(node.output_count(), part);
  if (!node.has(1) && node.attribute("split") == nullptr) {
    sizes.back() = size - part * (parts - 1);
  }
  if (!known(node, 1)) {
    for (std::size_t i = 0; i < sizes.size(); ++i) node.set_declared(i, node.type(0), 1);
    return DataMovement{};
  }
  sizes = node.integers_of(1, "split").value_or(sizes);
  std::int64_t sum = 0;
  for (const std::int64_t each : sizes) {
    if (each < 0 || __builtin_add_overflow(sum, each, &sum))
      node.fail("a part's size is not valid");
  }
  if (sizes.size() != node.output_count() || sum != size) {
    node.fail(fmt::format("parts of the sizes {} do not make up {}", text_of(sizes), size));
  }
  const auto* values = node.rank(0) == 1 ? node.integers(std::size_t{0}) : nullptr;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    dims[axis] = sizes[i];
    node.set(i, node.type(0), dims);
    if (values != nullptr && sizes[i] <= most_folded) {
      node.set_values(i, Dims(values->begin() + begin, values->begin() + begin + sizes[i]));
    }
    begin += sizes[i];
  }
  return DataMovement{};
}

std::optional<OperatorKind> pad(OnnxNodeView& node) {
  node.need_inputs(1, 4);
  for (const std::size_t i : {1, 3}) {
    if (!known(node, i)) return moved_as_declared(node, i);
  }
  Dims out = node.dims(0);
  auto pads = node.integers_of(1, "pads");
  if (!pads) pads = node.integers_of(1, "paddings");
  if (!pads) node.fail("has no pads");
  Dims axes(out.size());
  for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<std::int64_t>(d);
  axes = node.integers_of(3, "").value_or(axes);
  if (pads->size() != 2 * axes.size()) {
    node.fail(fmt::format("pads {} do not fit the shape {}", text_of(*pads), text_of(out)));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t& size = out[node.axis(axes[i], out.size())];
    if (__builtin_add_overflow(size, (*pads)[i], &size) ||
        __builtin_add_overflow(size, (*pads)[i + axes.size()], &size)) {
      node.fail("a size overflows 64 bits");
    }
  }
  return moved(node, std::move(out));
}

std::optional<OperatorKind> tile(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  if (!known(node, 1)) return moved_as_declared(node, 1);
  Dims out = node.dims(0);
  const Dims& repeats = *node.integers(std::size_t{1});
  if (repeats.size() != out.size()) {
    node.fail(fmt::format("repeats {} do not fit the shape {}", text_of(repeats), text_of(out)));
  }
  for (std::size_t d = 0; d < out.size(); ++d) out[d] = node.times(out[d], repeats[d]);
  return moved(node, std::move(out));
}

std::optional<OperatorKind> expand(OnnxNodeView& node) {
  node.need_inputs(2, 2);
  if (!known(node, 1)) return moved_as_declared(node, 1);
  const Dims& in = node.dims(0);
  node.set(0, node.type(0), node.broadcast(in, *node.integers(std::size_t{1})));
  fold_places(node, [&, strides = strides_of(in)](const Dims& indices) {
    std::int64_t place = 0;
    const std::size_t offset = indices.size() - in.size();
    for (std::size_t d = 0; d < in.size(); ++d) {
      if (in[d] > 1) place += indices[d + offset] * strides[d];
    }
    return place;
  });
  return DataMovement{};
}

/// New sizes given as such or as factors.
Dims scaled(const OnnxNodeView& node, std::span<const double> scales) {
  Dims out = node.dims(0);
  if (scales.size() != out.size()) {
    node.fail(fmt::format("{} scales do not fit the shape {}", scales.size(), text_of(out)));
  }
  constexpr double most = 1e15;
  for (std::size_t d = 0; d < out.size(); ++d) {
    const double size = std::floor(static_cast<double>(out[d]) * scales[d]);
    if (!(size >= 0 && size < most)) node.fail(fmt::format("the scale {} is not valid", scales[d]));
    out[d] = static_cast<std::int64_t>(size);
  }
  return out;
}

std::optional<OperatorKind> resized(OnnxNodeView& node, Dims dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count = node.times(count, size);
  const bool copies = node.text("mode", "nearest") == "nearest";
  node.set(0, node.type(0), std::move(dims));
  if (copies) return DataMovement{};
  constexpr double linear_flops = 8;  // Four neighbours in two dimensions, a product and sum each.
  return Elementwise{count, linear_flops, Elementwise::Keeps::nothing};
}

std::optional<OperatorKind> resize(OnnxNodeView& node) {
  node.need_inputs(1, 4);
  for (std::size_t i = 1; i < node.input_count(); ++i) node.not_trained(i);
  if (node.attribute("axes") != nullptr) {
    node.fail("its attribute 'axes' is not supported", "give scales or sizes for all dimensions");
  }
  if (node.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    node.fail("its keep_aspect_ratio_policy is not supported", "give the sizes themselves");
  }
  const std::size_t scales = node.operation() == "Upsample" || node.opset() < 11 ? 1 : 2;
  if (node.has(3)) {
    if (!known(node, 3)) return moved_as_declared(node, 3);
    const Dims sizes = *node.integers(std::size_t{3});
    if (sizes.size() != node.rank(0)) node.fail("its sizes do not fit its input");
    return resized(node, sizes);
  }
  if (const OnnxAttribute* given = node.attribute("scales")) {
    const auto* list = std::get_if<std::vector<double>>(&given->value);
    if (list == nullptr) node.fail("attribute 'scales' is of the wrong type");
    return resized(node, scaled(node, *list));
  }
  const auto* list = node.reals(scales);
  if (list == nullptr) return moved_as_declared(node, scales);
  return resized(node, scaled(node, *list));
}

std::optional<OperatorKind> depth_to_space(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.need_rank(0, 4, 4);
  Dims out = node.dims(0);
  const std::int64_t block = node.need_integer("blocksize");
  if (block < 1 || block > 1 << 15) node.fail(fmt::format("its blocksize is {}", block));
  const bool to_space = node.operation() == "DepthToSpace";
  const bool divides =
      to_space ? out[1] % (block * block) == 0 : out[2] % block == 0 && out[3] % block == 0;
  if (!divides) node.fail(fmt::format("blocks of {} do not divide {}", block, text_of(out)));
  out[1] = to_space ? out[1] / (block * block) : node.times(out[1], block * block);
  for (const std::size_t d : {2, 3}) {
    out[d] = to_space ? node.times(out[d], block) : out[d] / block;
  }
  return moved(node, std::move(out));
}

/// Operations that find out while running how much they return.
std::optional<OperatorKind> found_at_run_time(OnnxNodeView& node) {
  node.need_inputs(1, 2);
  const std::size_t decides = node.operation() == "Compress" ? 1 : 0;
  node.set_declared(0, node.operation() == "NonZero" ? OnnxType::i64 : node.type(0), decides);
  return DataMovement{};
}

constexpr std::array<OnnxRuleEntry, 15> movement_rules{{
    {"Compress", found_at_run_time},
    {"Concat", concat},
    {"DepthToSpace", depth_to_space},
    {"Expand", expand},
    {"NonZero", found_at_run_time},
    {"Pad", pad},
    {"Resize", resize},
    {"ReverseSequence", same_shape},
    {"Slice", slice},
    {"SpaceToDepth", depth_to_space},
    {"Split", split},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Trilu", same_shape},
    {"Upsample", resize},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_movement_rules() { return movement_rules; }

}  // namespace braid
