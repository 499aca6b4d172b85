#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

//   const Verification checked = verify(plan);
//   if (!checked.holds()) for (const Check& check : checked.checks) if (!check.holds) check.detail;
//   checked.iteration_time_s;  // of its own replay

struct Check {
  /// "coverage", "options", "edges", "devices", "batch", "schedule", "memory", "time", "bound",
  /// "claims".
  std::string name;
  bool holds = false;
  std::string detail;  ///< One line: the figures compared, or what is wrong and where.
};

struct Verification {
  std::vector<Check> checks;
  double iteration_time_s = 0;   ///< Replayed independently.
  double peak_memory_bytes = 0;  ///< Of the fullest stage, summed independently.
  double lower_bound_s = 0;      ///< All arithmetic of the plan's options at peak on all devices.
  bool holds() const;
};

/// Re-checks a plan by simple code of its own (of the rest of braid it uses the types, the times of
/// collectives and the order of passes that a schedule prescribes): each layer exactly once;
/// options that exist and agree with the parallel form; no edge backwards, so that stages are
/// convex and form no circle; devices distinct, counted and, of uniform plans, where the order of
/// axes puts them; the batch made up exactly by every stage; every pass once, none before its
/// inputs, no deadlock, by replaying the order with its transfers and synchronisation; each stage's
/// memory summed layer by layer with the stashes that its order holds at once; the replay's time
/// between the busiest stage's work and all work one by one, and no less than all arithmetic at
/// peak. When there are claims: the claimed time is the replayed one within a millionth, the
/// claimed memory the one found within a billionth, either way. Checks whose ground has failed are
/// left out: any plan may be given. Throws Error for a plan of more than 5·10^6 passes. Cost:
/// linear in passes.
Verification verify(const Plan& plan, const std::optional<Claims>& claims);

/// The same, with the claims that the plan carries.
Verification verify(const Plan& plan);

}  // namespace braid
