#include "braid/planners/graphpipe/graphpipe_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/plan/stage_context.h"
#include "braid/planners/graphpipe/exact.h"
#include "braid/planners/graphpipe/greedy.h"
#include "braid/planners/graphpipe/iteration.h"
#include "braid/planners/graphpipe/job.h"
#include "braid/planners/graphpipe/search.h"
#include "braid/planners/graphpipe/warm_ups.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/mixed/by_kind.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

void refuse(bool asked, const char* option) {
  if (!asked) return;
  throw Error(Where{"", 0, option}, "the graphpipe planner cannot do that",
              "leave it out or use --planner braid");
}

void check_space(const GraphPipeSpace& space) {
  refuse(space.pp.has_value(), "--pp");
  refuse(space.dp.has_value(), "--dp");
  refuse(space.cp.value_or(1) != 1, "--cp");
  refuse(space.ep.value_or(1) != 1, "--ep");
  refuse(space.vp.value_or(1) != 1, "--vp");
  refuse(space.zero.value_or(Zero::none) != Zero::none, "--zero");
  refuse(space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b,
         "--schedule");
}

/// The problem with its first ways alone.
GraphPipeProblem with_first_ways(GraphPipeProblem problem, std::size_t count) {
  problem.ways.resize(count);
  for (GraphPipeKind& kind : problem.kinds) kind.resize(count);
  return problem;
}

/// The problem with so many samples per replica alone, an index in its device_samples.
void fix_samples(GraphPipeProblem& problem, std::size_t index) {
  problem.device_samples = {problem.device_samples[index]};
  for (GraphPipeKind& kind : problem.kinds) {
    for (GraphPipeCost& cost : kind) {
      cost.forward_s = {cost.forward_s[index]};
      cost.backward_s = {cost.backward_s[index]};
    }
  }
}

/// What the plan with most devices and any memory would need.
Infeasibility explain(const GraphPipeProblem& limited) {
  GraphPipeProblem problem = limited;
  Infeasibility why{
      "no graph pipeline fits in memory", -1, 0, problem.pools.front().memory_bytes, {}};
  for (GraphPipePool& pool : problem.pools) {
    pool.memory_bytes = std::numeric_limits<double>::max();
  }
  double least_room = kInfinity;
  problem.in_flight = InFlight::table;
  // The smallest micro-batches need least memory.
  if (!problem.groups.empty()) problem.groups.resize(1);
  const GraphPipeSolution solution = solve_graphpipe(problem);
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    const GraphPipeStage& stage = solution.stages[s];
    const double available_bytes =
        limited.pool_of(limited.ways[static_cast<std::size_t>(stage.way)]).memory_bytes;
    if (available_bytes - stage.memory_bytes >= least_room) continue;
    least_room = available_bytes - stage.memory_bytes;
    why.needed_bytes = stage.memory_bytes;
    why.available_bytes = available_bytes;
    why.stage = static_cast<std::int64_t>(s);
  }
  return why;
}

/// Shows the plans of stages of any shape whose slowest stage is fastest, one for each micro-batch
/// size. Returns what series-parallel stages lose, for users.
template <class Visit>
std::string visit_exact_plans(GraphPipeProblem problem, const Visit& visit, std::int64_t& work) {
  problem.in_flight = InFlight::table;  // What the exact search knows.
  double exact_s = kInfinity;
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

/// The fastest plan so far of those that fit.
class Fastest {
 public:
  explicit Fastest(Outcome& outcome) : outcome_(outcome) {}

  std::optional<Candidate> best;

  double time_s() const { return best ? best->metrics.iteration_time_s : kInfinity; }
  void consider(Plan plan) {
    Candidate candidate;
    candidate.plan = std::move(plan);
    candidate.metrics = measure(candidate.plan);
    ++outcome_.evaluated;
    const Metrics& metrics = candidate.metrics;
    if (metrics.tightest_memory.device_total() >
            usable_bytes_of_stage(candidate.plan, metrics.tightest_stage) ||
        metrics.iteration_time_s >= time_s()) {
      return;
    }
    best = std::move(candidate);
  }

 private:
  Outcome& outcome_;
};

/// Plans with the greedy order of passes, of those found that may gain by it.
class GreedyPlans {
 public:
  explicit GreedyPlans(Outcome& outcome) : fastest_(outcome) {}

  double time_s() const { return fastest_.time_s(); }

  /// Tries one unless no order of its passes is faster than `limit_s`.
  void consider(const Plan& plan, double limit_s) {
    if (any_order_bound_s(plan) > std::min(limit_s, time_s()) * kAboveTolerance) return;
    ++promising_;
    const std::int64_t share = std::min(work_, kWork / 8);
    std::int64_t left = share;
    std::optional<Plan> ordered = greedy_plan(plan, left);
    work_ -= share - std::max<std::int64_t>(0, left);
    if (!ordered) return;
    ++tried_;
    fastest_.consider(std::move(*ordered));
  }

  /// The better of both, a greedy one only where it is faster or as fast with no more memory; says
  /// which.
  std::optional<Candidate> better(std::optional<Candidate> other, std::string& said) {
    said = "order of passes: ";
    if (!other) {
      said += "greedy";
      return std::move(fastest_.best);
    }
    const double other_s = other->metrics.iteration_time_s;
    if (!(time_s() < other_s * kBelowTolerance)) {
      fastest_.best.reset();
      consider(other->plan, other_s);
    }
    const std::string left_out =
        tried_ == promising_ ? ""
                             : fmt::format(
                                   "; of {} plans that might gain by the greedy one {} were "
                                   "not ordered, for their many passes",
                                   promising_, promising_ - tried_);
    const auto keep = [&](const std::string& why) {
      said += "1F1B, " + why + left_out;
      return std::move(other);
    };
    if (!fastest_.best) return keep("the greedy one was not tried on the best plan");
    const Metrics& metrics = fastest_.best->metrics;
    const double share = metrics.iteration_time_s / other_s - 1;
    if (share > kToleranceShare) {
      return keep(fmt::format("the greedy one takes {:.2f}% more", 100 * share));
    }
    if (share > -kToleranceShare && metrics.peak_memory_bytes > other->metrics.peak_memory_bytes) {
      return keep("the greedy one takes as long and more memory");
    }
    said += share > -kToleranceShare
                ? "greedy, which takes as long as 1F1B and no more memory"
                : fmt::format("greedy, which takes {:.2f}% less than 1F1B", -100 * share);
    said += left_out;
    return std::move(fastest_.best);
  }

 private:
  /// Passes timed for all plans together, some seconds; an eighth for one.
  static constexpr std::int64_t kWork = std::int64_t{1} << 25;

  Fastest fastest_;
  std::int64_t work_ = kWork;
  std::int64_t promising_ = 0, tried_ = 0;
};

/// The same problem as if neighbouring stages were always in one node; nullopt where that is no
/// faster.
std::optional<GraphPipeProblem> inside_nodes(GraphPipeProblem problem) {
  bool faster = false;
  const auto raise = [&](double& bandwidth, double inside) {
    faster = faster || inside > bandwidth;
    bandwidth = std::max(bandwidth, inside);
  };
  for (GraphPipePool& pool : problem.pools) {
    raise(pool.bandwidth_bytes_per_s, pool.node_bandwidth_bytes_per_s);
  }
  return faster ? std::optional(std::move(problem)) : std::nullopt;
}

/// Leaves only stages whose devices take so many samples at once.
void keep_micro_batch(GraphPipeProblem& problem, std::int64_t samples, std::int64_t global_batch) {
  std::erase_if(problem.groups,
                [&](const PassGroup& group) { return group.micro_batch % samples != 0; });
  const auto keep =
      std::find(problem.device_samples.begin(), problem.device_samples.end(), samples);
  if (keep == problem.device_samples.end() || problem.groups.empty()) {
    throw Error(Where{"", 0, "--micro-batch"},
                fmt::format("{} samples are no power of two that divides the batch of {}", samples,
                            global_batch),
                "the graphpipe planner tries powers of two");
  }
  fix_samples(problem, static_cast<std::size_t>(keep - problem.device_samples.begin()));
}

std::vector<std::string> assumptions_of(const GraphPipeJob& all, const System& system) {
  const bool plain = std::all_of(all.ways.begin(), all.ways.end(),
                                 [](const Configuration& way) { return way == Configuration{}; });
  std::vector<std::string> assumptions = {
      plain ? "no tensor parallelism and no recomputation"
            : "no ZeRO; a stage runs all its layers in one way",
      "the search takes the network between stages as flat, at the rate of its outermost level "
      "and at that inside a node; plans are then timed on the real one"};
  if (!is_homogeneous(system)) {
    assumptions.emplace_back("the devices of a stage are all of one group of the cluster");
  }
  return assumptions;
}

/// Each group of the system is one kind of devices.
Outcome plan_on_groups(const Job& job, const System& system, const GraphPipeSpace& space,
                       const Budget& budget, const Progress& progress) {
  Outcome outcome;
  outcome.physical_bound = lower_bound(job, system);
  outcome.objective_name = kSimulatedObjective;
  GroupTables tables(job, system);
  GraphPipeJob all = graphpipe_job(job, system, tables, space);
  GraphPipeProblem& problem = all.problem;
  problem.in_flight = space.in_flight;
  if (space.micro_batch) keep_micro_batch(problem, *space.micro_batch, job.global_batch);
  outcome.assumptions = assumptions_of(all, system);
  Fastest fastest(outcome);
  GreedyPlans greedy(outcome);
  const auto best_s = [&] { return std::min(fastest.time_s(), greedy.time_s()); };
  std::int64_t plans = 0;
  const bool least = space.in_flight == InFlight::least;
  outcome.search_bound_s = std::max(outcome.physical_bound.time_s, graphpipe_bound_s(problem));
  const auto visit = [&](const GraphPipeSolution& found) {
    if (budget.work > 0 && ++plans > budget.work) return 0.0;
    const Plan plan = graphpipe_plan(job, system, tables, all, found);
    const auto consider = [&](const WarmUps& warm_ups) {
      Plan counted = plan;
      set_warm_ups(counted, warm_ups);
      fastest.consider(std::move(counted));
    };
    // A pipeline that fills and drains can gain by more than keeps its rate: all are tried.
    if (least) consider(rate_keeping_warm_ups(plan));
    fastest.consider(plan);
    if (least && any_order_bound_s(plan) < fastest.time_s()) consider(time_keeping_warm_ups(plan));
    if (space.greedy_orders) greedy.consider(plan, best_s());
    if (progress) progress(best_s(), outcome.search_bound_s, outcome.evaluated);
    // A stage's devices do its passes one after another on any network; nothing else of a plan for
    // a flat one bounds its iteration on the real one.
    return best_s() / static_cast<double>(problem.batch) * kAboveTolerance;
  };
  const auto search = [&](const GraphPipeProblem& flat) {
    outcome.work += visit_graphpipe_plans(flat, visit);
    const std::optional<GraphPipeProblem> inside = inside_nodes(flat);
    if (inside) outcome.work += visit_graphpipe_plans(*inside, visit);
  };
  const auto search_counts = [&](const GraphPipeProblem& counted) {
    search(counted);
    if (!least) return;
    // Stages with no room for counts that lose no time at their rate may lose little.
    GraphPipeProblem table = counted;
    table.in_flight = InFlight::table;
    search(table);
  };
  // The fastest bottleneck need not have the shortest iteration: plain ways alone have other plans.
  if (problem.ways.size() > all.plain) search_counts(with_first_ways(problem, all.plain));
  if (all.manual > all.plain && all.manual < all.ways.size()) {
    search_counts(with_first_ways(problem, all.manual));
  }
  search_counts(problem);
  if (space.graph_stages == GraphStages::exact) {
    outcome.assumptions.push_back(visit_exact_plans(problem, visit, outcome.work));
  }
  std::optional<Candidate> best = std::move(fastest.best);
  if (best && least) {
    set_warm_ups(best->plan, fewest_warm_ups(best->plan));
    best->metrics = measure(best->plan);
  }
  if (space.greedy_orders) {
    std::string said;
    best = greedy.better(std::move(best), said);
    if (best) outcome.assumptions.push_back(std::move(said));
  }
  if (best) {
    outcome.objective = best->metrics.iteration_time_s;
    outcome.candidates = {std::move(*best)};
  }
  outcome.status = outcome.candidates.empty() ? Status::infeasible : Status::feasible;
  if (outcome.candidates.empty()) outcome.infeasibility = explain(problem);
  return outcome;
}

}  // namespace

Outcome plan_graphpipe(const Job& job, const System& system, const GraphPipeSpace& space,
                       const Budget& budget, const Progress& progress) {
  check_space(space);
  const GraphPipeOptions& options = space;
  const PlanFunction plan = [&](const Job& one, const System& groups, const SpaceOptions& within,
                                const Budget& most, const Progress& shown) {
    return plan_on_groups(one, groups, GraphPipeSpace{within, options}, most, shown);
  };
  return plan_by_kind({plan, plan}, job, system, space, budget, progress);
}

}  // namespace braid
