#include "braid/backend/kernel/layout.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {
namespace {

/// Where an element is: positions · at_position + (channel / block) · at_group + channel % block.
struct Strides {
  std::int64_t block = 1, at_group = 0, at_position = 0;
};

Strides strides_of(ImageLayout layout, std::int64_t channels, std::int64_t positions) {
  switch (layout) {
    case ImageLayout::plain:
      return {1, positions, 1};
    case ImageLayout::channels_last:
      return {channels, 0, channels};
    case ImageLayout::blocked:
      break;
  }
  return {channel_block(), channel_block() * positions, channel_block()};
}

/// One sample. Both blocks divide the channels, and the lesser one the greater, so that the
/// channels of a run of the lesser block are neighbours on both sides or a stride apart.
void turn_sample(const float* from, const Strides& in, float* to, const Strides& out,
                 std::int64_t channels, std::int64_t positions) {
  // In tiles of positions, so that what is read and what is written stay in the cache.
  constexpr std::int64_t tile = 64;
  const std::int64_t run =
      std::max(in.block, out.block) == 1 ? 1 : std::min<std::int64_t>(16, channels);
  for (std::int64_t p0 = 0; p0 < positions; p0 += tile) {
    const std::int64_t p1 = std::min(positions, p0 + tile);
    for (std::int64_t c0 = 0; c0 < channels; c0 += run) {
      const std::int64_t c1 = std::min(channels, c0 + run);
      for (std::int64_t c = c0; c < c1; ++c) {
        const float* source = from + c / in.block * in.at_group + c % in.block;
        float* target = to + c / out.block * out.at_group + c % out.block;
        for (std::int64_t p = p0; p < p1; ++p) {
          target[p * out.at_position] = source[p * in.at_position];
        }
      }
    }
  }
}

}  // namespace

std::string_view name_of(ImageLayout layout) {
  switch (layout) {
    case ImageLayout::plain:
      return "plain";
    case ImageLayout::channels_last:
      return "channels last";
    case ImageLayout::blocked:
      break;
  }
  return "blocked";
}

std::int64_t channel_block() {
  static const std::int64_t block = __builtin_cpu_supports("avx512f") != 0 ? 16 : 8;
  return block;
}

bool can_lie(const TensorForm& form, ImageLayout layout) {
  if (layout == ImageLayout::plain) return true;
  if (form.type != ElementType::f32 || form.shape.size() != 4 || form.count() == 0) return false;
  return layout != ImageLayout::blocked || form.shape[1] % channel_block() == 0;
}

void turn_layout(const DenseTensor& from, ImageLayout from_layout, DenseTensor& to,
                 ImageLayout to_layout) {
  assert(can_lie(form_of(from), from_layout) && can_lie(form_of(from), to_layout));
  if (from_layout == to_layout) {
    to.data = from.data;
    return;
  }
  const std::int64_t channels = from.shape[1];
  const std::int64_t positions = from.shape[2] * from.shape[3];
  const Strides in = strides_of(from_layout, channels, positions);
  const Strides out = strides_of(to_layout, channels, positions);
  for (std::int64_t sample = 0; sample < from.shape[0]; ++sample) {
    const std::int64_t first = sample * channels * positions;
    turn_sample(from.as<float>().data() + first, in, to.as<float>().data() + first, out, channels,
                positions);
  }
}

}  // namespace braid
