#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/planners/amp_job.h"
#include "braid/planners/phaze_search.h"
#include "braid/planners/planner.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// Tables grow with the cube of the layers.
constexpr std::size_t kMostLayers = 512;

/// All configurations that share their layers' costs.
struct Group {
  Configuration costs;  ///< One of them.
  std::map<std::pair<std::int64_t, std::int64_t>, Configuration> by_dp_pp;
  PhazeProblem problem;  ///< Devices and micro-batches; the rest is in the candidates.
  PhazeCandidates candidates;
  std::unique_ptr<PhazeTable> table;
  PhazeSums sums;
  PhazeSpace space;
};

/// Largest number of micro-batches in flight that a stage has memory for.
std::int64_t most_in_flight(const RunSums& sums, const MemoryForm& form) {
  const double held_bytes = device_bytes(sums, 0, form);
  const double each_bytes = device_bytes(sums, 1, form) - held_bytes;
  const double free_bytes = form.available_bytes - held_bytes;
  if (!(free_bytes >= 0)) return 0;
  constexpr double kMost = 1e9;
  auto most =
      static_cast<std::int64_t>(each_bytes > 0 ? std::min(kMost, free_bytes / each_bytes) : kMost);
  while (most > 0 && device_bytes(sums, static_cast<double>(most), form) > form.available_bytes) {
    --most;
  }
  return most;
}

PhazeCandidates candidates_of(AmpJob& job, const Configuration& configuration, double bytes_per_s,
                              double gradient_bytes) {
  const std::vector<ChainLayer>& layers = job.table(configuration).chain;
  const MemoryForm form = job.memory(configuration);
  const Parallelism parallel = to_parallelism(configuration);
  std::vector<double> transfer_s(layers.size() + 1, 0);  // In front of each layer.
  for (std::size_t l = 1; l < layers.size(); ++l) {
    transfer_s[l] = boundary_bytes({0, 0, job.cut_bytes()[l - 1]}, parallel) / bytes_per_s;
  }
  PhazeCandidates candidates;
  for (std::size_t left = 0; left < layers.size(); ++left) {
    candidates.offset.push_back(candidates.all.size());
    RunSums sums;
    for (std::size_t right = left + 1; right <= layers.size(); ++right) {
      sums.add(layers[right - 1]);
      const std::int64_t in_flight = most_in_flight(sums, form);
      if (in_flight == 0) break;
      PhazeCandidate candidate;
      candidate.inner = static_cast<std::uint32_t>(left);
      candidate.outer = static_cast<std::uint32_t>(right);
      candidate.most_from_end = static_cast<std::int32_t>(in_flight);
      candidate.devices = configuration.tp;
      candidate.backward_s = candidate.last_backward_s = transfer_s[right] + sums.backward_s;
      candidate.load_s = candidate.last_load_s =
          transfer_s[left] + sums.forward_s + candidate.backward_s;
      // Phaze charges 4·(dp - 1)/dp times the bytes; a ring moves half of that.
      candidate.gradients_s =
          (sums.dense_parameters + sums.expert_parameters) * gradient_bytes / 2 / bytes_per_s;
      candidates.all.push_back(candidate);
    }
  }
  candidates.offset.push_back(candidates.all.size());
  candidates.offset.push_back(candidates.all.size());
  return candidates;
}

std::vector<std::unique_ptr<Group>> groups_of(AmpJob& job, const Job& given, const System& system,
                                              const SpaceOptions& space) {
  // Replicas share the optimizer's state, so that memory depends on their number.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, Recompute>;
  std::map<Key, std::unique_ptr<Group>> groups;
  for (Configuration configuration : job.configurations()) {
    if (configuration.order != AxisOrder::pipeline_outermost) continue;
    for (const Recompute recompute : {configuration.recompute, Recompute::full}) {
      if (space.recompute.has_value() && recompute != *space.recompute) continue;
      configuration.recompute = recompute;
      auto& group =
          groups[{configuration.tp, configuration.dp, configuration.micro_batch, recompute}];
      if (!group) {
        group = std::make_unique<Group>();
        group->costs = configuration;
      }
      group->by_dp_pp[{configuration.dp, configuration.pp}] = configuration;
    }
  }
  const double bytes_per_s =
      system.device_count > 1 ? link_bytes_per_s(system, 0, system.device_count - 1) : 1;
  std::vector<std::unique_ptr<Group>> made;
  const auto layers = given.graph->layers.size();
  for (auto& [key, group] : groups) {
    group->problem.devices = system.device_count;
    group->problem.micro_batches = given.global_batch / group->costs.micro_batch;
    group->candidates =
        candidates_of(job, group->costs, bytes_per_s, bytes_per_element(given.precision.gradient));
    std::int64_t most_stages = 1;
    for (const auto& [dp_pp, configuration] : group->by_dp_pp) {
      most_stages = std::max<std::int64_t>(most_stages, configuration.pp);
    }
    group->table = std::make_unique<PhazeTable>(group->candidates, layers + 1, most_stages,
                                                system.device_count);
    group->sums = phaze_sums(group->candidates, layers + 1);
    group->space = {&group->problem, &group->candidates, group->table.get(), &group->sums,
                    layers + 1};
    made.push_back(std::move(group));
  }
  return made;
}

/// A search over all groups' combinations by one objective, least bound first.
class PhazeSearch {
 public:
  PhazeSearch(const std::vector<std::unique_ptr<Group>>& groups, const SpaceOptions& space)
      : objective_(space.phaze_objective), top_(static_cast<std::size_t>(std::max(1, space.top))) {
    for (const auto& group : groups) {
      for (const PhazeCombination& combination : phaze_combinations(group->space, objective_)) {
        if (group->by_dp_pp.count({combination.dp, combination.stages}) == 0) continue;
        open_.emplace_back(combination, group.get());
      }
    }
    std::stable_sort(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
      return a.first.bound_s < b.first.bound_s;
    });
  }

  /// Stops, with a bound, after `most` combinations; 0: none.
  void run(std::int64_t most, const Progress& progress) {
    for (const auto& [combination, group] : open_) {
      if (!(combination.bound_s < limit_s_)) break;
      if (progress) progress(best_s_, std::min(combination.bound_s, best_s_), work_);
      if (most > 0 && work_ >= most) {
        complete_ = false;
        bound_s_ = std::min(bound_s_, combination.bound_s);
        break;
      }
      ++work_;
      auto plan = best_of(group->space, combination);
      if (plan.has_value()) keep(*group, combination, *plan);
    }
  }

  std::vector<AmpFound> take_found() { return std::move(found_); }
  std::int64_t work() const { return work_; }
  bool complete() const { return complete_; }
  /// What no plan's objective is below, as far as the search has come.
  double bound_s() const { return std::min(bound_s_, best_s_); }
  /// Of the best plan, by every objective.
  const std::vector<std::pair<std::string, double>>& times_s() const { return times_s_; }

 private:
  std::optional<PhazeFound> best_of(const PhazeSpace& space, const PhazeCombination& combination) {
    if (objective_ == PhazeObjective::program) return best_by_program(space, combination, limit_s_);
    if (objective_ == PhazeObjective::flush) return best_by_flush(space, combination, limit_s_);
    PhazeSimulated simulated = best_by_simulation(space, combination, limit_s_, plans_left_);
    plans_left_ -= simulated.plans;
    bound_s_ = std::min(bound_s_, simulated.bound_s);
    return std::move(simulated.best);
  }

  void keep(const Group& group, const PhazeCombination& combination, const PhazeFound& plan) {
    AmpFound choice;
    choice.configuration = group.by_dp_pp.at({combination.dp, combination.stages});
    choice.cost_s = plan.objective_s;
    Ends ends;
    for (const PhazeCandidate& stage : plan.stages) {
      ends.push_back(static_cast<std::int32_t>(stage.outer));
    }
    choice.stages = stages_of(ends);
    found_.push_back(std::move(choice));
    // Only what is better than the worst that would be shown is still of use.
    shown_s_.push(plan.objective_s);
    if (shown_s_.size() > top_) shown_s_.pop();
    if (shown_s_.size() == top_) limit_s_ = shown_s_.top();
    if (!(plan.objective_s < best_s_)) return;
    best_s_ = plan.objective_s;
    const PhazeFormulas formulas = phaze_formulas(group.problem, plan.dp, plan.stages);
    times_s_ = {{"flush_s", formulas.flush_s},
                {"simulated_s", phaze_simulated_s(group.problem, plan.dp, plan.stages, workspace_)},
                {"program_s", formulas.program_s}};
  }

  PhazeObjective objective_;
  std::size_t top_;
  std::vector<std::pair<PhazeCombination, const Group*>> open_;
  std::vector<AmpFound> found_;
  std::priority_queue<double> shown_s_;
  double limit_s_ = std::numeric_limits<double>::infinity();
  double best_s_ = std::numeric_limits<double>::infinity();
  double bound_s_ = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string, double>> times_s_;
  PipelineWorkspace workspace_;
  std::int64_t plans_left_ = PhazeOptions{}.most_plans;
  std::int64_t work_ = 0;
  bool complete_ = true;
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

Outcome plan_phaze(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress) {
  AmpJob amp(job, system, space, "phaze");
  if (job.graph->layers.size() > kMostLayers) {
    throw Error(fmt::format("the phaze planner takes at most {} layers, not {}", kMostLayers,
                            job.graph->layers.size()),
                "use --planner braid");
  }
  const auto groups = groups_of(amp, job, system, space);
  PhazeSearch search(groups, space);
  search.run(budget.work, progress);
  Outcome outcome = amp.outcome(search.take_found(), search.work(), search.complete());
  outcome.objective_name = title_of(space.phaze_objective);
  if (amp.is_graph()) {
    outcome.assumptions = {
        "the model's branches are cut in the order of their layers: planner phaze cuts chains"};
  }
  outcome.other_times_s = search.times_s();
  if (outcome.candidates.empty()) return outcome;
  outcome.search_bound_s = search.bound_s();
  const bool proven = outcome.search_bound_s >= outcome.objective * (1 - 1e-9);
  outcome.status = proven ? Status::optimal : Status::feasible;
  return outcome;
}

}  // namespace braid
