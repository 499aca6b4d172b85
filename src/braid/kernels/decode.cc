#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "braid/kernels/attention.h"
#include "braid/kernels/laws.h"

namespace braid {
namespace {

constexpr std::array kHeadRows = {1.0, 16.0, 32.0, 64.0, 128.0};
constexpr int kKeySplits = 9;
constexpr double kLeastKeys = 64;
/// How blocks and the latency of one add up.
constexpr double kLatencyOverlap = 2;

/// Whether heads that share keys are in one block.
bool shares_keys(const DecodeFigures& f, const AttentionShape& s) {
  constexpr std::array kMostHeads = {1e9, 32.0, 8.0, 0.0};
  const double sharing = s.heads / s.kv_heads;
  const int apart = f.apart > 3 ? f.apart - 3 : f.apart;
  if ((apart & 1) != 0 && sharing == 1) return false;
  if ((apart & 2) != 0 && s.window > 0) return false;
  return sharing <= kMostHeads[static_cast<std::size_t>(f.shares_keys)];
}

bool may_split(const DecodeFigures& f, bool shares) {
  return shares ? f.whole_keys == 0 : f.apart < 4;
}

double decode_time(const DecodeFigures& f, const AttentionSetting& on, const AttentionShape& s,
                   int variant) {
  const double rows = kHeadRows[static_cast<std::size_t>(variant / kKeySplits)];
  const double split = static_cast<double>(1 << (variant % kKeySplits));
  const double sharing = s.heads / s.kv_heads;
  const bool shares = shares_keys(f, s);
  if (shares != (rows > 1) || (rows > 16 && rows / 2 >= sharing)) return kNotDone;
  const double keys = s.window > 0 ? std::min(s.window, s.tokens) : s.tokens;
  if (split > 1 && (keys / split < kLeastKeys || !may_split(f, shares))) return kNotDone;
  const double waves = s.batch * s.kv_heads * std::ceil(sharing / rows) * split / on.machine.sms;
  const double width = s.key_dim + s.value_dim;
  const double compute = 2 * rows * width * on.machine.sms / (f.peak * on.machine.flops_per_s);
  const double work = side_by_side(compute, s.cached_elements * on.cache_bytes / f.feed);
  const double part = std::ceil(keys / split / kLeastKeys) * kLeastKeys;
  const double all =
      rounds(waves, f.whole_waves) * (part * work + (shares ? f.block : f.head_block));
  const double one = part * std::max(work, shares ? f.step : f.head_step) + f.epilogue;
  const double bytes = s.batch * s.kv_heads * keys * s.cached_elements * on.cache_bytes +
                       2 * s.batch * s.heads * width;
  const double bytes_per_s = f.memory * on.machine.memory_bytes_per_s;
  const double memory_s =
      bytes * missed(f.cache * on.machine.l2_bytes, bytes, f.l2_gain) / bytes_per_s;
  double time = overlapped(overlapped(all, one, kLatencyOverlap), memory_s, f.overlap);
  if (split > 1) {
    time += f.reduce + 8 * split * s.batch * s.heads * s.value_dim / (bytes_per_s * f.l2_gain);
  }
  return time + f.floor + s.batch * f.sequence;
}

}  // namespace

KernelTime DecodeForm::time(const Figures& figures, const Setting& setting, const Shape& shape) {
  return least_time(static_cast<int>(kHeadRows.size()) * kKeySplits,
                    [&](int variant) { return decode_time(figures, setting, shape, variant); });
}

double DecodeForm::time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                           int variant) {
  return decode_time(figures, setting, shape, variant);
}

}  // namespace braid
