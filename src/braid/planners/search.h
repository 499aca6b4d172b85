#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/planners/assess.h"
#include "braid/planners/space.h"

namespace braid {

// What the searches over configurations share.

/// A configuration that fits, with its layers dealt out and timed.
struct FoundPlan {
  double time_s = 0;
  Configuration configuration;
  Ends ends;
};

/// The best plans, best first; equal ones in the order of their configurations. Of plans that users
/// would not tell apart (the same degrees, micro-batch, schedule and recomputation) only the best
/// is kept.
class BestPlans {
 public:
  explicit BestPlans(std::size_t capacity) : capacity_(capacity) {}

  /// What is not faster than this will not be kept; infinite while there is room.
  double cutoff_s() const;
  double best_s() const;  ///< Infinite while there is none.
  const std::vector<FoundPlan>& found() const { return found_; }
  void add(FoundPlan candidate);

 private:
  std::size_t capacity_;
  std::vector<FoundPlan> found_;
};

/// A configuration and a bound on what it can reach.
struct BoundedConfiguration {
  double bound_s = 0;
  Configuration configuration;
};
bool operator<(const BoundedConfiguration& a, const BoundedConfiguration& b);  ///< Bound first.

/// Looks through other assignments of 1F1B configurations (bounds: by path) that might be faster
/// than the best, least bound first. Returns what no assignment that was not looked at can beat:
/// infinite when none is left. `timed` counts simulations.
double close_gap(const ChainJob& chain, LayerTables& tables,
                 std::vector<BoundedConfiguration> configurations, BestPlans& best,
                 std::int64_t& timed, AssessmentScratch& scratch);

SpaceLimits space_limits(const Job& job, const System& system);

/// An outcome with what does not depend on the search: bound from physics, assumptions, objective.
Outcome begin_outcome(const Job& job, const System& system);

/// Why there is nothing to search.
Infeasibility empty_space(const SpaceLimits& limits, const SpaceOptions& options);
/// Why nothing that was searched fits.
std::string memory_reason(const SpaceLimits& limits);

/// Fills in the plans and whether the best is proven: nothing beats `search_bound_s`.
void finish_outcome(const ChainJob& chain, LayerTables& tables, const BestPlans& best,
                    double search_bound_s, const std::string& planner, Outcome& outcome);

}  // namespace braid
