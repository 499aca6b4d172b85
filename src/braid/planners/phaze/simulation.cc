#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/planners/phaze/search.h"

namespace braid {
namespace {

/// All plans of a combination whose bound is below the best time so far, from the first stage on.
class PlansInDepth {
 public:
  PlansInDepth(const PhazeSpace& space, const PhazeCombination& combination,
               std::int64_t most_plans, PhazeSimulated& result, double below_s)
      : space_(space),
        combination_(combination),
        micro_batches_(ceiling(space.problem->micro_batches, combination.dp)),
        left_(most_plans),
        result_(result),
        best_s_(below_s) {
    behind_s_.assign(space.cuts, kInfinity);
    behind_s_.back() = 0;
    for (auto candidate = space.candidates->all.rbegin(); candidate != space.candidates->all.rend();
         ++candidate) {
      const double load_s = candidate->outer + 1 == space.cuts
                                ? std::min(candidate->load_s, candidate->last_load_s)
                                : candidate->load_s;
      behind_s_[candidate->inner] =
          std::min(behind_s_[candidate->inner], load_s + behind_s_[candidate->outer]);
    }
  }

  /// Whether all were looked through.
  bool run() {
    extend(0, combination_.stages, space_.problem->devices / combination_.dp, {});
    return left_ >= 0;
  }
  std::int64_t left() const { return std::max<std::int64_t>(0, left_); }

 private:
  /// The stages before a cut.
  struct Before {
    double loads_s = 0;          ///< Their sum.
    double backward_s = 0;       ///< The sum of their backward passes.
    double path_s = -kInfinity;  ///< The longest path on one of them but for the loads behind.
    double late_s = 0;  ///< Latest end of synchronisation after the first stage's last pass.
  };

  /// Adds a stage, the s-th from the end, behind cut `cut`.
  void extend(std::size_t cut, std::int64_t s, std::int64_t devices, const Before& before) {
    if (s == 0) {
      simulate();
      return;
    }
    const OneFOneBTurns turns = OneFOneBTurns::of(s, micro_batches_);
    const double stays = turns.after;
    for (const PhazeCandidate& candidate : space_.candidates->from(cut)) {
      if (candidate.most_from_end < s || left_ < 0) continue;
      const double longest_behind_s =
          longest_behind(s - 1, candidate.outer, devices - candidate.devices);
      if (!(longest_behind_s < kInfinity)) continue;
      --left_;
      const double load_s = load_of(candidate, s), backward_s = backward_of(candidate, s);
      const double behind_s = kBelowRounding * behind_s_[candidate.outer];
      // A path on an earlier stage has this stage's load behind it.
      const double paths_s =
          std::max(stays >= 0 ? stays * load_s : -kInfinity, before.path_s + load_s);
      const double late = std::max(
          before.late_s, sync_factor(combination_.dp) * candidate.gradients_s - before.backward_s);
      double longest_s = std::max(paths_s + behind_s,
                                  turns.rising_excess_s(load_s - backward_s, backward_s, behind_s));
      if (s > 1 && stays > 0) {
        longest_s = std::max(longest_s, behind_s + stays * longest_behind_s * kBelowRounding);
      }
      if (!(before.loads_s + load_s + behind_s + longest_s + late < best_s_)) continue;
      stages_.push_back(candidate);
      extend(candidate.outer, s - 1, devices - candidate.devices,
             {before.loads_s + load_s, before.backward_s + backward_s, paths_s, late});
      stages_.pop_back();
    }
  }

  /// Least longest load of so many stages behind a cut; infinity when there are none.
  double longest_behind(std::int64_t stages, std::size_t cut, std::int64_t devices) const {
    double least_s = kInfinity;
    for (const PhazeEntry& entry : space_.table->at(stages, cut)) {
      if (entry.devices <= devices) least_s = entry.longest_s;
    }
    return least_s;
  }

  void simulate() {
    const double time_s = phaze_simulated_s(*space_.problem, combination_.dp, stages_, workspace_);
    if (!(time_s < best_s_)) return;
    best_s_ = time_s;
    result_.best = PhazeSequence{time_s, combination_.dp, stages_};
  }

  const PhazeSpace& space_;
  const PhazeCombination& combination_;
  std::int64_t micro_batches_;
  std::int64_t left_;
  PhazeSimulated& result_;
  double best_s_;
  std::vector<double> behind_s_;  ///< Least sum of the loads behind each cut.
  std::vector<PhazeCandidate> stages_;
  PipelineWorkspace workspace_;
};

}  // namespace

PhazeSimulated best_by_simulation(const PhazeSpace& space, const PhazeCombination& combination,
                                  double below_s, std::int64_t most_plans) {
  PhazeSimulated result;
  result.bound_s = below_s;
  auto found = best_by_path(space, combination, below_s);
  if (!found.has_value()) return result;
  const double bound_s = found->objective_s * kBelowRounding;
  PipelineWorkspace workspace;
  const double time_s = phaze_simulated_s(*space.problem, combination.dp, found->stages, workspace);
  if (time_s < below_s) {
    found->objective_s = time_s;
    result.best = std::move(found);
    below_s = time_s;
  }
  result.bound_s = below_s;
  if (bound_s >= below_s * kBelowRounding * kBelowRounding) return result;
  PlansInDepth plans(space, combination, most_plans, result, below_s);
  const bool complete = plans.run();
  result.plans = most_plans - plans.left();
  result.bound_s = complete ? (result.best ? result.best->objective_s : below_s) : bound_s;
  return result;
}

double phaze_simulated_s(const PhazeProblem& problem, std::int64_t dp,
                         const std::vector<PhazeCandidate>& stages, PipelineWorkspace& workspace) {
  Pipeline pipeline;
  pipeline.schedule = ScheduleKind::one_f_one_b;
  pipeline.pp = static_cast<int>(stages.size());
  pipeline.num_micro_batches = ceiling(problem.micro_batches, dp);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto from_end = static_cast<std::int64_t>(stages.size() - i);
    const double backward_s = backward_of(stages[i], from_end);
    pipeline.forward_s.push_back(std::max(0.0, load_of(stages[i], from_end) - backward_s));
    pipeline.backward_s.push_back(backward_s);
    StageSync sync;
    sync.gradient_sync_s = sync_factor(dp) * stages[i].gradients_s;
    pipeline.sync.push_back(sync);
    const auto at = static_cast<std::int32_t>(i);
    if (i > 0) pipeline.transfers.push_back({at - 1, at, 0});
  }
  return pipeline_time_s(pipeline, workspace);
}

}  // namespace braid
