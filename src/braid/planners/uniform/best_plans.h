#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/job/alternatives.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/space.h"

namespace braid {

// What the searches over configurations share.

/// A configuration that fits, with its layers dealt out and timed.
struct FoundPlan {
  double time_s = 0;
  Configuration configuration;
  Ends ends;
};

/// The best plans, best first; equal ones in the order of their configurations. Of plans that are
/// run in the same way (is_same_class()) only the best is kept.
class BestPlans {
 public:
  /// `below_s`: what is not faster is not kept.
  explicit BestPlans(std::size_t capacity, double below_s = kInfinity)
      : capacity_(capacity), below_s_(below_s) {}

  /// Keeps this plan, the first, as the best: what is faster, and others of its class, are not
  /// kept.
  void keep_first(FoundPlan first);

  /// Whether plans beside the best are kept: those of other classes.
  bool keeps_others() const { return capacity_ > 1; }

  /// What is not faster than this will not be kept; as it was given while there is room.
  double cutoff_s() const;
  /// The same of this configuration: not more than the best of its class takes.
  double cutoff_s(const Configuration& configuration) const;
  double best_s() const;  ///< What is given as the limit while there is none.
  const std::vector<FoundPlan>& found() const { return found_; }
  void add(FoundPlan candidate);

 private:
  std::size_t capacity_;
  double below_s_;
  bool keeps_first_ = false;
  std::vector<FoundPlan> found_;
};

/// A configuration and a bound on what it can reach.
struct BoundedConfiguration {
  double bound_s = 0;
  Configuration configuration;
  bool memory_bound = false;  ///< Assessment::memory_bound.
};
bool operator<(const BoundedConfiguration& a, const BoundedConfiguration& b);  ///< Bound first.

/// What is known once other assignments have been looked through.
struct ClosedGap {
  /// No assignment that was not looked at can beat this: infinite when none is left.
  double residual_bound_s = kInfinity;
  /// Configurations that memory bounds after all: a faster assignment than the best plan does not
  /// fit, though memory did not shape the one that was found by path.
  std::vector<Configuration> memory_bound;
};

/// Looks through other assignments of 1F1B configurations (bounds: by path) that might be faster
/// than the best, least bound first; then, where others are kept, for what may be faster than the
/// best of its class. `timed` counts simulations.
ClosedGap close_gap(const ChainJob& chain, LayerTables& tables,
                    std::vector<BoundedConfiguration> configurations, BestPlans& best,
                    std::int64_t& timed, AssessmentScratch& scratch);

/// Fills in the plans and whether the best is proven: nothing beats `search_bound_s`.
void finish_outcome(const ChainJob& chain, LayerTables& tables, const BestPlans& best,
                    double search_bound_s, const std::string& planner, Outcome& outcome);

}  // namespace braid
