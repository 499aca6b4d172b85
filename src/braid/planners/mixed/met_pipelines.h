#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/plan/ease.h"
#include "braid/plan/outcome.h"
#include "braid/planners/job/braid_space.h"
#include "braid/planners/job/mixed_job.h"

namespace braid {

/// What a search on a mixed cluster has met and simulated: the fastest pipelines that differ in how
/// they are run, and the fastest of each ease, of which one is recommended.
class MetPipelines {
 public:
  /// Both outlive this. Keeps as many as `space.top` says; eases only where it prefers easy plans.
  MetPipelines(MixedJob& job, const BraidSpace& space) : job_(job), space_(space) {}

  void add(double time_s, std::vector<PlacedStage> stages);
  bool empty() const { return found_.empty(); }
  std::size_t capacity() const { return static_cast<std::size_t>(std::max(1, space_.top)); }
  double best_s() const { return found_.empty() ? kInfinity : found_.front().time_s; }
  /// Of the last that is kept; infinite while there is room for more.
  double last_s() const { return found_.size() < capacity() ? kInfinity : found_.back().time_s; }
  /// Their plans as candidates, the one to recommend first where easy ones are preferred.
  /// Precondition: not empty.
  void put_into(Outcome& outcome) const;

 private:
  struct Met {
    double time_s = kInfinity;
    std::vector<PlacedStage> stages;
  };
  Candidate candidate_of(const Met& met) const;
  void recommend(Outcome& outcome) const;

  MixedJob& job_;
  const BraidSpace& space_;
  std::vector<Met> found_;    ///< Best first.
  std::map<Ease, Met> easy_;  ///< The fastest of each ease.
};

}  // namespace braid
