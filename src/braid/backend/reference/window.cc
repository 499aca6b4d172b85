#include "braid/backend/reference/window.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/base/index.h"

namespace braid {
namespace {

Shape per_dimension(const NodeCall& call, std::string_view name, std::size_t count,
                    std::int64_t otherwise, std::int64_t least) {
  const auto* given = call.integers(name);
  if (given == nullptr || given->empty()) return Shape(count, otherwise);
  if (given->size() != count || *std::min_element(given->begin(), given->end()) < least) {
    call.fail(fmt::format("attribute '{}' is {}", name, shape_text(*given)));
  }
  return *given;
}

/// A window with the attributes of the node and no sizes yet; pads are explicit ones.
SlidingWindow attribute_window(const NodeCall& call, Shape kernel) {
  const std::size_t count = kernel.size();
  SlidingWindow window;
  window.kernel = std::move(kernel);
  for (const std::int64_t size : window.kernel) {
    if (size < 1) call.fail("its kernel has the shape " + shape_text(window.kernel));
  }
  window.strides = per_dimension(call, "strides", count, 1, 1);
  window.dilations = per_dimension(call, "dilations", count, 1, 1);
  const Shape pads = per_dimension(call, "pads", 2 * count, 0, -(std::int64_t{1} << 31));
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(count));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(count), pads.end());
  return window;
}

std::int64_t extent(const SlidingWindow& window, std::size_t d) {
  return window.dilations[d] * (window.kernel[d] - 1) + 1;
}

std::string padding_of(const NodeCall& call) {
  const std::string padding = call.text("auto_pad", "NOTSET");
  if (padding != "NOTSET" && padding != "VALID" && padding != "SAME_UPPER" &&
      padding != "SAME_LOWER" && !padding.empty()) {
    call.fail("its auto_pad is not known");
  }
  return padding.empty() ? "NOTSET" : padding;
}

/// Splits padding in two halves; what is odd goes to the end, or to the front.
void halve(SlidingWindow& window, std::size_t d, std::int64_t total, bool odd_in_front) {
  window.before[d] = odd_in_front ? total - total / 2 : total / 2;
  window.after[d] = total - window.before[d];
}

}  // namespace

SlidingWindow sliding_window(const NodeCall& call, Shape kernel, const Shape& in) {
  SlidingWindow window = attribute_window(call, std::move(kernel));
  const std::string padding = padding_of(call);
  const bool ceil = call.flag("ceil_mode", false);
  window.in = in;
  window.out.resize(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    const std::int64_t stride = window.strides[d];
    if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      window.out[d] = (in[d] + stride - 1) / stride;
      const std::int64_t total = (window.out[d] - 1) * stride + extent(window, d) - in[d];
      halve(window, d, std::max<std::int64_t>(total, 0), padding == "SAME_LOWER");
      continue;
    }
    if (padding == "VALID") window.before[d] = window.after[d] = 0;
    const std::int64_t room = in[d] + window.before[d] + window.after[d] - extent(window, d);
    if (room < 0) {
      call.fail("its kernel is larger than its input of the sizes " + shape_text(in));
    }
    window.out[d] = room / stride + 1;
    // The last window of ceil_mode must begin inside the input or the padding before it.
    if (ceil && room % stride != 0 && window.out[d] * stride < in[d] + window.before[d]) {
      ++window.out[d];
    }
  }
  return window;
}

SlidingWindow transposed_window(const NodeCall& call, Shape kernel, const Shape& from) {
  SlidingWindow window = attribute_window(call, std::move(kernel));
  const std::size_t count = from.size();
  const Shape extra = per_dimension(call, "output_padding", count, 0, 0);
  const std::string padding = padding_of(call);
  const bool same = padding == "SAME_UPPER" || padding == "SAME_LOWER";
  window.out = from;
  window.in.resize(count);
  const auto* given = call.integers("output_shape");
  if (given != nullptr && given->size() < count) {
    call.fail("its output_shape is " + shape_text(*given));
  }
  for (std::size_t d = 0; d < count; ++d) {
    const std::int64_t full = (from[d] - 1) * window.strides[d] + extra[d] + extent(window, d);
    if (given != nullptr || same) {
      // Some exporters give samples and channels too.
      window.in[d] =
          given != nullptr ? (*given)[given->size() - count + d] : from[d] * window.strides[d];
      halve(window, d, std::max<std::int64_t>(full - window.in[d], 0), padding != "SAME_UPPER");
      continue;
    }
    if (padding == "VALID") window.before[d] = window.after[d] = 0;
    window.in[d] = full - window.before[d] - window.after[d];
    if (window.in[d] < 1) call.fail(fmt::format("its output has the size {}", window.in[d]));
  }
  return window;
}

std::vector<std::int64_t> window_places(const SlidingWindow& window) {
  const std::size_t count = window.in.size();
  const Shape strides = row_major_strides(window.in);
  std::vector<std::int64_t> places;
  places.reserve(at(window.kernel_positions() * window.out_positions()));
  Shape kernel(count, 0);
  for (std::int64_t k = 0; k < window.kernel_positions(); ++k) {
    Shape out(count, 0);
    for (std::int64_t o = 0; o < window.out_positions(); ++o) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < count && place >= 0; ++d) {
        const std::int64_t index =
            out[d] * window.strides[d] + kernel[d] * window.dilations[d] - window.before[d];
        place = index < 0 || index >= window.in[d] ? -1 : place + index * strides[d];
      }
      places.push_back(place);
      for (std::size_t d = count; d-- > 0 && ++out[d] == window.out[d];) out[d] = 0;
    }
    for (std::size_t d = count; d-- > 0 && ++kernel[d] == window.kernel[d];) kernel[d] = 0;
  }
  return places;
}

}  // namespace braid
