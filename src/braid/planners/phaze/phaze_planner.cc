#include "braid/planners/phaze/phaze_planner.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/job/alternatives.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/one_form_job.h"
#include "braid/planners/phaze/job_candidates.h"
#include "braid/planners/phaze/search.h"
#include "braid/system/links.h"

namespace braid {
namespace {

constexpr std::int64_t kMostConfigurations = 100'000;  ///< Unless a budget is given.
/// Tables grow with the cube of the layers.
constexpr std::size_t kMostLayers = 512;
/// Stages of one configuration cut as a graph that are searched exactly, and those of all times the
/// stages of their pipelines: a second or so, for partial plans that none dominates become many.
constexpr std::size_t kMostCandidates = 2'000, kMostGraphWork = 200'000;
/// Steps of assign_graph(), as many as there are pairs of cuts for another one, beyond which no
/// more configurations are started with it.
constexpr std::int64_t kMostStartSteps = 30'000'000;

/// A configuration with its possible stages.
struct Group {
  Configuration configuration;
  PhazeProblem problem;  ///< Devices and micro-batches; the rest is in the candidates.
  PhazeCandidates candidates;
  std::unique_ptr<PhazeTable> table;
  PhazeSums sums;
  PhazeSpace space;
  const ModelCuts* cuts = nullptr;  ///< Null: layers in order.
};

PhazeProblem problem_of(const Configuration& configuration, const OneFormJob& job) {
  PhazeProblem problem;
  problem.devices = job.system().device_count;
  problem.micro_batches = job.job().global_batch / configuration.micro_batch;
  return problem;
}

std::unique_ptr<Group> group_of(const Configuration& configuration, const OneFormJob& job,
                                PhazeCandidates candidates, const ModelCuts* model_cuts) {
  auto group = std::make_unique<Group>();
  group->configuration = configuration;
  group->problem = problem_of(configuration, job);
  group->candidates = std::move(candidates);
  group->cuts = model_cuts;
  const std::size_t cuts = model_cuts != nullptr ? model_cuts->cuts.sets.size() : job.layers() + 1;
  group->table = std::make_unique<PhazeTable>(group->candidates, cuts, configuration.pp,
                                              group->problem.devices);
  group->sums = phaze_sums(group->candidates, cuts);
  group->space = {&group->problem, &group->candidates, group->table.get(), &group->sums, cuts};
  return group;
}

/// The layers of one of its stages.
std::vector<std::int32_t> layers_of(const Group& group, const PhazeCandidate& stage) {
  std::vector<std::int32_t> layers;
  if (group.cuts == nullptr) {
    for (std::uint32_t l = stage.inner; l < stage.outer; ++l) {
      layers.push_back(static_cast<std::int32_t>(l));
    }
    return layers;
  }
  const std::vector<Bitset>& cuts = group.cuts->cuts.sets;
  (cuts[stage.outer] - cuts[stage.inner]).for_each([&](std::size_t l) {
    layers.push_back(static_cast<std::int32_t>(l));
  });
  return layers;
}

/// With all splits of experts and both ways of recomputation.
std::vector<Configuration> configurations_of(const OneFormJob& job, const SpaceOptions& space) {
  std::vector<Configuration> all;
  for (const Configuration& least : job.configurations()) {
    if (least.order != AxisOrder::pipeline_outermost) continue;
    for (Configuration configuration : job.expert_splits(least)) {
      for (const Recompute recompute : {configuration.recompute, Recompute::full}) {
        if (space.recompute.has_value() && recompute != *space.recompute) continue;
        configuration.recompute = recompute;
        if (is_listed(space, configuration)) all.push_back(configuration);
      }
    }
  }
  const auto key = [](const Configuration& c) {
    return std::tie(c.tp, c.dp, c.micro_batch, c.ep, c.recompute, c.sharding);
  };
  std::sort(all.begin(), all.end(),
            [&](const Configuration& a, const Configuration& b) { return key(a) < key(b); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

PhazeJobNetwork network_of(const OneFormJob& job) {
  const System& system = job.system();
  return {system.device_count > 1 ? link_bytes_per_s(system, 0, system.device_count - 1) : 1,
          static_cast<double>(bytes_per_element(job.job().precision.gradient))};
}

/// What the layers themselves allow, however they are cut.
class BatchBound {
 public:
  BatchBound(OneFormJob& job, const Configuration& configuration, const PhazeJobNetwork& network,
             PhazeObjective objective)
      : objective_(objective),
        stages_(configuration.pp),
        micro_batches_(static_cast<double>(configuration.num_micro_batches)) {
    double parameters = 0;
    for (const ChainLayer& layer : job.table(configuration).chain) {
      sum_s_ += layer.time_s();
      forward_s_ += layer.forward_s;
      longest_s_ = std::max(longest_s_, layer.time_s());
      parameters += synced_parameters(layer, configuration, job.job().precision);
    }
    longest_s_ = std::max(longest_s_, sum_s_ / stages_);
    sync_s_ = sync_factor(configuration.dp) * parameters * network.gradient_bytes / 2 /
              network.bytes_per_s;
  }

  /// Of a batch.
  double least_s() const {
    switch (objective_) {
      case PhazeObjective::program:
        return kBelowRounding * (micro_batches_ + stages_ - 1) * longest_s_;
      case PhazeObjective::flush:
        return kBelowRounding * ((micro_batches_ - 1) * longest_s_ + std::max(sum_s_, late_s()));
      case PhazeObjective::simulated:
        break;
    }
    return kBelowRounding * std::max({micro_batches_ * longest_s_, sum_s_, late_s()});
  }
  /// With a longer stage no batch takes less than `below_s`.
  double longest_stage_s(double below_s) const {
    double most_s = below_s / micro_batches_;  // Its own passes come one after another.
    if (objective_ == PhazeObjective::program) most_s = below_s / (micro_batches_ + stages_ - 1);
    if (objective_ == PhazeObjective::flush && micro_batches_ > 1) {
      most_s = std::min(most_s, (below_s - sum_s_) / (micro_batches_ - 1));
    }
    return most_s / kBelowRounding;
  }

 private:
  /// Some stage has its part of what all synchronise to do after its last backward pass, which all
  /// stages' forward passes precede.
  double late_s() const { return forward_s_ + sync_s_ / stages_; }

  PhazeObjective objective_;
  double stages_, micro_batches_;
  double sum_s_ = 0, forward_s_ = 0, longest_s_ = 0, sync_s_ = 0;
};

/// A search over all configurations by one objective, least bound first. Stops, with a bound, after
/// `most` of them; 0: none.
class PhazeSearch {
 public:
  PhazeSearch(OneFormJob& job, const PhazeJobSpace& space, std::int64_t most)
      : job_(job),
        network_(network_of(job)),
        configurations_(configurations_of(job, space)),
        objective_(space.objective),
        most_(most),
        shown_(static_cast<std::size_t>(std::max(1, space.top))) {}

  void run_in_order(const Progress& progress) {
    std::vector<std::pair<PhazeCombination, std::unique_ptr<Group>>> open;
    for (const Configuration& configuration : configurations_) {
      auto group = group_of(configuration, job_,
                            phaze_chain_candidates(job_, configuration, network_), nullptr);
      const auto combination = combination_of(*group);
      if (combination.has_value()) open.emplace_back(*combination, std::move(group));
    }
    std::stable_sort(open.begin(), open.end(), [](const auto& a, const auto& b) {
      return a.first.bound_s < b.first.bound_s;
    });
    for (const auto& [combination, group] : open) {
      if (!(combination.bound_s < limit_s_)) break;
      if (!take(combination.bound_s, progress)) break;
      search(*group, combination);
    }
  }

  /// The same with branches cut as a graph, below what was found.
  void run_as_graph(const Progress& progress) {
    // All that was left out so far is looked at again.
    bound_s_ = kInfinity;
    complete_ = true;
    std::vector<std::pair<double, const Configuration*>> open;
    open.reserve(configurations_.size());
    for (const Configuration& configuration : configurations_) {
      open.emplace_back(BatchBound(job_, configuration, network_, objective_).least_s(),
                        &configuration);
    }
    std::stable_sort(open.begin(), open.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t work_left = kMostGraphWork;
    const auto cuts = static_cast<std::int64_t>(job_.cuts().cuts.sets.size());
    std::int64_t steps = 0;
    for (const auto& [least_s, configuration] : open) {
      if (!(least_s < limit_s_)) break;
      if (!take(least_s, progress)) break;
      double bound_s = least_s;
      if (configuration->pp > 1 && steps + cuts * cuts < kMostStartSteps) {
        const auto start = phaze_graph_start(job_, *configuration, network_, limit_s_, steps);
        if (objective_ == PhazeObjective::flush) {
          if (!start.has_value()) continue;
          bound_s = std::max(bound_s, start->bound_s);
        }
        if (start.has_value()) keep_start(*configuration, *start);
        if (!(bound_s < limit_s_)) continue;
      }
      const BatchBound bound(job_, *configuration, network_, objective_);
      const auto stages = static_cast<std::size_t>(configuration->pp);
      auto candidates =
          phaze_graph_candidates(job_, *configuration, network_, bound.longest_stage_s(limit_s_),
                                 std::min(kMostCandidates, work_left / stages));
      if (!candidates.has_value()) {
        left_out_ = true;
        bound_s_ = std::min(bound_s_, bound_s);
        continue;
      }
      work_left -= candidates->all.size() * stages;
      const auto group = group_of(*configuration, job_, std::move(*candidates), &job_.cuts());
      const auto combination = combination_of(*group);
      if (combination.has_value() && combination->bound_s < limit_s_) search(*group, *combination);
    }
  }

  std::vector<OneFormAssignment> take_found() { return std::move(found_); }
  std::int64_t work() const { return work_; }
  bool complete() const { return complete_; }
  /// Whether some configuration had too many stages to be cut as a graph.
  bool left_out() const { return left_out_; }
  /// What no plan's objective is below, as far as the search has come.
  double bound_s() const { return std::min(bound_s_, best_s_); }
  /// Of the best plan, by every objective.
  const std::vector<OwnTime>& own_times() const { return own_times_; }

 private:
  /// That of a group's configuration; nullopt when memory allows none.
  std::optional<PhazeCombination> combination_of(const Group& group) const {
    const Configuration& configuration = group.configuration;
    for (const PhazeCombination& combination : phaze_combinations(group.space, objective_)) {
      if (combination.dp == configuration.dp && combination.stages == configuration.pp) {
        return combination;
      }
    }
    return std::nullopt;
  }

  /// Whether one more, with this bound, may be looked at.
  bool take(double bound_s, const Progress& progress) {
    if (progress) progress(best_s_, std::min(bound_s, best_s_), work_);
    if (work_ >= most_) {
      complete_ = false;
      bound_s_ = std::min(bound_s_, bound_s);
      return false;
    }
    ++work_;
    return true;
  }

  void search(const Group& group, const PhazeCombination& combination) {
    const auto plan = best_of(group.space, combination);
    if (!plan.has_value()) return;
    std::vector<std::vector<std::int32_t>> layers;
    for (const PhazeCandidate& stage : plan->stages) layers.push_back(layers_of(group, stage));
    keep(group.configuration, group.problem, *plan, std::move(layers));
  }

  void keep_start(const Configuration& configuration, const PhazeJobStages& start) {
    const PhazeProblem problem = problem_of(configuration, job_);
    const PhazeFormulas formulas = phaze_formulas(problem, configuration.dp, start.stages);
    PhazeSequence plan;
    plan.dp = configuration.dp;
    plan.stages = start.stages;
    plan.objective_s = formulas.flush_s;
    if (objective_ == PhazeObjective::program) plan.objective_s = formulas.program_s;
    if (objective_ == PhazeObjective::simulated) {
      plan.objective_s = phaze_simulated_s(problem, plan.dp, plan.stages, workspace_);
    }
    if (plan.objective_s < limit_s_) keep(configuration, problem, plan, start.layers);
  }

  std::optional<PhazeSequence> best_of(const PhazeSpace& space,
                                       const PhazeCombination& combination) {
    if (objective_ == PhazeObjective::program) return best_by_program(space, combination, limit_s_);
    if (objective_ == PhazeObjective::flush) return best_by_flush(space, combination, limit_s_);
    PhazeSimulated simulated = best_by_simulation(space, combination, limit_s_, plans_left_);
    plans_left_ -= simulated.plans;
    bound_s_ = std::min(bound_s_, simulated.bound_s);
    return std::move(simulated.best);
  }

  void keep(const Configuration& configuration, const PhazeProblem& problem,
            const PhazeSequence& plan, std::vector<std::vector<std::int32_t>> layers) {
    found_.push_back({configuration, std::move(layers), plan.objective_s});
    // Only what is better than the worst that would be shown is still of use.
    costs_.add(configuration, plan.objective_s);
    limit_s_ = costs_.kth_least_s(shown_);
    if (!(plan.objective_s < best_s_)) return;
    best_s_ = plan.objective_s;
    const PhazeFormulas formulas = phaze_formulas(problem, plan.dp, plan.stages);
    own_times_ = {{"flush_s", "by its formula", formulas.flush_s},
                  {"simulated_s", "by its passes of 1F1B one by one",
                   phaze_simulated_s(problem, plan.dp, plan.stages, workspace_)},
                  {"program_s", "by its program's formula", formulas.program_s}};
  }

  OneFormJob& job_;
  PhazeJobNetwork network_;
  std::vector<Configuration> configurations_;
  PhazeObjective objective_;
  std::int64_t most_;
  std::size_t shown_;
  std::vector<OneFormAssignment> found_;
  ClassCosts costs_;
  double limit_s_ = kInfinity;  ///< What costs less would be shown.
  double best_s_ = kInfinity;
  double bound_s_ = kInfinity;
  std::vector<OwnTime> own_times_;
  PipelineWorkspace workspace_;
  std::int64_t plans_left_ = PhazeOptions{}.most_plans;
  std::int64_t work_ = 0;
  bool complete_ = true, left_out_ = false;
};

const char* title_of(PhazeObjective objective) {
  switch (objective) {
    case PhazeObjective::program:
      return "Phaze's time per batch as its program has it (s)";
    case PhazeObjective::simulated:
      return "Phaze's time per batch, simulated (s)";
    case PhazeObjective::flush:
      break;
  }
  return "Phaze's time per batch (s)";
}

}  // namespace

PhazeJobSpace phaze_space(const SpaceOptions& space, const FamilyWords& words) {
  PhazeJobSpace told{space, PhazeObjective::flush};
  const std::string_view objective = word_of(words, "objective");
  if (!objective.empty()) told.objective = parse_phaze_objective(objective);
  return told;
}

Outcome plan_phaze(const Job& job, const System& system, const PhazeJobSpace& space,
                   const Budget& budget, const Progress& progress) {
  const std::size_t layers = layer_options(job)->layers().layers.size();
  if (layers > kMostLayers) {
    throw Error(
        fmt::format("the phaze planner takes at most {} layers, not {}", kMostLayers, layers),
        "use --planner braid");
  }
  OneFormJob one_form(job, system, space, "phaze");
  PhazeSearch search(one_form, space, budget.or_by_default(kMostConfigurations).work);
  search.run_in_order(progress);
  if (one_form.is_graph()) search.run_as_graph(progress);
  Outcome outcome =
      one_form.outcome(search.take_found(), search.work(), search.complete() && !search.left_out(),
                       title_of(space.objective));
  outcome.own_times = search.own_times();
  if (search.left_out()) {
    outcome.assumptions.push_back(
        "where branches can be cut into too many stages, not all ways to cut them are tried");
  }
  if (outcome.candidates.empty()) return outcome;
  outcome.search_bound_s = search.bound_s();
  const bool proven = is_proven(outcome.search_bound_s, outcome.objective);
  outcome.status = proven ? Status::optimal : Status::feasible;
  return outcome;
}

}  // namespace braid
