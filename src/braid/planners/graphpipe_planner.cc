#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/planners/graphpipe_exact.h"
#include "braid/planners/graphpipe_iteration.h"
#include "braid/planners/graphpipe_job.h"
#include "braid/planners/graphpipe_search.h"
#include "braid/planners/graphpipe_warm_ups.h"
#include "braid/planners/planner.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

void refuse(bool asked, const char* option) {
  if (!asked) return;
  throw Error(Where{"", 0, option}, "the graphpipe planner cannot do that",
              "leave it out or use --planner braid");
}

void check_space(const SpaceOptions& space) {
  refuse(space.tp.value_or(1) != 1, "--tp");
  refuse(space.pp.has_value(), "--pp");
  refuse(space.dp.has_value(), "--dp");
  refuse(space.cp.value_or(1) != 1, "--cp");
  refuse(space.ep.value_or(1) != 1, "--ep");
  refuse(space.vp.value_or(1) != 1, "--vp");
  refuse(space.recompute.value_or(Recompute::none) != Recompute::none, "--recompute");
  refuse(space.zero.value_or(Zero::none) != Zero::none, "--zero");
  refuse(space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b,
         "--schedule");
  refuse(space.sequence_parallel.value_or(false), "--sequence-parallel");
}

/// What the plan with most devices and any memory would need.
Infeasibility explain(GraphPipeProblem problem) {
  Infeasibility why{"no graph pipeline fits in memory", -1, 0, problem.memory_bytes, {}};
  problem.memory_bytes = std::numeric_limits<double>::max();
  problem.in_flight = InFlight::table;
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

/// Shows the plans of stages of any shape whose slowest stage is fastest, one for each micro-batch
/// size. Returns what series-parallel stages lose, for users.
template <class Visit>
std::string visit_exact_plans(GraphPipeProblem problem, const Visit& visit, std::int64_t& work) {
  problem.in_flight = InFlight::table;  // What the exact search knows.
  double exact_s = std::numeric_limits<double>::infinity();
  GraphPipeProblem one = problem;
  for (const PassGroup& group : problem.groups) {
    one.groups = {group};
    const GraphPipeSolution found = solve_graphpipe_exactly(one);
    work += found.work;
    if (found.status == Status::infeasible) continue;
    exact_s = std::min(exact_s, found.time_s);
    visit(found);
  }
  const GraphPipeSolution plain = solve_graphpipe(problem);
  work += plain.work;
  const std::string figures =
      std::isfinite(exact_s) ? format_seconds(exact_s) + " with stages of any shape" : "no plan";
  const std::string others = plain.status == Status::infeasible
                                 ? "no plan"
                                 : fmt::format("{} ({:.2f}% more)", format_seconds(plain.time_s),
                                               100 * std::max(0.0, plain.time_s / exact_s - 1));
  return fmt::format(
      "the slowest stage takes, per sample and on the flat network, at best {}; with "
      "series-parallel stages: {}",
      figures, others);
}

}  // namespace

Outcome plan_graphpipe(const Job& job, const System& system, const SpaceOptions& space,
                       const Budget& budget, const Progress& progress) {
  Outcome outcome;
  check_space(space);
  outcome.physical_bound = lower_bound(*job.graph, job.precision, job.global_batch, system);
  outcome.objective_name = "iteration time (simulated, s)";
  GraphPipeProblem problem = graphpipe_problem(job, system);
  problem.in_flight = space.in_flight;
  if (space.micro_batch) {
    std::erase_if(problem.groups, [&](const PassGroup& group) {
      return group.micro_batch % *space.micro_batch != 0;
    });
    const auto keep =
        std::find(problem.device_samples.begin(), problem.device_samples.end(), *space.micro_batch);
    if (keep == problem.device_samples.end() || problem.groups.empty()) {
      throw Error(Where{"", 0, "--micro-batch"},
                  fmt::format("{} samples are no power of two that divides the batch of {}",
                              *space.micro_batch, job.global_batch),
                  "the graphpipe planner tries powers of two");
    }
    const auto index = static_cast<std::size_t>(keep - problem.device_samples.begin());
    problem.device_samples = {*space.micro_batch};
    for (GraphPipeKind& kind : problem.kinds) {
      kind.forward_s = {kind.forward_s[index]};
      kind.backward_s = {kind.backward_s[index]};
    }
  }
  outcome.assumptions = {
      "no tensor parallelism and no recomputation",
      "the search takes the network between stages as flat, at the rate of its outermost level "
      "and at that inside a node; plans are then timed on the real one"};
  const double usable = usable_bytes(system.groups.front().chip);
  double best_s = std::numeric_limits<double>::infinity();
  std::int64_t plans = 0;
  const bool least = space.in_flight == InFlight::least;
  outcome.search_bound_s = std::max(outcome.physical_bound.time_s, graphpipe_bound_s(problem));
  const auto consider = [&](Plan plan) {
    Candidate candidate;
    candidate.plan = std::move(plan);
    candidate.metrics = measure(candidate.plan);
    ++outcome.evaluated;
    if (candidate.metrics.peak_memory_bytes > usable ||
        candidate.metrics.iteration_time_s >= best_s) {
      return;
    }
    best_s = candidate.metrics.iteration_time_s;
    outcome.objective = best_s;
    outcome.candidates = {std::move(candidate)};
  };
  const auto visit = [&](const GraphPipeSolution& found) {
    if (budget.work > 0 && ++plans > budget.work) return 0.0;
    Plan plan = graphpipe_plan(job, system, found);
    if (least) {
      // A pipeline that fills and drains can gain by more than keeps its rate: both are tried.
      Plan counted = plan;
      set_warm_ups(counted, rate_keeping_warm_ups(plan));
      consider(std::move(counted));
    }
    consider(std::move(plan));
    if (progress) progress(best_s, outcome.search_bound_s, outcome.evaluated);
    return std::numeric_limits<double>::infinity();
  };
  const auto search = [&](const GraphPipeProblem& flat) {
    outcome.work += visit_graphpipe_plans(flat, visit);
    GraphPipeProblem inside = flat;  // As if neighbouring stages were always in one node.
    inside.bandwidth_bytes_per_s = flat.node_bandwidth_bytes_per_s;
    if (inside.bandwidth_bytes_per_s <= flat.bandwidth_bytes_per_s) return;
    outcome.work += visit_graphpipe_plans(inside, [&](const GraphPipeSolution& found) {
      // On that network no plan is slower than on the real one, nor than its slowest stage.
      return std::min(visit(found), best_s / static_cast<double>(flat.batch));
    });
  };
  search(problem);
  if (least) {
    // Stages with no room for counts that lose no time at their rate may lose little.
    GraphPipeProblem table = problem;
    table.in_flight = InFlight::table;
    search(table);
  }
  if (space.graph_stages == GraphStages::exact) {
    outcome.assumptions.push_back(visit_exact_plans(problem, visit, outcome.work));
  }
  if (least && !outcome.candidates.empty()) {
    Candidate& best = outcome.candidates.front();
    set_warm_ups(best.plan, fewest_warm_ups(best.plan));
    best.metrics = measure(best.plan);
    outcome.objective = best.metrics.iteration_time_s;
  }
  outcome.status = outcome.candidates.empty() ? Status::infeasible : Status::feasible;
  if (outcome.candidates.empty()) outcome.infeasibility = explain(problem);
  return outcome;
}

}  // namespace braid
