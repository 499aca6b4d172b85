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
#include "braid/planners/job/by_kind.h"
#include "braid/planners/job/outcomes.h"
#include "braid/schedule/path_bound.h"
#include "braid/schedule/plan_pipeline.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::int64_t kMostPlans = 20'000;  ///< Simulated, unless a budget is given.

void refuse(bool asked, const char* option) {
  if (!asked) return;
  throw Error(Where{"", 0, option}, "the graphpipe planner cannot do that",
              "leave it out or use --planner braid");
}

void check_space(const GraphPipeSpace& space) {
  refuse(!space.pp.is_any(), "--pp");
  refuse(!space.dp.is_any(), "--dp");
  refuse(!space.cp.allows(1), "--cp");
  refuse(space.whole_experts.value_or(false), "--whole-experts");
  refuse(!space.vp.allows(1), "--vp");
  refuse(space.all_devices, "--all-devices");
  refuse(space.zero.value_or(Zero::none) != Zero::none, "--zero");
  refuse(space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b,
         "--schedule");
}

/// The problem with its first strategies alone.
GraphPipeProblem with_first_strategies(GraphPipeProblem problem, std::size_t count) {
  problem.strategies.resize(count);
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
        limited.pool_of(limited.strategies[static_cast<std::size_t>(stage.strategy)]).memory_bytes;
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
                                 : fmt::format("{} ({:.2f} % more)", format_seconds(plain.time_s),
                                               100 * std::max(0.0, plain.time_s / exact_s - 1));
  return fmt::format(
      "the slowest stage takes, per sample and on the flat network, at best {}; with "
      "series-parallel stages: {}",
      figures, others);
}

/// No order of the plan's passes takes less.
double path_bound_s(const Plan& plan) {
  PathBoundWorkspace workspace;
  return pipeline_path_bound_s(pipeline_to_time(plan).pipeline, workspace);
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
    if (path_bound_s(plan) > std::min(limit_s, time_s())) return;
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
      return keep(fmt::format("the greedy one takes {:.2f} % more", 100 * share));
    }
    if (share > -kToleranceShare && metrics.peak_memory_bytes > other->metrics.peak_memory_bytes) {
      return keep("the greedy one takes as long and more memory");
    }
    said += share > -kToleranceShare
                ? "greedy, which takes as long as 1F1B and no more memory"
                : fmt::format("greedy, which takes {:.2f} % less than 1F1B", -100 * share);
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

/// Leaves the micro-batch size that the user fixed, if any.
void fix_micro_batch(const Job& job, const Degrees& micro_batch, GraphPipeProblem& problem) {
  if (micro_batch.is_any()) return;
  const std::optional<int> fixed = micro_batch.single();
  if (!fixed) {
    throw Error(Where{"", 0, "--micro-batch"}, "the graphpipe planner takes no list or limit",
                "give one size, or leave it out");
  }
  std::erase_if(problem.groups,
                [&](const PassGroup& group) { return group.micro_batch % *fixed != 0; });
  const auto keep = std::find(problem.device_samples.begin(), problem.device_samples.end(), *fixed);
  if (keep == problem.device_samples.end() || problem.groups.empty()) {
    throw Error(Where{"", 0, "--micro-batch"},
                fmt::format("{} samples are no power of two that divides the batch of {}", *fixed,
                            job.global_batch),
                "the graphpipe planner tries powers of two");
  }
  fix_samples(problem, static_cast<std::size_t>(keep - problem.device_samples.begin()));
}

void add_assumptions(std::span<const Configuration> strategies, const System& system,
                     std::vector<std::string>& assumptions) {
  const bool plain =
      std::all_of(strategies.begin(), strategies.end(),
                  [](const Configuration& strategy) { return strategy == Configuration{}; });
  assumptions.emplace_back(plain ? "no tensor parallelism and no recomputation"
                                 : "no ZeRO; a stage runs all its layers in one strategy");
  assumptions.emplace_back(
      "the search takes the network between stages as flat, at the rate of its outermost level "
      "and at that inside a node; plans are then timed on the real one");
  if (!is_homogeneous(system)) {
    assumptions.emplace_back("the devices of a stage are all of one group of the cluster");
  }
}

/// The search on a system each of whose groups is one kind of devices.
class GroupSearch {
 public:
  GroupSearch(const Job& job, const System& system, const GraphPipeSpace& space,
              const Budget& budget, const Progress& progress)
      : job_(job),
        system_(system),
        space_(space),
        budget_(budget.or_by_default(kMostPlans)),
        progress_(progress),
        tables_(job, system),
        all_(graphpipe_job(job, system, tables_, space)),
        outcome_(begin_outcome(job, system)) {
    all_.problem.in_flight = space.in_flight;
    fix_micro_batch(job, space.micro_batch, all_.problem);
    add_assumptions(all_.strategies, system, outcome_.assumptions);
    outcome_.search_bound_s =
        std::max(outcome_.physical_bound.time_s, graphpipe_bound_s(all_.problem));
  }

  Outcome run() {
    // The fastest bottleneck need not have the shortest iteration: plain strategies alone have
    // other plans.
    if (all_.problem.strategies.size() > all_.plain) {
      search_counts(with_first_strategies(all_.problem, all_.plain));
    }
    if (all_.manual > all_.plain && all_.manual < all_.strategies.size()) {
      search_counts(with_first_strategies(all_.problem, all_.manual));
    }
    search_counts(all_.problem);
    if (space_.graph_stages == GraphStages::exact) {
      outcome_.assumptions.push_back(visit_exact_plans(
          all_.problem, [this](const GraphPipeSolution& found) { return visit(found); },
          outcome_.work));
    }
    take_best();
    if (!outcome_.candidates.empty()) {
      outcome_.status = Status::feasible;
    } else if (is_spent()) {
      outcome_.status = Status::budget_exhausted;
    } else {
      outcome_.status = Status::infeasible;
      outcome_.infeasibility = explain(all_.problem);
    }
    return std::move(outcome_);
  }

 private:
  bool counts_least() const { return space_.in_flight == InFlight::least; }
  double best_s() const { return std::min(fastest_.time_s(), greedy_.time_s()); }
  /// Whether the budget kept some plan from being simulated.
  bool is_spent() const { return plans_ > budget_.work; }

  /// Simulates a plan in some orders of its passes; returns the bottleneck, per sample, above which
  /// no plan is faster than the best so far.
  double visit(const GraphPipeSolution& found) {
    ++plans_;
    if (is_spent()) return 0.0;
    const Plan plan = graphpipe_plan(job_, system_, tables_, all_, found);
    const auto consider = [&](const WarmUps& warm_ups) {
      Plan counted = plan;
      set_warm_ups(counted, warm_ups);
      fastest_.consider(std::move(counted));
    };
    // A pipeline that fills and drains can gain by more than keeps its rate: all are tried.
    if (counts_least()) consider(rate_keeping_warm_ups(plan));
    fastest_.consider(plan);
    if (counts_least() && !is_proven(path_bound_s(plan), fastest_.time_s())) {
      consider(time_keeping_warm_ups(plan));
    }
    if (space_.greedy_orders) greedy_.consider(plan, best_s());
    if (progress_) progress_(best_s(), outcome_.search_bound_s, outcome_.evaluated);
    // A stage's devices do its passes one after another on any network; nothing else of a plan for
    // a flat one bounds its iteration on the real one.
    return best_s() / static_cast<double>(all_.problem.batch) * kAboveTolerance;
  }

  void search(const GraphPipeProblem& flat) {
    const auto look_at = [this](const GraphPipeSolution& found) { return visit(found); };
    outcome_.work += visit_graphpipe_plans(flat, look_at);
    const std::optional<GraphPipeProblem> inside = inside_nodes(flat);
    if (inside) outcome_.work += visit_graphpipe_plans(*inside, look_at);
  }

  void search_counts(const GraphPipeProblem& counted) {
    search(counted);
    if (!counts_least()) return;
    // Stages with no room for counts that lose no time at their rate may lose little.
    GraphPipeProblem table = counted;
    table.in_flight = InFlight::table;
    search(table);
  }

  void take_best() {
    std::optional<Candidate> best = std::move(fastest_.best);
    if (best && counts_least()) {
      set_warm_ups(best->plan, fewest_warm_ups(best->plan));
      best->metrics = measure(best->plan);
    }
    if (space_.greedy_orders) {
      std::string said;
      best = greedy_.better(std::move(best), said);
      if (best) outcome_.assumptions.push_back(std::move(said));
    }
    if (!best) return;
    outcome_.objective = best->metrics.iteration_time_s;
    outcome_.candidates = {std::move(*best)};
  }

  const Job& job_;
  const System& system_;
  const GraphPipeSpace& space_;
  const Budget budget_;
  const Progress& progress_;
  GroupTables tables_;
  GraphPipeJob all_;
  Outcome outcome_;
  Fastest fastest_{outcome_};
  GreedyPlans greedy_{outcome_};
  std::int64_t plans_ = 0;
};

Outcome plan_on_groups(const Job& job, const System& system, const GraphPipeSpace& space,
                       const Budget& budget, const Progress& progress) {
  return GroupSearch(job, system, space, budget, progress).run();
}

}  // namespace

GraphPipeSpace graphpipe_space(const SpaceOptions& space, const FamilyWords& words) {
  GraphPipeOptions told;
  if (word_of(words, "graph") == "exact") told.graph_stages = GraphStages::exact;
  if (word_of(words, "stage-options") == "data") told.stage_options = StageOptions::data;
  if (word_of(words, "inflight") == "table") told.in_flight = InFlight::table;
  told.greedy_orders = word_of(words, "schedule") == "greedy";
  return {space, told};
}

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
