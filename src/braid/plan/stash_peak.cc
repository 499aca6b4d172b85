#include "braid/plan/stash_peak.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {
namespace {

/// Of so many passes of interleaved 1F1B, those of chunk `chunk`: passes take the chunks in turn,
/// pp passes each.
std::int64_t passes_of_chunk(std::int64_t passes, std::int64_t chunk, std::int64_t pp,
                             std::int64_t chunks) {
  const std::int64_t rounds = passes / (pp * chunks);
  const std::int64_t rest = passes % (pp * chunks) - chunk * pp;
  return rounds * pp + std::clamp<std::int64_t>(rest, 0, pp);
}

}  // namespace

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
  for (std::int64_t c = 0; c < vp; ++c) {
    const ChunkStash& chunk = chunks[at(c)];
    const auto count = static_cast<double>(schedule == ScheduleKind::gpipe
                                               ? num_micro_batches
                                               : passes_of_chunk(in_flight, c, pp, vp));
    held.kept_bytes += count * chunk.kept_bytes;
    held.offloaded_bytes += count * chunk.offloaded_bytes;
    held.slot_bytes = std::max(held.slot_bytes, 2 * chunk.offloaded_bytes);
  }
  StashPeak peak = held;
  // From there on backward and forward passes take turns. While neither changes its chunk, each
  // pair of them adds and frees the same; once the forward passes are done, stashes only go.
  const std::int64_t last = std::min(num_micro_batches * vp - in_flight, std::int64_t{pp} * vp);
  for (std::int64_t backward = 0; backward < last;) {
    const std::int64_t forward = backward + in_flight;
    const ChunkStash& added = chunks[at(forward / pp % vp)];
    const ChunkStash& freed = chunks[at(vp - 1 - backward / pp % vp)];
    const std::int64_t pairs = std::min({pp - forward % pp, pp - backward % pp, last - backward});
    const auto count = static_cast<double>(pairs);
    held.kept_bytes += count * (added.kept_bytes - freed.kept_bytes);
    held.offloaded_bytes += count * (added.offloaded_bytes - freed.offloaded_bytes);
    peak.kept_bytes = std::max(peak.kept_bytes, held.kept_bytes);
    peak.offloaded_bytes = std::max(peak.offloaded_bytes, held.offloaded_bytes);
    backward += pairs;
  }
  return peak;
}

}  // namespace braid
