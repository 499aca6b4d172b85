#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// What a stage keeps of one micro-batch on one of its chunks until its backward pass is done.
struct ChunkStash {
  double kept_bytes = 0;       ///< On the device.
  double offloaded_bytes = 0;  ///< On the host.
  friend bool operator==(const ChunkStash&, const ChunkStash&) = default;
};

/// Room on the device for stashes of `offloaded_bytes` each that travel to or from the host: one
/// that comes and one that goes.
inline double slot_bytes(double offloaded_bytes, double in_flight) {
  return offloaded_bytes * std::min(in_flight, 2.0);
}

/// Neighbouring chunks of a stage that keep the same.
struct StashRun {
  ChunkStash chunk;
  std::int64_t chunks = 1;
};
/// Adds a stage's next chunk: to the last run if that keeps the same.
void add_chunk(const ChunkStash& chunk, std::vector<StashRun>& runs);

/// Stashes of a stage at its fullest moments.
struct StashPeak {
  double kept_bytes = 0;       ///< Of those on the device together, at most.
  double offloaded_bytes = 0;  ///< Of those on the host together, at most.
  double slot_bytes = 0;       ///< Room on the device for those on their way to or from the host.

  double device_bytes() const { return kept_bytes + slot_bytes; }
  friend bool operator==(const StashPeak&, const StashPeak&) = default;
};

/// Of a stage of one chunk that holds so many micro-batches at most.
StashPeak stash_peak(const ChunkStash& chunk, std::int64_t in_flight);

/// Of stage `stage` of a chain of pp stages, of which each has as many chunks (`runs`, in model
/// order) and `num_micro_batches` micro-batches, exact for the order of passes that the schedule
/// prescribes (make_schedule() in schedule/). What a device holds changes from pass to pass by one
/// stash of one chunk; under interleaving the chunk is another after every pp-th pass of a kind and
/// everything repeats after pp·chunks. Between two moments at which the forward or the backward
/// passes go on to another run it rises or falls evenly, so that these moments are enough, however
/// many micro-batches there are: the peak is the same for all counts of micro-batches from 3·pp up.
///
/// Where two of three chunks of the last of two stages stash nothing, and m is large:
///   const std::vector<StashRun> runs = {{{8e9, 0}, 1}, {{0, 0}, 2}};
///   stash_peak(ScheduleKind::interleaved, 2, 1, 64, runs)
/// Cost: linear in the runs.
StashPeak stash_peak(ScheduleKind schedule, int pp, int stage, std::int64_t num_micro_batches,
                     std::span<const StashRun> runs);

}  // namespace braid
