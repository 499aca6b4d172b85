#pragma once

#include <cstdint>
#include <vector>

#include "braid/plan/stage_load.h"
#include "braid/schedule/timeline.h"

namespace braid {

/// How a stage's passes end, and with them its iteration.
struct StageEnd {
  double backward_s = 0;    ///< What its last pass takes, a backward pass.
  double passes_end_s = 0;  ///< End of that.
  double end_s = 0;         ///< After gradients and optimizer: tail_s later (pipeline.h).
};

/// Appends the buckets of the stage's gradients, some of them behind its last pass, the gradients
/// that it shares with other stages, and its optimizer step: the parts of tail_s, each from where
/// the one before it ends.
void append_sync_events(const StageSync& sync, std::int32_t stage, const StageEnd& end,
                        std::vector<Event>& events);

/// By start, then stage, then end; of equals as they are.
void sort_events(std::vector<Event>& events);

}  // namespace braid
