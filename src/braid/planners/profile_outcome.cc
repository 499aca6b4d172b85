#include "braid/planners/profile_outcome.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/piper/less_memory.h"
#include "braid/profile/listed_layers.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

/// A plan with its figures; without any, why it cannot be timed.
struct Timed {
  std::optional<Candidate> candidate;
  std::string reason;
};

Timed timed(ProfilePlan made) {
  if (!made.plan) return {std::nullopt, std::move(made.reason)};
  Timed result;
  try {
    Candidate candidate;
    candidate.plan = std::move(*made.plan);
    candidate.metrics = measure(candidate.plan);
    result.candidate = std::move(candidate);
  } catch (const Error& error) {
    result.reason = error.what();
  }
  return result;
}

/// By how much the plan's fullest device is over its memory; rounding is no excess.
double excess_bytes(const Candidate& candidate, const System& system) {
  const double available = usable_bytes(system.groups.front().chip);
  const double excess = candidate.metrics.peak_memory_bytes - available;
  return excess > kRoundingShare * available ? excess : 0;
}

LowerBound bound_of(const ProfileTarget& target, std::int64_t micro_batches) {
  const ListedLayers layers(*target.profile);
  Job job;
  job.layers = &layers;
  job.global_batch = micro_batches * target.micro_batch;
  return lower_bound(job, *target.system);
}

/// The best that fits of what the variant finds: within ever less memory by its own count, then
/// with replicas as many in every stage, whose rounds nest.
struct FittingSolution {
  Timed plan;
  PiperSolution solution;
  std::vector<std::string> assumptions;
};
FittingSolution fitting(const ProfileTarget& target, const PiperVariant& variant,
                        const PiperProblem& problem, const PiperSolution& first,
                        const PiperSearchLimits& limits) {
  FittingSolution found;
  const auto excess_of = [&](const PiperProblem& solved) {
    ProfilePlan made = plan_of_solution(target, solved, found.solution);
    found.assumptions = made.assumptions;
    found.plan = timed(std::move(made));
    return found.plan.candidate ? excess_bytes(*found.plan.candidate, *target.system) : 0.0;
  };
  double excess = 0;
  const bool fits = within_less_memory(problem, [&](const PiperProblem& within) {
    const bool all = within.memory_bytes == problem.memory_bytes;
    found.solution = all ? first : variant.solve(within, limits);
    if (found.solution.stages.empty()) return kInfinity;
    return excess = excess_of(within);
  });
  if (fits) return found;
  FittingSolution best;
  with_equal_degrees(problem, [&](const PiperProblem& equal) {
    found.solution = variant.solve(equal, limits);
    if (found.solution.stages.empty() || excess_of(equal) > 0 || !found.plan.candidate) return;
    if (!best.plan.candidate || found.solution.time < best.solution.time) best = found;
  });
  if (!best.plan.candidate) {
    best.plan.reason =
        fmt::format("by braid's count of memory what it finds takes {} more than a device has",
                    format_bytes(excess));
  }
  return best;
}

}  // namespace

ProfileOutcome outcome_of_solution(const ProfileTarget& target, const PiperVariant& variant,
                                   const PiperProblem& problem, const PiperSolution& solution,
                                   double time_unit_s, const PiperSearchLimits& limits) {
  ProfileOutcome result;
  Outcome& outcome = result.outcome;
  outcome.physical_bound = bound_of(target, problem.micro_batches);
  outcome.objective_name = "time per sample (Piper, s)";
  outcome.status = solution.status;
  outcome.work = solution.work;
  if (solution.stages.empty()) {
    outcome.infeasibility =
        Infeasibility{solution.reason, -1, solution.needed_bytes, problem.memory_bytes, {}};
    result.no_plan = solution.reason;
    return result;
  }
  outcome.objective = solution.time * time_unit_s;
  outcome.search_bound_s = solution.bound * time_unit_s;
  outcome.evaluated = 1;
  FittingSolution found = fitting(target, variant, problem, solution, limits);
  outcome.assumptions = std::move(found.assumptions);
  if (!found.plan.candidate) {
    result.no_plan = std::move(found.plan.reason);
    outcome.infeasibility = Infeasibility{result.no_plan, -1, 0, 0, {}};
    return result;
  }
  if (found.solution.time != solution.time) {
    outcome.assumptions.push_back(fmt::format(
        "the plan is one of {:.9g} s per sample (Piper): the best holds more than a device has, as "
        "Piper counts no working space, and rounds that do not nest for less",
        found.solution.time * time_unit_s));
  }
  outcome.candidates.push_back(std::move(*found.plan.candidate));
  return result;
}

ProfileOutcome outcome_of_placement(const ProfileTarget& target, const PhazeProblem& problem,
                                    const PhazePlacement& placement, double objective_s,
                                    const PhazeOptions& options) {
  ProfileOutcome result;
  Outcome& outcome = result.outcome;
  outcome.physical_bound = bound_of(target, problem.micro_batches);
  outcome.objective_name = "time per batch (Phaze, s)";
  outcome.objective = objective_s;
  outcome.search_bound_s = std::min(placement.bound_s, objective_s);
  outcome.status = is_proven(placement.bound_s, objective_s) ? Status::optimal : Status::feasible;
  outcome.evaluated = 1;
  std::optional<PhazePlacement> other;
  const bool branches = std::any_of(placement.stages.begin(), placement.stages.end(),
                                    [](const PhazeStage& stage) { return stage.branches > 1; });
  if (branches || problem.micro_batches % placement.dp != 0) {
    PhazeOptions narrower = options;
    narrower.branches = false;
    narrower.dividing = true;
    if (options.objective == PhazeObjective::program) narrower.objective = PhazeObjective::flush;
    other = place_phaze(problem, narrower);
    if (other) {
      outcome.assumptions.push_back(
          fmt::format("the plan is the best placement that a plan can be, of {:.9g} s (Phaze): {}",
                      other->flush_s,
                      branches ? "branches of a stage of the best have devices of their own"
                               : "the pipelines of the best do not divide the micro-batches"));
    }
  }
  Timed plan = timed(plan_of_placement(target, problem, other ? *other : placement));
  if (plan.candidate) {
    if (const double excess = excess_bytes(*plan.candidate, *target.system); excess > 0) {
      plan = {std::nullopt, fmt::format("by braid's count of memory it takes {} more than a device "
                                        "has",
                                        format_bytes(excess))};
    }
  }
  if (!plan.candidate) {
    result.no_plan = std::move(plan.reason);
    outcome.infeasibility = Infeasibility{result.no_plan, -1, 0, 0, {}};
    return result;
  }
  outcome.candidates.push_back(std::move(*plan.candidate));
  return result;
}

}  // namespace braid
