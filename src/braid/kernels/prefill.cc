#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "braid/kernels/attention.h"
#include "braid/kernels/laws.h"

namespace braid {
namespace {

constexpr std::array kQueryRows = {16.0, 64.0, 128.0, 256.0};
constexpr std::array kKeyTiles = {128.0, 64.0, 32.0};
constexpr double kMostRows = 256;
constexpr double kUsualWidth = 128;
/// How blocks and the longest of them add up.
constexpr double kLongestOverlap = 2;

bool may_share(const PrefillFigures& f, const AttentionShape& s) {
  if (s.heads <= s.kv_heads || f.shares_keys == 0) return false;
  return f.shares_keys == 1 || (f.shares_keys == 2) == (s.tokens == 1);
}

bool is_slow(const PrefillFigures& f, double width) {
  if (f.slow_width == 0) return width > kUsualWidth;
  return std::exp2(std::round(std::log2(width))) != width;
}

/// Seconds that all blocks take, and those in which tensor cores are busy.
struct PrefillBlocks {
  double time_s = 0, busy_s = 0, ends_s = 0;
};

PrefillBlocks prefill_blocks(const PrefillFigures& f, const AttentionSetting& on,
                             const AttentionShape& s, double rows, double shared) {
  const double seen = s.window > 0 && f.whole_window == 0 ? std::min(s.window, s.tokens) : s.tokens;
  const double pairs = seen * s.tokens - seen * (seen - 1) / 2;
  const double tile = kKeyTiles[static_cast<std::size_t>(f.key_tile)];
  const double waves =
      s.batch * s.heads / shared * std::ceil(s.tokens * shared / rows) / on.machine.sms;
  const double keys = std::min(s.tokens, pairs / s.tokens + rows / shared / 2);
  const double longest = std::min(s.tokens, seen + rows / shared);
  const double compute = 2 * rows * tile * (s.key_dim + s.value_dim) * on.machine.sms /
                         (f.peak * on.machine.flops_per_s);
  const double work =
      side_by_side(compute, rows * tile * f.pair) * (is_slow(f, s.value_dim) ? f.slow : 1);
  const double turns = rounds(waves, f.whole_waves);
  const double ends = turns * f.block * (0.2 + 0.8 * rows / kMostRows);
  const double all = turns * std::max(keys / tile + 0.5, 1.0) * work + ends;
  const double one = std::ceil(longest / tile) * std::max(work, f.step) + f.epilogue;
  return {overlapped(all, one, kLongestOverlap), waves * keys / tile * compute, ends};
}

double prefill_time(const PrefillFigures& f, const AttentionSetting& on, const AttentionShape& s,
                    int variant) {
  const auto index = static_cast<std::size_t>(variant);
  const bool shares = index >= kQueryRows.size();
  if (shares && !may_share(f, s)) return kNotDone;
  const PrefillBlocks blocks = prefill_blocks(f, on, s, kQueryRows[index % kQueryRows.size()],
                                              shares ? s.heads / s.kv_heads : 1);
  const double cached = s.batch * s.tokens * s.kv_heads * s.cached_elements;
  const double bytes =
      2 * s.batch * s.tokens * s.heads * (s.key_dim + s.value_dim) + cached * on.cache_bytes;
  const double memory_s = bytes * missed(f.cache * on.machine.l2_bytes, bytes, f.l2_gain) /
                          (f.memory * on.machine.memory_bytes_per_s);
  const double u = blocks.busy_s / (blocks.busy_s + memory_s + f.floor + blocks.ends_s);
  const double tiles_s = blocks.time_s * (1 + f.clock_loss * u * u * u);
  return overlapped(tiles_s, memory_s, f.overlap) + cached * (2 + on.cache_bytes) / f.append +
         f.floor;
}

}  // namespace

KernelTime PrefillForm::time(const Figures& figures, const Setting& setting, const Shape& shape) {
  return least_time(2 * static_cast<int>(kQueryRows.size()),
                    [&](int variant) { return prefill_time(figures, setting, shape, variant); });
}

double PrefillForm::time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                            int variant) {
  return prefill_time(figures, setting, shape, variant);
}

}  // namespace braid
