#include <algorithm>
#include <optional>

#include "braid/base/index.h"
#include "braid/frontend/graph_translator.h"

namespace braid {
namespace {

/// Strides and paddings with which windows of `kernel` make `out` of `in` positions.
struct Windows {
  Shape strides, pads;
};

std::optional<Windows> windows_of(const Shape& in, const Shape& out, const Shape& kernel) {
  Windows windows;
  Shape ends;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (out[d] < 1 || kernel[d] < 1) return std::nullopt;
    const std::int64_t stride = std::max<std::int64_t>(1, (in[d] + out[d] / 2) / out[d]);
    // Negative where some of the last positions are left over.
    const std::int64_t padding =
        std::max<std::int64_t>(0, (out[d] - 1) * stride + kernel[d] - in[d]);
    if (padding > 2 * (kernel[d] - 1)) return std::nullopt;
    if ((in[d] + padding - kernel[d]) / stride + 1 != out[d]) return std::nullopt;
    windows.strides.push_back(stride);
    windows.pads.push_back((padding + 1) / 2);
    ends.push_back(padding / 2);
  }
  windows.pads.insert(windows.pads.end(), ends.begin(), ends.end());
  return windows;
}

Shape positions_of(const Shape& map) { return {map.begin() + 2, map.end()}; }

}  // namespace

GraphTranslator::Written GraphTranslator::result(const Convolution& kind) {
  if (kind.transposed) refuse("transposed convolutions are not written as operations");
  const Written x = operand(0);
  const Written weight = operand(1);
  if (x.shape.size() < 3 || weight.shape.size() != x.shape.size()) {
    refuse("its operands are no feature maps");
  }
  Shape out = output_shape();
  // Patches of an image are written as rows: one for each position.
  const bool are_rows = out == Shape{kind.out_positions, kind.out_channels};
  if (are_rows) {
    out = {1, kind.out_channels};
    for (std::size_t d = 2; d < x.shape.size(); ++d) {
      out.push_back(x.shape[d] / weight.shape[d]);
    }
  }
  const Shape kernel = positions_of(weight.shape);
  const auto windows = out.size() == x.shape.size()
                           ? windows_of(positions_of(x.shape), positions_of(out), kernel)
                           : std::nullopt;
  if (!windows) refuse("no stride and padding explain the size of its result");
  std::vector<ValueId> inputs{x.value, weight.value};
  if (kind.bias) inputs.push_back(operand(2).value);
  const ValueId y = node("Conv", inputs,
                         {{"strides", windows->strides},
                          {"pads", windows->pads},
                          {"kernel_shape", kernel},
                          {"group", kind.groups}});
  if (!are_rows) return {y, out};
  const Shape columns{kind.out_channels, kind.out_positions};
  return {node("Transpose", {reshaped(y, columns)}, {{"perm", Shape{1, 0}}}),
          {kind.out_positions, kind.out_channels}};
}

GraphTranslator::Written GraphTranslator::result(const Reduction&) {
  const Written x = operand(0);
  const Shape out = output_shape();
  if (x.shape.size() != 4 || out.size() != 4 || out[1] != x.shape[1]) {
    refuse("nothing says what it reduces");
  }
  if (out[2] == 1 && out[3] == 1) return {node("GlobalAveragePool", {x.value}), out};
  // Windows of two or three positions, as networks have them.
  for (const std::int64_t size : {3, 2}) {
    const Shape kernel{size, size};
    const auto windows = windows_of(positions_of(x.shape), positions_of(out), kernel);
    if (!windows) continue;
    return {
        node("MaxPool", {x.value},
             {{"kernel_shape", kernel}, {"strides", windows->strides}, {"pads", windows->pads}}),
        out};
  }
  refuse("no window explains the size of its result");
}

}  // namespace braid
