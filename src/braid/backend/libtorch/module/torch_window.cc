#include <algorithm>
#include <limits>
#include <utility>

#include "braid/backend/libtorch/module/torch_operation.h"
#include "braid/backend/reference/window.h"
#include "braid/base/index.h"

namespace braid {
namespace {

Shape spatial_sizes(const Shape& shape) {
  if (shape.size() < 3) return {};
  return {shape.begin() + 2, shape.end()};
}

/// A window with as much padding before as behind, which the library does, or with its padding
/// put around the images first: then `pads` has it, from the last dimension.
struct TorchWindow {
  Shape kernel, strides, dilations, padding, pads;
};

TorchWindow torch_window(const TorchNode& node, const SlidingWindow& window,
                         std::int64_t most_inner) {
  TorchWindow result{window.kernel, window.strides, window.dilations, window.before, {}};
  const std::size_t count = window.kernel.size();
  if (count < 1 || count > 3) node.fail("has windows of another number of dimensions");
  bool inner = true;
  for (std::size_t d = 0; d < count; ++d) {
    if (window.before[d] < 0 || window.after[d] < 0) node.fail("has negative padding");
    inner = inner && window.before[d] == window.after[d] &&
            (most_inner == 0 || most_inner * window.before[d] <= window.kernel[d]);
  }
  if (inner) return result;
  result.padding.assign(count, 0);
  for (std::size_t d = count; d-- > 0;) {
    result.pads.push_back(window.before[d]);
    result.pads.push_back(window.after[d]);
  }
  return result;
}

at::Tensor padded(const at::Tensor& x, const TorchWindow& window, double filler) {
  return window.pads.empty() ? x : at::constant_pad_nd(x, window.pads, filler);
}

TorchOperation convolution(const TorchNode& node) {
  const Shape kernel = spatial_sizes(node.form(1).shape);
  const SlidingWindow sliding = sliding_window(node, kernel, spatial_sizes(node.form(0).shape));
  return torch_operation(
      [w = torch_window(node, sliding, 0), groups = node.integer("group", 1)](TorchOperands x) {
        const at::Tensor in = padded(x[0], w, 0);
        const at::Tensor bias = x.size() > 2 ? x[2] : at::Tensor();
        if (w.kernel.size() == 1) {
          return at::conv1d(in, x[1], bias, w.strides, w.padding, w.dilations, groups);
        }
        if (w.kernel.size() == 2) {
          return at::conv2d(in, x[1], bias, w.strides, w.padding, w.dilations, groups);
        }
        return at::conv3d(in, x[1], bias, w.strides, w.padding, w.dilations, groups);
      });
}

TorchOperation transposed_convolution(const TorchNode& node) {
  const Shape kernel = spatial_sizes(node.form(1).shape);
  const SlidingWindow slid = transposed_window(node, kernel, spatial_sizes(node.form(0).shape));
  Shape more;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const std::int64_t least = (slid.out[d] - 1) * slid.strides[d] - 2 * slid.before[d] +
                               slid.dilations[d] * (kernel[d] - 1) + 1;
    more.push_back(slid.in[d] - least);
    if (slid.before[d] < 0 || more.back() < 0 || more.back() >= slid.strides[d]) {
      node.fail("has padding that is not done");
    }
  }
  if (kernel.empty() || kernel.size() > 3) node.fail("has kernels of another rank");
  return torch_operation([slid, more, groups = node.integer("group", 1)](TorchOperands x) {
    const at::Tensor bias = x.size() > 2 ? x[2] : at::Tensor();
    const Shape none(more.size(), 0);
    return at::convolution(x[0], x[1], bias, slid.strides, slid.before, slid.dilations, true, more,
                           groups);
  });
}

TorchOperation max_pool(const TorchNode& node) {
  node.need_one_output();
  node.need_real(0);
  const auto* kernel = node.integers("kernel_shape");
  if (kernel == nullptr) node.fail("has no kernel_shape");
  const SlidingWindow sliding = sliding_window(node, *kernel, spatial_sizes(node.form(0).shape));
  return torch_operation(
      [w = torch_window(node, sliding, 2), ceil = node.flag("ceil_mode", false)](TorchOperands x) {
        const at::Tensor in = padded(x[0], w, -std::numeric_limits<double>::infinity());
        if (w.kernel.size() == 1) {
          return at::max_pool1d(in, w.kernel, w.strides, w.padding, w.dilations, ceil);
        }
        if (w.kernel.size() == 2) {
          return at::max_pool2d(in, w.kernel, w.strides, w.padding, w.dilations, ceil);
        }
        return at::max_pool3d(in, w.kernel, w.strides, w.padding, w.dilations, ceil);
      });
}

TorchOperation average_pool(const TorchNode& node) {
  node.need_real(0);
  const auto* kernel = node.integers("kernel_shape");
  if (kernel == nullptr) node.fail("has no kernel_shape");
  const SlidingWindow sliding = sliding_window(node, *kernel, spatial_sizes(node.form(0).shape));
  const bool counts = node.flag("count_include_pad", false);
  const bool ceil = node.flag("ceil_mode", false);
  const TorchWindow window = torch_window(node, sliding, 2);
  const bool dilates = std::any_of(window.dilations.begin(), window.dilations.end(),
                                   [](std::int64_t each) { return each != 1; });
  if (dilates || (ceil && counts) || (!window.pads.empty() && !counts)) {
    node.fail("counts elements as the library does not");
  }
  return torch_operation([w = window, ceil, counts](TorchOperands x) {
    const at::Tensor in = padded(x[0], w, 0);
    if (w.kernel.size() == 1) {
      return at::avg_pool1d(in, w.kernel, w.strides, w.padding, ceil, counts);
    }
    if (w.kernel.size() == 2) {
      return at::avg_pool2d(in, w.kernel, w.strides, w.padding, ceil, counts);
    }
    return at::avg_pool3d(in, w.kernel, w.strides, w.padding, ceil, counts);
  });
}

Shape image_dimensions(const TorchNode& node) {
  Shape dimensions;
  for (std::size_t d = 2; d < node.rank_of(0); ++d) {
    dimensions.push_back(static_cast<std::int64_t>(d));
  }
  if (dimensions.empty()) node.fail("is done for images alone");
  return dimensions;
}

TorchOperation global_average(const TorchNode& node) {
  return torch_operation(
      [d = image_dimensions(node)](TorchOperands x) { return x[0].mean(d, true); },
      [d = image_dimensions(node)](TorchOperands x, at::Tensor& out) {
        at::mean_out(out, x[0], d, true);
      });
}

TorchOperation global_greatest(const TorchNode& node) {
  return torch_operation(
      [d = image_dimensions(node)](TorchOperands x) { return x[0].amax(d, true); });
}

/// By whole factors, to which all ways to take the nearest agree, and bilinear.
TorchOperation resize(const TorchNode& node) {
  node.need_constants();
  const Shape& from = node.form(0).shape;
  const Shape& to = node.out_form().shape;
  const std::string mode = node.text("mode", "nearest");
  const std::string places =
      node.text("coordinate_transformation_mode",
                node.operation() == "Upsample" ? "asymmetric" : "half_pixel");
  for (std::size_t d = 0; d < from.size(); ++d) {
    const bool image = d >= 2;
    if (from[d] == 0 || to[d] % from[d] != 0 || (!image && to[d] != from[d])) {
      node.fail("is done for whole factors alone");
    }
  }
  const Shape sizes = spatial_sizes(to);
  if (mode == "nearest" && places != "align_corners") {
    const std::string rounding = node.text("nearest_mode", "round_prefer_floor");
    const bool by_floor =
        places == "asymmetric" && (rounding == "floor" || !node.has_attribute("nearest_mode"));
    const bool by_middle = places != "asymmetric" && rounding.starts_with("round");
    if (node.operation() == "Resize" && !by_floor && !by_middle) node.fail("rounds otherwise");
    if (sizes.size() == 1) {
      return torch_operation(
          [sizes](TorchOperands x) { return at::upsample_nearest1d(x[0], sizes); });
    }
    if (sizes.size() == 2) {
      return torch_operation(
          [sizes](TorchOperands x) { return at::upsample_nearest2d(x[0], sizes); },
          [sizes](TorchOperands x, at::Tensor& out) {
            at::upsample_nearest2d_out(out, x[0], sizes);
          });
    }
  }
  const bool corners = places == "align_corners";
  if (mode != "linear" || sizes.size() != 2 ||
      !(corners || places == "half_pixel" || places == "pytorch_half_pixel")) {
    node.fail("interpolates otherwise");
  }
  return torch_operation(
      [sizes, corners](TorchOperands x) { return at::upsample_bilinear2d(x[0], sizes, corners); });
}

}  // namespace

TorchEntries torch_window_entries() {
  return {{"AveragePool", {average_pool}},
          {"Conv", {convolution}},
          {"ConvTranspose", {transposed_convolution}},
          {"GlobalAveragePool", {global_average}},
          {"GlobalMaxPool", {global_greatest}},
          {"MaxPool", {max_pool}},
          {"Resize", {resize}},
          {"Upsample", {resize}}};
}

}  // namespace braid
