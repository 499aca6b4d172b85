#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/search/one_f_one_b_turns.h"
#include "braid/search/partition.h"

namespace braid {

// What the exact partition and the enumeration of partitions for flushed 1F1B share.

/// All that a stage's memory and its part in the path bound depend on beside its layers.
struct StagePlace {
  double in_flight = 1;
  double handover_below_s = 0;  ///< All handovers behind the stage, both directions.
  /// What its passes wait for at their ends, where sends block; not in handover_below_s then.
  double sent_forward_s = 0, sent_backward_s = 0;
  OneFOneBTurns turns;

  /// Excess of the path over the sum of all stages that such a stage would cause, see
  /// one_f_one_b_path_s. `below_s`: all layers and handovers behind the stage.
  double excess_s(double forward_s, double backward_s, double below_s) const {
    return turns.chain_excess_s(forward_s + sent_forward_s, backward_s + sent_backward_s, below_s);
  }
};

/// Places of the stages of a pipeline with these handovers.
std::vector<StagePlace> stage_places(const Handovers& handovers, std::int64_t micro_batches);

inline bool is_endless(const MemoryForm& memory) {
  return memory.available_bytes == kInfinity && memory.host_available_bytes == kInfinity;
}

}  // namespace braid
