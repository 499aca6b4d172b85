#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "braid/planners/graphpipe_job.h"
#include "braid/planners/graphpipe_search.h"
#include "braid/planners/planner.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

/// The option that asks for what is outside of the space; empty when none does.
std::string_view option_outside(const SpaceOptions& space) {
  if (space.tp.value_or(1) != 1) return "--tp";
  if (space.pp) return "--pp";
  if (space.dp) return "--dp";
  if (space.cp.value_or(1) != 1) return "--cp";
  if (space.ep.value_or(1) != 1) return "--ep";
  if (space.vp.value_or(1) != 1) return "--vp";
  if (space.recompute.value_or(Recompute::none) != Recompute::none) return "--recompute";
  if (space.zero.value_or(Zero::none) != Zero::none) return "--zero";
  if (space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b) {
    return "--schedule";
  }
  return "";
}

/// What the plan with most devices and any memory would need.
Infeasibility explain(GraphPipeProblem problem) {
  Infeasibility why{"no graph pipeline fits in memory", -1, 0, problem.memory_bytes, {}};
  problem.memory_bytes = std::numeric_limits<double>::max();
  // The smallest micro-batches need least memory.
  if (!problem.groups.empty()) problem.groups.resize(1);
  const GraphPipeSolution solution = solve_graphpipe(problem);
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    if (solution.stages[s].memory_bytes <= why.needed_bytes) continue;
    why.needed_bytes = solution.stages[s].memory_bytes;
    why.stage = static_cast<std::int64_t>(s);
  }
  return why;
}

}  // namespace

Outcome plan_graphpipe(const Job& job, const System& system, const SpaceOptions& space,
                       const Budget& budget, const Progress&) {
  Outcome outcome;
  outcome.physical_bound = lower_bound(*job.graph, job.precision, job.global_batch, system);
  outcome.objective_name = "time per sample of the slowest stage";
  if (const std::string_view option = option_outside(space); !option.empty()) {
    outcome.infeasibility = Infeasibility{
        fmt::format("the planner graphpipe cannot do as {} says", option), -1, 0, 0, {}};
    return outcome;
  }
  GraphPipeProblem problem = graphpipe_problem(job, system);
  // The plan's schedule is 1F1B with as many in flight as the stage is deep.
  problem.in_flight = InFlight::table;
  if (space.micro_batch) {
    std::erase_if(problem.groups, [&](const PassGroup& group) {
      return group.micro_batch % *space.micro_batch != 0;
    });
    const auto keep =
        std::find(problem.device_samples.begin(), problem.device_samples.end(), *space.micro_batch);
    if (keep == problem.device_samples.end() || problem.groups.empty()) {
      outcome.infeasibility = Infeasibility{
          fmt::format("{} samples are no power of two that divides the batch", *space.micro_batch),
          -1,
          0,
          0,
          {}};
      return outcome;
    }
    const auto index = static_cast<std::size_t>(keep - problem.device_samples.begin());
    problem.device_samples = {*space.micro_batch};
    for (GraphPipeKind& kind : problem.kinds) {
      kind.forward_s = {kind.forward_s[index]};
      kind.backward_s = {kind.backward_s[index]};
    }
  }
  outcome.assumptions = {"no tensor parallelism and no recomputation",
                         "the network between stages is taken as flat in the search"};
  const double usable = usable_bytes(system.groups.front().chip);
  double best_s = std::numeric_limits<double>::infinity();
  std::int64_t plans = 0;
  outcome.work = visit_graphpipe_plans(problem, [&](const GraphPipeSolution& found) {
    if (budget.work > 0 && ++plans > budget.work) return 0.0;
    Candidate candidate;
    candidate.plan = graphpipe_plan(job, system, found);
    candidate.metrics = measure(candidate.plan);
    ++outcome.evaluated;
    if (candidate.metrics.peak_memory_bytes <= usable &&
        candidate.metrics.iteration_time_s < best_s) {
      best_s = candidate.metrics.iteration_time_s;
      outcome.objective = found.time_s;
      outcome.candidates = {std::move(candidate)};
    }
    return std::numeric_limits<double>::infinity();
  });
  outcome.status = outcome.candidates.empty() ? Status::infeasible : Status::feasible;
  if (outcome.candidates.empty()) outcome.infeasibility = explain(problem);
  return outcome;
}

}  // namespace braid
