#pragma once

#include <optional>
#include <vector>

#include "braid/schedule/pipeline.h"
#include "braid/schedule/schedule.h"

namespace braid {

/// Least times that satisfy every rule of a timeline, found the slow and obvious way: all start at
/// zero and each constraint is applied again and again until nothing changes.
struct Relaxed {
  struct Pass {
    Work work;
    double start_s = 0, end_s = 0;
  };
  std::vector<std::vector<Pass>> passes;  ///< [stage][position]
  std::vector<double> stage_end_s;
  double time_s = 0;
};

/// nullopt: the times grow without end, the schedule cannot be kept. Needs passes that take time.
std::optional<Relaxed> relax(const Pipeline& pipeline, const WorkOrder& order);

}  // namespace braid
