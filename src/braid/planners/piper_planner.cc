#include "braid/planners/piper_planner.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/graph/downsets.h"
#include "braid/planners/assess.h"
#include "braid/planners/piper_variants.h"
#include "braid/planners/space.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr const char* kObjective = "time per sample";
/// More downsets of a model's layers than this, and they are cut as a chain.
constexpr std::size_t kMostDownsets = 2'000;

/// What a variant leaves out of the space.
struct Restriction {
  bool dp = true, tp = true, recompute = true, one_stage = false;
  PiperSolution (*solve)(const PiperProblem&, const PiperSearchLimits&) = solve_piper;
};

Restriction restriction_of(std::string_view variant) {
  Restriction restriction;
  restriction.dp = variant != "no-dp" && variant != "tp-only";
  restriction.tp = variant != "no-tp" && variant != "dp-only" && variant != "equi-no-tp" &&
                   variant != "pipedream";
  restriction.recompute = variant != "no-ar" && variant != "pipedream";
  restriction.one_stage = variant == "dp-only" || variant == "tp-only";
  if (variant.starts_with("equi")) restriction.solve = solve_equi;
  if (variant == "pipedream") restriction.solve = solve_pipedream;
  return restriction;
}

/// The option that asks for what is outside of the space; empty when none does.
std::string_view option_outside(const SpaceOptions& space) {
  if (space.pp) return "--pp";
  if (space.cp.value_or(1) != 1) return "--cp";
  if (space.ep.value_or(1) != 1) return "--ep";
  if (space.vp.value_or(1) != 1) return "--vp";
  if (space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b) {
    return "--schedule";
  }
  return "";
}

/// A configuration whose number of stages is open, and the least time per sample that it allows.
struct Form {
  Configuration configuration;
  double bound_s = 0;
};

class Family {
 public:
  Family(std::string_view variant, const Job& job, const System& system, const SpaceOptions& space,
         const Budget& budget)
      : variant_(variant),
        restriction_(restriction_of(variant)),
        job_(job),
        system_(system),
        space_(space),
        budget_(budget),
        chain_(chain_job(job, system)),
        tables_(*job.graph, job.precision, system),
        split_(split_limits(*job.graph)) {
    const DeviceGroup& group = system.groups.front();
    bandwidth_ = system.levels.empty() || system.device_count <= group.devices_per_node
                     ? group.intra_node.bytes_per_s
                     : system.levels.back().bytes_per_s;
    add_edges();
  }

  Outcome run() {
    Outcome outcome;
    outcome.physical_bound = lower_bound(*job_.graph, job_.precision, job_.global_batch, system_);
    outcome.objective_name = kObjective;
    outcome.assumptions = {
        "stages share their degrees and recomputation",
        fmt::format("Piper's objective takes the network as flat, at {} a device",
                    format_bytes_per_s(bandwidth_))};
    std::vector<Form> forms = all_forms();
    std::stable_sort(forms.begin(), forms.end(),
                     [](const Form& a, const Form& b) { return a.bound_s < b.bound_s; });
    double best_s = std::numeric_limits<double>::infinity();
    bool proven = true;
    for (const Form& form : forms) {
      if (form.bound_s >= best_s) break;
      if (budget_.work > 0 && outcome.work >= budget_.work) {
        proven = false;
        break;
      }
      const PiperProblem problem = problem_of(form.configuration);
      const PiperSearchLimits limits{.work = budget_.work > 0 ? budget_.work - outcome.work : 0};
      const PiperSolution solution = restriction_.solve(problem, limits);
      outcome.work += std::max<std::int64_t>(1, solution.work);
      if (solution.status == Status::budget_exhausted) proven = false;
      if (solution.stages.empty()) continue;
      if (solution.status != Status::optimal) proven = false;
      const double time_s = solution.time / form.configuration.micro_batch;
      if (time_s >= best_s) continue;
      Candidate candidate;
      candidate.plan = plan_of(form.configuration, solution);
      candidate.metrics = measure(candidate.plan);
      ++outcome.evaluated;
      if (candidate.metrics.peak_memory_bytes > usable_bytes(system_.groups.front().chip)) continue;
      best_s = time_s;
      outcome.candidates = {std::move(candidate)};
    }
    if (!outcome.candidates.empty()) {
      outcome.objective = best_s;
      outcome.status =
          proven && restriction_.solve == solve_piper ? Status::optimal : Status::feasible;
      return outcome;
    }
    outcome.status = proven || budget_.work == 0 ? Status::infeasible : Status::budget_exhausted;
    explain(outcome, forms);
    return outcome;
  }

 private:
  void add_edges() {
    for (const ProfileEdge& edge : chain_.edges) {
      edges_.push_back({edge.source, edge.target, edge.bytes});
    }
    const std::size_t layers = job_.graph->layers.size();
    if (downsets(layer_dag(*job_.graph), kMostDownsets)) return;
    // Edges that carry nothing leave only the order of a chain.
    for (std::size_t l = 0; l + 1 < layers; ++l) {
      const auto from = static_cast<std::int32_t>(l);
      const bool there = std::any_of(edges_.begin(), edges_.end(), [&](const PiperEdge& edge) {
        return edge.source == from && edge.target == from + 1;
      });
      if (!there) edges_.push_back({from, from + 1, 0});
    }
    std::sort(edges_.begin(), edges_.end(), [](const PiperEdge& a, const PiperEdge& b) {
      return std::pair(a.source, a.target) < std::pair(b.source, b.target);
    });
  }

  std::vector<Form> all_forms() {
    std::vector<Form> forms;
    const std::int64_t per_node = system_.groups.front().devices_per_node;
    const std::int64_t most_tp = restriction_.tp ? std::min(per_node, system_.device_count) : 1;
    for (int tp = 1; tp <= most_tp; ++tp) {
      if (space_.tp && *space_.tp != tp) continue;
      for (std::int64_t micro_batch = 1; micro_batch <= job_.global_batch; micro_batch *= 2) {
        const std::int64_t samples = space_.micro_batch.value_or(
            static_cast<int>(std::min<std::int64_t>(micro_batch, std::numeric_limits<int>::max())));
        if (job_.global_batch % samples == 0) add_forms(tp, samples, forms);
        if (space_.micro_batch || micro_batch >= kMostMicroBatch) break;
      }
    }
    return forms;
  }

  void add_forms(int tp, std::int64_t micro_batch, std::vector<Form>& forms) {
    const std::int64_t batches = job_.global_batch / micro_batch;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      if (space_.recompute && *space_.recompute != recompute) continue;
      if (!restriction_.recompute && recompute != Recompute::none) continue;
      Configuration form;
      form.tp = tp;
      form.micro_batch = static_cast<std::int32_t>(micro_batch);
      form.recompute = recompute;
      form.zero = space_.zero.value_or(Zero::none);
      form.sequence_parallel = tp > 1 && space_.sequence_parallel.value_or(true);
      if (!refusal(split_, to_execution(form)).empty()) {
        if (space_.sequence_parallel.value_or(false)) continue;
        form.sequence_parallel = false;
        if (!refusal(split_, to_execution(form)).empty()) continue;
      }
      const double work_s = tables_.at(form).time_s() / static_cast<double>(micro_batch);
      const std::int64_t most_dp = restriction_.dp ? system_.device_count / tp : 1;
      for (std::int64_t dp = 1; dp <= std::min(most_dp, batches); ++dp) {
        if (batches % dp != 0 || (space_.dp && *space_.dp != dp)) continue;
        const std::int64_t stages = std::min<std::int64_t>(
            system_.device_count / (tp * dp), static_cast<std::int64_t>(job_.graph->layers.size()));
        if (stages < 1) continue;
        form.dp = static_cast<std::int32_t>(dp);
        form.num_micro_batches = batches / dp;
        forms.push_back(
            {form, work_s / static_cast<double>(dp * (restriction_.one_stage ? 1 : stages))});
      }
    }
  }

  PiperProblem problem_of(const Configuration& form) {
    const LayerTable& table = tables_.at(form);
    const auto context = data_parallel_context(to_parallelism(form), job_.precision, system_);
    PiperProblem problem;
    problem.edges = edges_;
    for (PiperEdge& edge : problem.edges) {
      edge.bytes = boundary_bytes({0, 0, edge.bytes}, to_parallelism(form));
    }
    double working_bytes = 0;
    for (const Layer& layer : job_.graph->layers) {
      const LayerCost& cost = table.kinds[static_cast<std::size_t>(layer.kind)];
      ChunkTotals totals;
      totals.add(cost, 1);
      const MemoryBreakdown idle = memory_of(std::span(&totals, 1), 0, context);
      const MemoryBreakdown busy = memory_of(std::span(&totals, 1), 1, context);
      working_bytes = std::max(working_bytes, busy.working);
      PiperOption option;
      option.name = "this form";
      option.time = cost.forward.total_s() + cost.backward_s();
      option.parameter_bytes = (cost.dense_parameters + cost.expert_parameters) *
                               bytes_per_element(job_.precision.gradient);
      option.in_flight_bytes = busy.activations - idle.activations;
      option.fixed_bytes = idle.weights + idle.gradients + idle.optimizer;
      problem.nodes.push_back({layer.name, {{form.tp, {option}}}});
    }
    problem.devices = std::min(system_.device_count, kMostPiperDevices);
    problem.micro_batches =
        std::min(form.num_micro_batches * form.dp, kMostPiperDevices / form.dp * form.dp);
    problem.memory_bytes = std::max(1.0, usable_bytes(system_.groups.front().chip) - working_bytes);
    problem.bandwidth_bytes = bandwidth_;
    problem.least_dp = problem.most_dp = form.dp;
    problem.one_stage = restriction_.one_stage;
    return problem;
  }

  Plan plan_of(Configuration form, const PiperSolution& solution) {
    form.pp = static_cast<std::int32_t>(solution.stages.size());
    Ends even;
    for (std::int32_t s = 1; s <= form.pp; ++s) even.push_back(s);
    even.back() = static_cast<std::int32_t>(job_.graph->layers.size());
    Plan plan = build_plan(chain_, tables_, form, even, std::string(variant_));
    for (std::size_t s = 0; s < solution.stages.size(); ++s) {
      Chunk& chunk = plan.stages[s].chunks.front();
      chunk.layers = solution.stages[s].nodes;
      chunk.options.assign(chunk.layers.size(), 0);
    }
    return plan;
  }

  /// What the form that needs least memory, most likely, is short of.
  void explain(Outcome& outcome, const std::vector<Form>& forms) {
    if (forms.empty()) {
      outcome.infeasibility = Infeasibility{
          "no degrees divide the devices, heads and batch as the planner asks", -1, 0, 0, {}};
      return;
    }
    const auto smallest =
        std::max_element(forms.begin(), forms.end(), [](const Form& a, const Form& b) {
          const auto rank = [](const Configuration& c) {
            return std::tuple(c.recompute, c.tp, -c.micro_batch, -c.dp);
          };
          return rank(a.configuration) < rank(b.configuration);
        });
    PiperSolution solution;
    explain_infeasible(problem_of(smallest->configuration), {}, solution);
    const double available = usable_bytes(system_.groups.front().chip);
    outcome.infeasibility = Infeasibility{solution.reason, -1, solution.needed_bytes, available,
                                          to_parallelism(smallest->configuration)};
  }

  static constexpr std::int64_t kMostMicroBatch = 16;

  std::string_view variant_;
  Restriction restriction_;
  const Job& job_;
  const System& system_;
  const SpaceOptions& space_;
  const Budget& budget_;
  ChainJob chain_;
  LayerTables tables_;
  SplitLimits split_;
  double bandwidth_ = 0;
  std::vector<PiperEdge> edges_;
};

}  // namespace

Outcome plan_piper(std::string_view variant, const Job& job, const System& system,
                   const SpaceOptions& space, const Budget& budget, const Progress&) {
  find_piper_variant(variant);
  if (!is_homogeneous(system)) {
    throw Error("the " + std::string(variant) +
                    " planner needs one kind of device on a hierarchical network",
                "plan on one group of " + system.name);
  }
  if (const std::string_view option = option_outside(space); !option.empty()) {
    Outcome outcome;
    outcome.physical_bound = lower_bound(*job.graph, job.precision, job.global_batch, system);
    outcome.objective_name = kObjective;
    outcome.infeasibility = Infeasibility{
        fmt::format("the planner {} cannot do as {} says", variant, option), -1, 0, 0, {}};
    return outcome;
  }
  return Family(variant, job, system, space, budget).run();
}

}  // namespace braid
