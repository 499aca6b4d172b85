#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

/// How a window moves over the spatial dimensions.
struct OnnxWindow {
  Dims kernel, strides, dilations, pads;
};

OnnxWindow window_of(const OnnxNodeView& node, Dims kernel) {
  const std::size_t spatial = kernel.size();
  for (const std::int64_t size : kernel) {
    if (size < 1 || size > std::int64_t{1} << 31) {
      node.fail(fmt::format("its kernel has the shape {}", text_of(kernel)));
    }
  }
  OnnxWindow window;
  window.kernel = std::move(kernel);
  window.strides = node.per_dimension("strides", spatial, 1, 1);
  window.dilations = node.per_dimension("dilations", spatial, 1, 1);
  window.pads = node.per_dimension("pads", 2 * spatial, -(std::int64_t{1} << 31), 0);
  return window;
}

std::int64_t extent(const OnnxWindow& window, std::size_t d) {
  return window.dilations[d] * (window.kernel[d] - 1) + 1;
}

/// The spatial sizes of the output (ONNX, Conv and MaxPool).
Dims slid_over(const OnnxNodeView& node, const Dims& spatial, const OnnxWindow& window) {
  const std::string padding = node.text("auto_pad", "NOTSET");
  const bool ceil = node.integer("ceil_mode", 0) != 0;
  Dims out;
  for (std::size_t d = 0; d < spatial.size(); ++d) {
    const std::int64_t stride = window.strides[d];
    std::int64_t room = 0;
    if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      out.push_back((spatial[d] + stride - 1) / stride);
      continue;
    }
    if (padding != "NOTSET" && padding != "VALID") node.fail("its auto_pad is not known");
    room = spatial[d] - extent(window, d);
    if (padding == "NOTSET") room += window.pads[d] + window.pads[d + spatial.size()];
    if (room < 0) {
      node.fail(
          fmt::format("its kernel is larger than its input of the sizes {}", text_of(spatial)));
    }
    std::int64_t count = room / stride + 1;
    // The last window of ceil_mode must begin inside the input or the padding before it.
    if (ceil && room % stride != 0) {
      const std::int64_t before = padding == "NOTSET" ? window.pads[d] : 0;
      if (count * stride < spatial[d] + before) ++count;
    }
    out.push_back(count);
  }
  return out;
}

Dims spatial_of(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

Dims with_channels(std::int64_t samples, std::int64_t channels, const Dims& spatial) {
  Dims dims{samples, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

/// The kernel's sizes, which an attribute may repeat.
Dims kernel_of(const OnnxNodeView& node, std::size_t weight) {
  Dims kernel = spatial_of(node.dims(weight));
  const auto* declared = node.integers("kernel_shape");
  if (declared != nullptr && *declared != kernel) {
    node.fail(fmt::format("kernel_shape is {} and the weight's shape {}", text_of(*declared),
                          text_of(node.dims(weight))));
  }
  return kernel;
}

/// A convolution of operand 0 with the weight in operand `weight`.
Convolution convolution(OnnxNodeView& node, std::size_t weight, OnnxType type) {
  node.need_rank(0, 3, 5);
  node.need_rank(weight, node.rank(0), node.rank(0));
  const Dims& in = node.dims(0);
  const Dims& w = node.dims(weight);
  Convolution kind;
  kind.groups = node.integer("group", 1);
  if (kind.groups < 1 || w[0] % kind.groups != 0 || in[1] % kind.groups != 0 ||
      in[1] / kind.groups != w[1]) {
    node.fail(fmt::format("{} groups of {} channels do not fit a weight of the shape {}",
                          kind.groups, in[1], text_of(w)));
  }
  const Dims spatial = spatial_of(in);
  const OnnxWindow window = window_of(node, kernel_of(node, weight));
  const Dims out = slid_over(node, spatial, window);
  kind.samples = in[0];
  kind.in_channels = in[1];
  kind.out_channels = w[0];
  kind.in_positions = node.product(spatial);
  kind.out_positions = node.product(out);
  kind.kernel_positions = node.product(window.kernel);
  node.set(0, type, with_channels(in[0], w[0], out));
  return kind;
}

std::optional<OperatorKind> conv(OnnxNodeView& node) {
  node.need_inputs(2, 3);
  Convolution kind = convolution(node, 1, node.type(0));
  kind.bias = node.has(2);
  return kind;
}

std::optional<OperatorKind> conv_integer(OnnxNodeView& node) {
  node.need_inputs(2, 4);
  node.not_trained(2);
  node.not_trained(3);
  return convolution(node, 1, OnnxType::i32);
}

std::optional<OperatorKind> qlinear_conv(OnnxNodeView& node) {
  node.need_inputs(8, 9);
  for (const std::size_t scale : {1, 2, 4, 5, 6, 7}) node.not_trained(scale);
  Convolution kind = convolution(node, 3, node.type(7));
  kind.bias = node.has(8);
  return kind;
}

/// The spatial sizes of a transposed convolution's output (ONNX, ConvTranspose).
Dims spread_over(const OnnxNodeView& node, const Dims& spatial, const OnnxWindow& window) {
  const std::size_t count = spatial.size();
  if (node.attribute("output_shape") != nullptr) {
    return node.per_dimension("output_shape", count, 1, 1);
  }
  const Dims extra = node.per_dimension("output_padding", count, 0, 0);
  const std::string padding = node.text("auto_pad", "NOTSET");
  Dims out;
  for (std::size_t d = 0; d < count; ++d) {
    if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      out.push_back(node.times(spatial[d], window.strides[d]));
      continue;
    }
    const std::int64_t pads = padding == "VALID" ? 0 : window.pads[d] + window.pads[d + count];
    const std::int64_t begun = node.times(spatial[d] - 1, window.strides[d]);
    std::int64_t size = 0;
    if (__builtin_add_overflow(begun, extra[d] + extent(window, d) - pads, &size)) {
      node.fail("a size overflows 64 bits");
    }
    out.push_back(size);
  }
  return out;
}

std::optional<OperatorKind> conv_transpose(OnnxNodeView& node) {
  node.need_inputs(2, 3);
  node.need_rank(0, 3, 5);
  node.need_rank(1, node.rank(0), node.rank(0));
  const Dims& in = node.dims(0);
  const Dims& w = node.dims(1);
  Convolution kind{.transposed = true, .bias = node.has(2)};
  kind.groups = node.integer("group", 1);
  if (kind.groups < 1 || w[0] != in[1] || in[1] % kind.groups != 0) {
    node.fail(fmt::format("{} groups of {} channels do not fit a weight of the shape {}",
                          kind.groups, in[1], text_of(w)));
  }
  const Dims spatial = spatial_of(in);
  const OnnxWindow window = window_of(node, kernel_of(node, 1));
  const Dims out = spread_over(node, spatial, window);
  kind.samples = in[0];
  kind.in_channels = in[1];
  kind.out_channels = node.times(w[1], kind.groups);
  node.set(0, node.type(0), with_channels(in[0], kind.out_channels, out));
  kind.in_positions = node.product(spatial);
  kind.out_positions = node.product(out);
  kind.kernel_positions = node.product(window.kernel);
  return kind;
}

std::optional<OperatorKind> pool(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.need_rank(0, 3, 1 << 10);
  const Dims& in = node.dims(0);
  if (node.attribute("kernel_shape") == nullptr) node.fail("attribute 'kernel_shape' is missing");
  const OnnxWindow window =
      window_of(node, node.per_dimension("kernel_shape", in.size() - 2, 1, 1));
  const Dims out = slid_over(node, spatial_of(in), window);
  const Dims dims = with_channels(in[0], in[1], out);
  node.set(0, node.type(0), dims);
  node.set(1, OnnxType::i64, dims);
  // Overlapping windows read elements again, but from the cache: they are counted once.
  return Reduction{node.elements(0)};
}

std::optional<OperatorKind> global_pool(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.need_rank(0, 3, 1 << 10);
  Dims out = node.dims(0);
  std::fill(out.begin() + 2, out.end(), 1);
  node.set(0, node.type(0), std::move(out));
  return Reduction{node.elements(0)};
}

constexpr std::array<OnnxRuleEntry, 10> window_rules{{
    {"AveragePool", pool},
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"ConvTranspose", conv_transpose},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"LpPool", pool},
    {"MaxPool", pool},
    {"QLinearConv", qlinear_conv},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_window_rules() { return window_rules; }

}  // namespace braid
