#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

struct Check {
  std::string name;     ///< "coverage", "devices", "memory", "schedule", "bound" …
  bool holds = false;
  std::string detail;   ///< One line: the figures compared, or what is wrong and where.
};

struct Verification {
  std::vector<Check> checks;
  double iteration_time_s = 0;  ///< Recomputed independently.
  double lower_bound_s = 0;     ///< From the plan alone.
  bool holds() const;
};

/// Re-checks a plan by simple code of its own (nothing of planners, simulator or memory model is
/// called): each layer exactly once, stages convex and acyclic, devices distinct and counted, degrees
/// consistent with the batch, memory of each stage, the schedule causal and deadlock-free, its time,
/// and that this is no less than the bound.
Verification verify(const Plan& plan);

}  // namespace braid
