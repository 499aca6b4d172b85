#include <algorithm>
#include <utility>

#include "braid/backend/halide/module/halide_network.h"
#include "braid/backend/reference/window.h"
#include "braid/base/index.h"

// Convolutions of plain images, [samples × channels × spatial sizes].

namespace braid {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

struct ConvolutionLoops {
  Func sums, padded;
  HalideMachine machine;
  std::int64_t group_channels = 1;  ///< Of the output.
  std::int64_t width = 1;           ///< Of the output.
  int vectors = 1, channels = 1;    ///< Of a tile, whose channels divide a group's.

  void schedule(Func& stage) {
    const std::vector<Var> v = stage.args();
    const std::size_t channel = v.size() - 2;
    const Var group("group"), in_group("in_group"), channel_tile("channel_tile"),
        in_channel("in_channel"), column_tile("column_tile"), in_column("in_column");
    const int vector = static_cast<int>(std::min<std::int64_t>(machine.vector, width));
    const int across =
        static_cast<int>(std::min<std::int64_t>(vectors, (width + vector - 1) / vector));
    const int tile_width = vector * across;
    const auto tail = width >= tile_width ? Halide::TailStrategy::ShiftInwards
                                          : Halide::TailStrategy::GuardWithIf;
    stage.split(v[channel], group, in_group, static_cast<int>(group_channels));
    stage.split(in_group, channel_tile, in_channel, channels);
    stage.split(v[0], column_tile, in_column, tile_width, tail);
    std::vector<Halide::VarOrRVar> order{in_column, in_channel, column_tile};
    for (std::size_t d = 1; d < channel; ++d) order.emplace_back(v[d]);
    order.emplace_back(channel_tile);
    order.emplace_back(group);
    stage.reorder(order);
    stage.vectorize(in_column, vector).unroll(in_column).unroll(in_channel);
    const std::vector<Var> s = sums.args();
    sums.compute_at(stage, column_tile).vectorize(s[0], vector).unroll(s[0]).unroll(s[channel]);
    std::vector<Halide::VarOrRVar> inner{s[0], s[channel]};
    for (const Halide::RVar& each : sums.rvars(0)) inner.emplace_back(each);
    sums.update().reorder(inner).vectorize(s[0], vector).unroll(s[0]).unroll(s[channel]);
    padded.compute_at(stage, group)
        .vectorize(padded.args()[0], vector, Halide::TailStrategy::RoundUp);
    if (machine.threads > 1) stage.parallel(group);
  }
};

/// The image with its padding: nothing outside.
Func padded_image(const HalideTensor& x, const SlidingWindow& window) {
  const std::vector<Var> v = halide_variables(x.shape.size());
  HalideExprs coordinates(v.rbegin(), v.rend());
  Expr inside;
  for (std::size_t d = 0; d < window.in.size(); ++d) {
    Expr& c = coordinates[d + 2];
    const auto size = static_cast<int>(window.in[d]), before = static_cast<int>(window.before[d]);
    const Expr place = c - before;
    const Expr is_in = place >= 0 && place < size;
    inside = inside.defined() ? inside && is_in : is_in;
    c = Halide::clamp(place, 0, size - 1);
  }
  Func padded("padded");
  padded(v) = Halide::select(inside, x.element(coordinates), 0.0F);
  return padded;
}

/// Weights as [groups · outputs / tile × inputs × places × tile]: in the order in which they are
/// read, for `tile` output channels at once.
Halide::Buffer<float> packed_weights(const DenseTensor& weight, std::int64_t channels) {
  const std::span<const float> from = weight.as<float>();
  const std::int64_t outputs = weight.shape[0], row = weight.count() / outputs;
  Halide::Buffer<float> packed(static_cast<int>(channels), static_cast<int>(row),
                               static_cast<int>(outputs / channels));
  float* to = packed.data();
  for (std::int64_t o = 0; o < outputs; o += channels) {
    for (std::int64_t i = 0; i < row; ++i) {
      for (std::int64_t c = 0; c < channels; ++c) *to++ = from[at((o + c) * row + i)];
    }
  }
  return packed;
}

}  // namespace

std::optional<HalideStage> convolution_stage(const HalideNode& node, const HalideMachine& machine,
                                             const HalideTile& tile) {
  if (node.call->operation() != "Conv") return std::nullopt;
  const HalideTensor& x = node.operands[0];
  const std::shared_ptr<const DenseTensor> weight = node.operands[1].constant;
  if (weight == nullptr) node.call->fail("has weights that are computed");
  const Shape& sizes = weight->shape;
  const SlidingWindow window = sliding_window(*node.call, {sizes.begin() + 2, sizes.end()},
                                              {x.shape.begin() + 2, x.shape.end()});
  const std::int64_t groups = node.call->integer("group", 1);
  ConvolutionLoops loops{{},
                         padded_image(x, window),
                         machine,
                         sizes[0] / groups,
                         window.out.back(),
                         tile.vectors,
                         tile.rows};
  while (loops.group_channels % loops.channels != 0) --loops.channels;
  const int channels = loops.channels;
  const Halide::ImageParam weights = node.constants->add(packed_weights(*weight, channels));
  const std::size_t spatial = window.in.size();
  Halide::Region ranges;
  for (std::size_t d = spatial; d-- > 0;)
    ranges.emplace_back(0, static_cast<int>(window.kernel[d]));
  ranges.emplace_back(0, static_cast<int>(sizes[1]));
  const RDom k(ranges);
  const std::vector<Var> v = halide_variables(node.rank());
  const Expr channel = v[spatial];
  HalideExprs image;
  Expr place = k[static_cast<int>(spatial)];  // In the row of weights of an output channel.
  for (std::size_t d = spatial; d-- > 0;) {
    place = place * static_cast<int>(window.kernel[spatial - 1 - d]) + k[static_cast<int>(d)];
  }
  for (std::size_t d = 0; d < spatial; ++d) {
    const std::size_t axis = spatial - 1 - d;
    image.push_back(v[d] * static_cast<int>(window.strides[axis]) +
                    k[static_cast<int>(d)] * static_cast<int>(window.dilations[axis]));
  }
  const auto group_channels = static_cast<int>(loops.group_channels);
  image.push_back(channel / group_channels * static_cast<int>(sizes[1]) +
                  k[static_cast<int>(spatial)]);
  image.emplace_back(v[spatial + 1]);
  loops.sums(v) = 0.0F;
  loops.sums(v) += loops.padded(image) * weights(channel % channels, place, channel / channels);
  HalideElement element = element_of(loops.sums);
  if (node.operands.size() > 2) {
    element = [element, bias = node.operands[2].element](const HalideExprs& c) {
      return element(c) + bias({c[1]});
    };
  }
  return HalideStage{element, [loops](Func& stage) mutable { loops.schedule(stage); }};
}

}  // namespace braid
