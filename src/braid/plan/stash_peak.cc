#include "braid/plan/stash_peak.h"

#include <algorithm>
#include <cassert>

namespace braid {

void add_chunk(const ChunkStash& chunk, std::vector<StashRun>& runs) {
  if (!runs.empty() && runs.back().chunk == chunk) {
    ++runs.back().chunks;
  } else {
    runs.push_back({chunk, 1});
  }
}

StashPeak stash_peak(const ChunkStash& chunk, std::int64_t in_flight) {
  const auto held = static_cast<double>(in_flight);
  return {chunk.kept_bytes * held, chunk.offloaded_bytes * held,
          slot_bytes(chunk.offloaded_bytes, held)};
}

StashPeak stash_peak(ScheduleKind schedule, int pp, int stage, std::int64_t num_micro_batches,
                     std::span<const StashRun> runs) {
  std::int64_t vp = 0;
  for (const StashRun& run : runs) vp += run.chunks;
  assert(pp > 0 && vp > 0);
  const std::int64_t in_flight =
      in_flight_chunks(schedule, pp, stage, static_cast<int>(vp), num_micro_batches);
  if (vp == 1) return stash_peak(runs.front().chunk, in_flight);
  // Right before the first backward pass.
  StashPeak held;
  const std::int64_t round = pp * vp;
  const std::int64_t rounds = in_flight / round;
  const std::int64_t in_last_round = in_flight - rounds * round;
  std::int64_t not_counted = in_last_round;
  for (const StashRun& run : runs) {
    const std::int64_t at_most = pp * run.chunks;
    const std::int64_t started = std::min(not_counted, at_most);
    not_counted -= started;
    const auto count =
        static_cast<double>(schedule == ScheduleKind::gpipe ? num_micro_batches * run.chunks
                                                            : rounds * at_most + started);
    held.kept_bytes += count * run.chunk.kept_bytes;
    held.offloaded_bytes += count * run.chunk.offloaded_bytes;
    held.slot_bytes = std::max(held.slot_bytes, 2 * run.chunk.offloaded_bytes);
  }
  StashPeak peak = held;
  if (runs.size() == 1) return peak;
  // From there on backward and forward passes take turns. While both stay in their runs, each pair
  // of them adds and frees the same; once the forward passes are done, stashes only go.
  std::int64_t left = std::min(num_micro_batches * vp - in_flight, round);
  std::size_t added = 0;
  std::int64_t to_next_added = pp * runs.front().chunks;
  for (std::int64_t before = in_last_round; before > 0;) {
    const std::int64_t passed = std::min(before, to_next_added);
    before -= passed;
    if ((to_next_added -= passed) > 0) continue;
    added = added + 1 == runs.size() ? 0 : added + 1;
    to_next_added = pp * runs[added].chunks;
  }
  std::size_t freed = runs.size() - 1;
  std::int64_t to_next_freed = pp * runs[freed].chunks;
  while (left > 0) {
    const std::int64_t pairs = std::min({to_next_added, to_next_freed, left});
    const auto count = static_cast<double>(pairs);
    const ChunkStash& in = runs[added].chunk;
    const ChunkStash& out = runs[freed].chunk;
    held.kept_bytes += count * (in.kept_bytes - out.kept_bytes);
    held.offloaded_bytes += count * (in.offloaded_bytes - out.offloaded_bytes);
    peak.kept_bytes = std::max(peak.kept_bytes, held.kept_bytes);
    peak.offloaded_bytes = std::max(peak.offloaded_bytes, held.offloaded_bytes);
    left -= pairs;
    if ((to_next_added -= pairs) == 0) {
      added = added + 1 == runs.size() ? 0 : added + 1;
      to_next_added = pp * runs[added].chunks;
    }
    if ((to_next_freed -= pairs) == 0) {
      freed = freed == 0 ? runs.size() - 1 : freed - 1;
      to_next_freed = pp * runs[freed].chunks;
    }
  }
  return peak;
}

}  // namespace braid
