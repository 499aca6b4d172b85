#include "braid/backend/kernel/layout.h"

#include <algorithm>
#include <cassert>

namespace braid {
namespace {

/// How many channels lie next to each other: every layout has samples, groups of so many channels,
/// positions, channels of the group.
std::int64_t neighbours(ImageLayout layout, std::int64_t channels) {
  switch (layout) {
    case ImageLayout::plain:
      return 1;
    case ImageLayout::channels_last:
      return channels;
    case ImageLayout::blocked:
      break;
  }
  return channel_block();
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
  const std::int64_t before = neighbours(from_layout, channels);
  const std::int64_t after = neighbours(to_layout, channels);
  // The lesser group divides the greater: within the greater, positions and lesser groups change
  // places.
  const std::int64_t run = std::min(before, after);
  const std::int64_t group = std::max(before, after);
  const std::int64_t rows = before < after ? group / run : positions;
  const std::int64_t columns = before < after ? positions : group / run;
  exchange_inner(from.as<float>().data(), to.as<float>().data(),
                 {from.shape[0] * channels / group, rows, columns, run});
}

void exchange_inner(const float* from, float* to, const ExchangedSizes& sizes) {
  // In tiles, so that both sides stay in the cache.
  constexpr std::int64_t tile = 16;
  const auto& [samples, rows, columns, run] = sizes;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t r0 = 0; r0 < rows; r0 += tile) {
      for (std::int64_t c0 = 0; c0 < columns; c0 += tile) {
        const std::int64_t r1 = std::min(rows, r0 + tile);
        const std::int64_t c1 = std::min(columns, c0 + tile);
        for (std::int64_t r = r0; r < r1; ++r) {
          for (std::int64_t c = c0; c < c1; ++c) {
            std::copy_n(from + (r * columns + c) * run, run, to + (c * rows + r) * run);
          }
        }
      }
    }
    from += rows * columns * run;
    to += rows * columns * run;
  }
}

}  // namespace braid
