#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/run/instructions.h"
#include "braid/run/rank_record.h"
#include "braid/schedule/timeline.h"

namespace braid {

/// Where a rank's time went in an iteration. They sum up to the iteration.
struct RankTimes {
  double passes_s = 0;    ///< Forward and backward passes.
  double handover_s = 0;  ///< Sends, and receives of what another stage has to make first.
  double gradients_s =
      0;  ///< Sums over replicas, and gathered parameters, with the wait for these.
  double optimizer_s = 0;  ///< Updates; under ZeRO with the gathering of weights.
  double rest_s = 0;
};

/// One iteration of a run.
struct RunMeasurement {
  double iteration_time_s = 0;       ///< From the first rank's start to the last one's end.
  std::vector<RankTimes> ranks;      ///< [rank]
  std::size_t busiest_rank = 0;      ///< Whose passes take longest.
  Timeline timeline;                 ///< Of the first replica of each stage; without memory.
  std::vector<double> memory_bytes;  ///< [rank]: of the process, at its fullest.
  double peak_memory_bytes = 0;      ///< The most of these.
};

/// The iteration of median length of those recorded, but for the first of the run, which is slower;
/// the first itself when it is the only one. Records are of all ranks.
RunMeasurement measurement_of(const StagedModel& staged,
                              std::span<const std::vector<Instruction>> ranks,
                              std::span<const RankRecord> records);

}  // namespace braid
