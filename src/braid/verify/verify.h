#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

struct Check {
  std::string name;  ///< "coverage", "devices", "memory", "schedule", "bound" …
  bool holds = false;
  std::string detail;  ///< One line: the figures compared, or what is wrong and where.
};

struct Verification {
  std::vector<Check> checks;
  double iteration_time_s = 0;  ///< As claimed.
  double lower_bound_s = 0;     ///< From the plan alone.
  bool holds() const;
};

/// Re-checks a plan by simple code of its own (of the rest of braid it uses the types and the order
/// of passes that a schedule prescribes): each layer exactly once, no edge backwards, options that
/// agree with the parallel form, devices distinct and counted, the batch made up exactly, passes
/// that all can run, each stage's memory summed layer by layer with the stashes that its order
/// holds at once, and a time that is neither less than the busiest stage's work nor than all
/// arithmetic at peak. `iteration_time_s` is the time claimed for the plan. Stops at the first
/// group of checks that fails, as later ones rest on it. Cost: passes · log(passes).
Verification verify(const Plan& plan, double iteration_time_s);

}  // namespace braid
