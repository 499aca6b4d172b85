#pragma once

#include <cstdint>

#include "braid/chip/cores/core_problem.h"
#include "braid/chip/cores/core_schedule.h"

namespace braid {

enum class CoreStatus : std::uint8_t { optimal, budget_exhausted };

struct CoreOutcome {
  CoreSchedule schedule;
  CoreStatus status = CoreStatus::optimal;
  double bound_s = 0;     ///< No schedule takes less; the makespan when that is proven.
  std::int64_t work = 0;  ///< Starts of operators tried.
  double gap() const { return schedule.makespan_s > 0 ? 1 - bound_s / schedule.makespan_s : 0; }
};

inline constexpr std::int64_t kCoreWork = 2'000'000;  ///< A second or two.

/// When and where each operator of a layer runs so that all have ended soonest: the problem of
/// Phaze's integer program (ICML 2024, section 4, figure 3), solved exactly. The problem
/// is_valid().
///
/// Cuts the order where all of one part come before all of the next and searches each part by
/// itself (block_search.h). A part is proven optimal unless `most_work` runs out; whatever it is,
/// no part takes longer than the best of its list schedules, which it is with no work at all. The
/// same whatever the machine.
CoreOutcome schedule_cores(const CoreProblem& problem, std::int64_t most_work = kCoreWork);

}  // namespace braid
