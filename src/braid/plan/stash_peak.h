#pragma once

#include <cstdint>
#include <span>

#include "braid/plan/plan.h"

namespace braid {

/// What a stage keeps of one micro-batch on one of its chunks until its backward pass is done.
struct ChunkStash {
  double kept_bytes = 0;       ///< On the device.
  double offloaded_bytes = 0;  ///< On the host.
};

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

/// Of stage `stage` of a chain of pp stages, of which each has as many chunks (in model order) and
/// `num_micro_batches` micro-batches, exact for the order of passes that the schedule prescribes
/// (make_schedule() in schedule/). What a device holds changes from pass to pass by one stash of
/// one chunk; under interleaving the chunk is another after every pp-th pass of a kind and
/// everything repeats after pp·chunks, so that 2·chunks moments are looked at, however many
/// micro-batches there are: the peak is the same for all counts of micro-batches from 3·pp up.
///
/// Where two of three chunks of the last of two stages stash nothing, and m is large:
///   stash_peak(ScheduleKind::interleaved, 2, 1, 64, chunks)
/// Cost: linear in the chunks.
StashPeak stash_peak(ScheduleKind schedule, int pp, int stage, std::int64_t num_micro_batches,
                     std::span<const ChunkStash> chunks);

}  // namespace braid
