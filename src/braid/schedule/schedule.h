#pragma once

#include <cstdint>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

enum class TaskKind : std::uint8_t { forward, backward };

/// One pass of one micro-batch over one chunk of a stage.
struct PassTask {
  TaskKind kind = TaskKind::forward;
  std::int32_t chunk = 0;
  std::int64_t micro_batch = 0;
  friend bool operator==(const PassTask&, const PassTask&) = default;
};

/// The order in which each stage's device runs its passes.
struct Schedule {
  std::vector<std::vector<PassTask>> order;   ///< [stage][position]
};

/// The order that `kind` prescribes for pp stages of vp chunks and m micro-batches. Interleaving
/// needs m to be a multiple of pp (checked where plans enter; asserted here).
Schedule make_schedule(ScheduleKind kind, int pp, int vp, std::int64_t num_micro_batches);

}  // namespace braid
