#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Interpolation onto another number of elements, one dimension after the other.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

/// An element of the input and what it counts.
struct Tap {
  std::int64_t index = 0;
  double weight = 0;
};

/// One dimension of a resizing.
struct ResizedDimension {
  std::int64_t in = 1, out = 1;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

/// The node's attributes.
struct ResizeRule {
  std::string mode, transformation, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool exclude_outside = false;
};

/// Where output element `i` lies in the input (ONNX, Resize).
double source_position(const ResizeRule& rule, const ResizedDimension& dimension, std::int64_t i) {
  const auto x = static_cast<double>(i);
  const auto in = static_cast<double>(dimension.in);
  const double out = in * dimension.scale;
  if (rule.transformation == "asymmetric") return x / dimension.scale;
  // Of scales whose sizes are cut off, ONNX's data take the size before that; others the one after.
  if (rule.transformation == "align_corners") {
    return dimension.out == 1 ? 0 : x * (in - 1) / (out - 1);
  }
  if (rule.transformation == "pytorch_half_pixel") {
    return dimension.out > 1 ? (x + 0.5) / dimension.scale - 0.5 : 0;
  }
  if (rule.transformation == "tf_half_pixel_for_nn") return (x + 0.5) / dimension.scale;
  if (rule.transformation == "half_pixel_symmetric") {
    const double adjusted = static_cast<double>(dimension.out) / out;
    return in / 2 * (1 - adjusted) + (x + 0.5) / dimension.scale - 0.5;
  }
  if (rule.transformation == "tf_crop_and_resize") {
    const double span = dimension.roi_end - dimension.roi_start;
    if (dimension.out == 1) return (dimension.roi_start + dimension.roi_end) * (in - 1) / 2;
    return dimension.roi_start * (in - 1) +
           x * span * (in - 1) / static_cast<double>(dimension.out - 1);
  }
  return (x + 0.5) / dimension.scale - 0.5;  // half_pixel
}

double nearest_whole(const std::string& way, double position) {
  if (way == "floor") return std::floor(position);
  if (way == "ceil") return std::ceil(position);
  if (way == "round_prefer_ceil") return std::floor(position + 0.5);
  return std::ceil(position - 0.5);  // round_prefer_floor
}

/// Weights of the four neighbours from one before `position` on (Keys 1981, equation 4).
std::vector<Tap> cubic_taps(const ResizeRule& rule, double position) {
  const double base = std::floor(position);
  const double t = position - base;
  const double a = rule.cubic;
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto first = static_cast<std::int64_t>(base) - 1;
  return {
      {first, far(1 + t)}, {first + 1, near(t)}, {first + 2, near(1 - t)}, {first + 3, far(2 - t)}};
}

/// What output element `i` is made of; indices are in the input. nullopt for what lies outside of
/// it and is extrapolated.
std::optional<std::vector<Tap>> taps_of(const ResizeRule& rule, const ResizedDimension& dimension,
                                        std::int64_t i) {
  if (dimension.in == dimension.out && dimension.scale == 1 &&
      rule.transformation != "tf_crop_and_resize") {
    return std::vector<Tap>{{i, 1}};
  }
  const double position = source_position(rule, dimension, i);
  const std::int64_t last = dimension.in - 1;
  if (rule.transformation == "tf_crop_and_resize" &&
      (position < 0 || position > static_cast<double>(last))) {
    return std::nullopt;
  }
  std::vector<Tap> taps;
  if (rule.mode == "nearest") {
    taps = {{static_cast<std::int64_t>(nearest_whole(rule.nearest, position)), 1}};
  } else if (rule.mode == "linear") {
    const double base = std::floor(position);
    const auto first = static_cast<std::int64_t>(base);
    taps = {{first, 1 - (position - base)}, {first + 1, position - base}};
  } else {
    taps = cubic_taps(rule, position);
  }
  double sum = 0;
  for (Tap& tap : taps) {
    if (rule.exclude_outside && (tap.index < 0 || tap.index > last)) tap.weight = 0;
    tap.index = std::clamp<std::int64_t>(tap.index, 0, last);
    sum += tap.weight;
  }
  if (rule.exclude_outside) {
    for (Tap& tap : taps) tap.weight /= sum;
  }
  return taps;
}

/// A tensor on its way; what is outside of the input is extrapolated at the end.
struct PartlyResized {
  Shape shape;
  std::vector<double> numbers;
  std::vector<bool> outside;
};

PartlyResized resized_along(const PartlyResized& from, std::size_t d, const ResizeRule& rule,
                            const ResizedDimension& dimension) {
  const std::span<const std::int64_t> sizes(from.shape);
  const std::int64_t outer = element_count(sizes.first(d));
  const std::int64_t inner = element_count(sizes.subspan(d + 1));
  PartlyResized result{from.shape, {}, {}};
  result.shape[d] = dimension.out;
  result.numbers.assign(at(element_count(result.shape)), 0.0);
  result.outside.assign(result.numbers.size(), false);
  for (std::int64_t i = 0; i < dimension.out; ++i) {
    const auto taps = taps_of(rule, dimension, i);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t e = 0; e < inner; ++e) {
        const std::size_t to = at((o * dimension.out + i) * inner + e);
        if (!taps) {
          result.outside[to] = true;
          continue;
        }
        for (const Tap& tap : *taps) {
          const std::size_t place = at((o * dimension.in + tap.index) * inner + e);
          result.numbers[to] += tap.weight * from.numbers[place];
          if (from.outside[place]) result.outside[to] = true;
        }
      }
    }
  }
  return result;
}

ResizeRule resize_rule(const NodeCall& call) {
  const bool old = call.operation() == "Upsample" || call.opset() < 11;
  ResizeRule rule;
  rule.mode = call.text("mode", "nearest");
  if (rule.mode == "bilinear") rule.mode = "linear";
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic") {
    call.fail(fmt::format("the mode '{}' is not known", rule.mode));
  }
  rule.transformation =
      old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel");
  rule.nearest = old ? "floor" : call.text("nearest_mode", "round_prefer_floor");
  rule.cubic = call.real("cubic_coeff_a", -0.75);
  rule.extrapolation = call.real("extrapolation_value", 0);
  rule.exclude_outside = call.flag("exclude_outside", false);
  if (call.flag("antialias", false)) call.fail("its attribute 'antialias' is not supported");
  if (call.has_attribute("axes")) {
    call.fail("its attribute 'axes' is not supported", "give scales or sizes for all dimensions");
  }
  if (call.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    call.fail("its keep_aspect_ratio_policy is not supported", "give the sizes themselves");
  }
  return rule;
}

std::vector<ResizedDimension> resized_dimensions(const NodeCall& call, const ResizeRule& rule) {
  const Shape& in = call.shape(0);
  const bool old = call.operation() == "Upsample" || call.opset() < 11;
  const std::size_t scales_at = old ? 1 : 2;
  std::vector<double> scales;
  Shape sizes;
  if (const auto* given = call.reals("scales")) scales = *given;
  if (call.has(scales_at)) scales = call.reals(scales_at);
  if (!old && call.has(3)) sizes = call.integers(3);
  const bool by_size = !sizes.empty();
  if ((by_size ? sizes.size() : scales.size()) != in.size()) {
    call.fail("its scales or sizes do not fit " + shape_text(in));
  }
  std::vector<ResizedDimension> dimensions(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    ResizedDimension& each = dimensions[d];
    each.in = in[d];
    const auto size = static_cast<double>(in[d]);
    each.scale = by_size ? static_cast<double>(sizes[d]) / size : scales[d];
    each.out = by_size ? sizes[d] : static_cast<std::int64_t>(std::floor(size * scales[d]));
    if (each.out < 0 || !(each.scale > 0)) call.fail("a size or scale is not positive");
  }
  if (rule.transformation == "tf_crop_and_resize") {
    const std::vector<double> roi = call.reals(1);
    if (roi.size() != 2 * in.size()) call.fail("its roi does not fit " + shape_text(in));
    for (std::size_t d = 0; d < in.size(); ++d) {
      dimensions[d].roi_start = roi[d];
      dimensions[d].roi_end = roi[d + in.size()];
    }
  }
  return dimensions;
}

Tensors resize(const NodeCall& call) {
  call.need_inputs(1, 4);
  const ResizeRule rule = resize_rule(call);
  PartlyResized now{call.shape(0), call.reals(0), {}};
  if (now.numbers.empty()) call.fail("resizes nothing");
  now.outside.assign(now.numbers.size(), false);
  const std::vector<ResizedDimension> dimensions = resized_dimensions(call, rule);
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const bool stays = dimensions[d].in == dimensions[d].out && dimensions[d].scale == 1 &&
                       dimensions[d].roi_start == 0 && dimensions[d].roi_end == 1;
    if (!stays) now = resized_along(now, d, rule, dimensions[d]);
  }
  for (std::size_t i = 0; i < now.numbers.size(); ++i) {
    if (now.outside[i]) now.numbers[i] = rule.extrapolation;
  }
  return {tensor_of(call.type(0), now.shape, now.numbers)};
}

constexpr std::array<ReferenceEntry, 2> resize_entries{{
    {"Resize", resize},
    {"Upsample", resize},
}};

}  // namespace

std::span<const ReferenceEntry> resize_kernels() { return resize_entries; }

}  // namespace braid
