#include "braid/plan/stash_peak.h"

#include <algorithm>

#include "braid/base/index.h"

namespace braid {
StashPeak stash_peak(const ChunkStash& chunk, std::int64_t in_flight) {
  const auto held = static_cast<double>(in_flight);
  return {chunk.kept_bytes * held, chunk.offloaded_bytes * held,
          chunk.offloaded_bytes * std::min(held, 2.0)};
}

StashPeak stash_peak(ScheduleKind schedule, int pp, int stage, std::int64_t num_micro_batches,
                     std::span<const ChunkStash> chunks) {
  const auto vp = static_cast<std::int64_t>(chunks.size());
  const std::int64_t in_flight =
      in_flight_chunks(schedule, pp, stage, static_cast<int>(vp), num_micro_batches);
  if (vp == 1) return stash_peak(chunks.front(), in_flight);
  // Right before the first backward pass.
  StashPeak held;
  const std::int64_t rounds = in_flight / (pp * vp);
  std::int64_t rest = in_flight % (pp * vp);
  for (std::int64_t c = 0; c < vp; ++c) {
    const ChunkStash& chunk = chunks[at(c)];
    const std::int64_t in_last_round = std::min<std::int64_t>(rest, pp);
    rest -= in_last_round;
    const auto count = static_cast<double>(
        schedule == ScheduleKind::gpipe ? num_micro_batches : rounds * pp + in_last_round);
    held.kept_bytes += count * chunk.kept_bytes;
    held.offloaded_bytes += count * chunk.offloaded_bytes;
    held.slot_bytes = std::max(held.slot_bytes, 2 * chunk.offloaded_bytes);
  }
  StashPeak peak = held;
  const auto is_alike = [&](const ChunkStash& chunk) {
    return chunk.kept_bytes == chunks.front().kept_bytes &&
           chunk.offloaded_bytes == chunks.front().offloaded_bytes;
  };
  if (std::all_of(chunks.begin() + 1, chunks.end(), is_alike)) return peak;
  // From there on backward and forward passes take turns. While neither changes its chunk, each
  // pair of them adds and frees the same; once the forward passes are done, stashes only go.
  std::int64_t left = std::min(num_micro_batches * vp - in_flight, std::int64_t{pp} * vp);
  std::int64_t added = in_flight / pp % vp;
  std::int64_t freed = vp - 1;
  std::int64_t to_next_added = pp - in_flight % pp;
  std::int64_t to_next_freed = pp;
  while (left > 0) {
    const std::int64_t pairs = std::min({to_next_added, to_next_freed, left});
    const auto count = static_cast<double>(pairs);
    held.kept_bytes += count * (chunks[at(added)].kept_bytes - chunks[at(freed)].kept_bytes);
    held.offloaded_bytes +=
        count * (chunks[at(added)].offloaded_bytes - chunks[at(freed)].offloaded_bytes);
    peak.kept_bytes = std::max(peak.kept_bytes, held.kept_bytes);
    peak.offloaded_bytes = std::max(peak.offloaded_bytes, held.offloaded_bytes);
    left -= pairs;
    if ((to_next_added -= pairs) == 0) {
      to_next_added = pp;
      added = added + 1 == vp ? 0 : added + 1;
    }
    if ((to_next_freed -= pairs) == 0) {
      to_next_freed = pp;
      freed = freed == 0 ? vp - 1 : freed - 1;
    }
  }
  return peak;
}

}  // namespace braid
