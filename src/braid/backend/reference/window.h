#pragma once

#include <cstdint>
#include <vector>

#include "braid/program/node_call.h"

namespace braid {

/// How a window moves over the spatial dimensions of a tensor.
struct SlidingWindow {
  Shape kernel, strides, dilations;
  Shape before, after;  ///< Padding.
  Shape in, out;        ///< Spatial sizes of the tensor and of what comes out.

  std::int64_t kernel_positions() const { return element_count(kernel); }
  std::int64_t in_positions() const { return element_count(in); }
  std::int64_t out_positions() const { return element_count(out); }
};

/// The window of a convolution or pooling over spatial sizes `in`, from the node's attributes
/// (ONNX, Conv and MaxPool). Fails where the kernel is larger than its input.
SlidingWindow sliding_window(const NodeCall& call, Shape kernel, const Shape& in);

/// That of a transposed convolution: `in` is what the window is slid over, so the node's output,
/// and `out` the spatial sizes of its input (ONNX, ConvTranspose).
SlidingWindow transposed_window(const NodeCall& call, Shape kernel, const Shape& from);

/// The element of the input under each position of the kernel (outer) for each position of the
/// output (inner); -1 in the padding.
std::vector<std::int64_t> window_places(const SlidingWindow& window);

}  // namespace braid
