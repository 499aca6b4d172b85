#include "braid/planners/piper/piper_planner.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/planners/piper/job.h"
#include "braid/planners/piper/less_memory.h"
#include "braid/planners/piper/variants.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::int64_t kMostExamined = 1'000'000'000;  ///< Stages, unless a budget is given.

constexpr const char* kObjective = "time per sample (s)";

/// Whether stages may split experts over their replicas: Piper's levels say nothing of replicas
/// that hold different weights.
bool splits_experts(const PiperVariant& variant, const PiperSpace& space) {
  return variant.dp && space.network == PiperNetwork::flat;
}

/// The option that asks for what is outside of the space; empty when none does.
std::string_view option_outside(const PiperVariant& variant, const PiperSpace& space) {
  if (!space.pp.is_any()) return "--pp";
  if (!variant.tp && !space.tp.allows(1)) return "--tp";
  if (!variant.dp && !space.dp.allows(1)) return "--dp";
  if (!variant.recompute && space.recompute.value_or(Recompute::none) != Recompute::none) {
    return "--recompute";
  }
  if (!space.cp.allows(1)) return "--cp";
  if (!space.ep.allows(1) && !splits_experts(variant, space)) return "--ep";
  if (space.whole_experts.value_or(false)) return "--whole-experts";
  if (!space.vp.allows(1)) return "--vp";
  if (space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b) {
    return "--schedule";
  }
  return "";
}

/// Forms that stages may choose among, and the data-parallel degrees that they may have.
struct PiperFamily {
  std::vector<PiperConfig> forms;
  double working_bytes = 0;  ///< The largest of any form.
  std::int64_t least_dp = 1, most_dp = 1;
  double bound_s = 0;  ///< No solution takes less time per sample.
};

class PiperSearch {
 public:
  PiperSearch(const PiperVariant& variant, const Job& job, const System& system,
              const PiperSpace& space, const Budget& budget, const Progress& progress)
      : variant_(variant),
        job_(job),
        system_(system),
        space_(space),
        budget_(budget.or_by_default(kMostExamined)),
        progress_(progress),
        tables_(job, system, LayerTables::Stages::unknown),
        piper_(piper_job(job, system, tables_, space.network)) {}

  Outcome run() {
    Outcome outcome = begin_outcome(job_, system_);
    outcome.objective_name = kObjective;
    outcome.assumptions.push_back(network_text());
    std::vector<PiperFamily> families = all_families();
    std::stable_sort(
        families.begin(), families.end(),
        [](const PiperFamily& a, const PiperFamily& b) { return a.bound_s < b.bound_s; });
    bool proven = true;
    for (std::size_t f = 0; f < families.size(); ++f) {
      const PiperFamily& family = families[f];
      if (family.bound_s >= best_s_) break;
      rest_bound_s_ = f + 1 < families.size() ? families[f + 1].bound_s : kNever_s;
      if (outcome.work >= budget_.work) {
        proven = false;
        break;
      }
      proven = solve(family, outcome) && proven;
    }
    if (!outcome.candidates.empty()) {
      outcome.objective = best_s_;
      outcome.status = proven ? Status::optimal : Status::feasible;
      if (proven) outcome.search_bound_s = best_s_;
      return outcome;
    }
    outcome.status = proven ? Status::infeasible : Status::budget_exhausted;
    explain(outcome, families);
    return outcome;
  }

 private:
  std::string network_text() const {
    if (piper_.levels.empty()) {
      return fmt::format("Piper's objective takes the network as flat, at {} a device",
                         format_bytes_per_s(piper_.bandwidth));
    }
    std::string text = fmt::format("Piper's objective takes the network for {} at {}",
                                   counted(piper_.levels.front().devices, "device"),
                                   format_bytes_per_s(piper_.bandwidth));
    for (std::size_t l = 1; l < piper_.levels.size(); ++l) {
      text += fmt::format(", {} of these at {}", piper_.levels[l].devices,
                          format_bytes_per_s(piper_.levels[l].bandwidth_bytes));
    }
    if (const std::int64_t left = system_.device_count - piper_.devices; left > 0) {
      text += fmt::format("; {} of a node that is not full left out", counted(left, "device"));
    }
    return text;
  }

  /// Keeps the family's best plan if it is the best so far. False when there may be a better one.
  bool solve(const PiperFamily& family, Outcome& outcome) {
    const PiperProblem problem = problem_of(family);
    bool sure = true;
    const auto attempt = [&](const PiperProblem& within) {
      const Attempt done = solve_once(family, within, outcome);
      sure = sure && done.sure;
      if (done.excess_bytes <= 0) return done.excess_bytes;
      sure = false;
      if (!std::exchange(overfull_, true)) {
        outcome.assumptions.push_back(overfull_text(done.excess_bytes));
      }
      return done.excess_bytes;
    };
    if (within_less_memory(problem, attempt)) return sure;
    with_equal_degrees(problem,
                       [&](const PiperProblem& equal) { solve_once(family, equal, outcome); });
    return false;
  }

  /// What came of a problem: its plan is kept if it fits and is the best so far.
  struct Attempt {
    double excess_bytes = 0;  ///< Above the memory of a device.
    bool sure = false;        ///< There is no better plan.
  };
  Attempt solve_once(const PiperFamily& family, const PiperProblem& problem, Outcome& outcome) {
    PiperSearchLimits limits;
    limits.work = std::max<std::int64_t>(1, budget_.work - outcome.work);
    if (progress_) {
      limits.progress = [&](double best, double bound, std::int64_t work) {
        const double samples = family.forms.front().form.micro_batch;
        const double best_s = std::min(best_s_, best / samples);
        progress_(best_s,
                  std::min({best_s, rest_bound_s_, std::max(family.bound_s, bound / samples)}),
                  outcome.work + work);
      };
    }
    const PiperSolution solution = variant_.search(problem, limits);
    outcome.work += std::max<std::int64_t>(1, solution.work);
    const bool sure = solution.status != Status::budget_exhausted &&
                      (solution.stages.empty() || solution.status == Status::optimal);
    if (solution.stages.empty()) return {0, sure};
    const double time_s = solution.time / family.forms.front().form.micro_batch;
    if (time_s >= best_s_) return {0, sure};
    Candidate candidate;
    candidate.plan = plan_of_piper(piper_, family.forms, solution, std::string(variant_.name));
    candidate.metrics = measure(candidate.plan);
    ++outcome.evaluated;
    const double excess =
        candidate.metrics.peak_memory_bytes - usable_bytes(system_.groups.front().chip);
    if (excess > 0) return {excess, sure};
    best_s_ = time_s;
    outcome.candidates = {std::move(candidate)};
    return {0, sure};
  }

  static std::string overfull_text(double excess_bytes) {
    return fmt::format(
        "a faster plan by Piper's objective takes {} more than a device has, as its stages' rounds "
        "do not nest and hold more micro-batches than Piper counts",
        format_bytes(excess_bytes));
  }

  /// Those of the list that is given, else powers of two.
  std::vector<int> micro_batches() const {
    std::vector<int> sizes = space_.micro_batch.list();
    for (std::int64_t size = 1; space_.micro_batch.list().empty() && size <= job_.global_batch;
         size *= 2) {
      sizes.push_back(static_cast<int>(size));
      if (size >= kMostMicroBatch) break;
    }
    return space_.micro_batch.among(std::move(sizes));
  }

  std::vector<PiperFamily> all_families() {
    std::vector<PiperFamily> families;
    const std::int64_t per_node = system_.groups.front().devices_per_node;
    const std::int64_t most_tp = variant_.tp ? std::min(per_node, piper_.devices) : 1;
    for (const int samples : micro_batches()) {
      if (job_.global_batch % samples != 0) continue;
      for (const ShardingSource sharding : {ShardingSource::manual, ShardingSource::automatic}) {
        if (sharding == ShardingSource::automatic && job_.sharding != sharding) continue;
        for (const int ep : expert_splits(job_.global_batch / samples)) {
          Configuration shared;
          shared.micro_batch = samples;
          shared.ep = ep;
          add_families(piper_configs(piper_, space_, shared, most_tp, variant_.recompute, sharding),
                       job_.global_batch / samples, families);
        }
      }
    }
    return families;
  }

  /// Over how many replicas stages with so many micro-batches may spread experts.
  std::vector<int> expert_splits(std::int64_t batches) const {
    const std::int64_t experts = piper_.layers->limits(1).experts;
    const std::int64_t most =
        splits_experts(variant_, space_) && experts > 0 ? std::min(piper_.devices, batches) : 1;
    return space_.ep.among(divisors(std::max<std::int64_t>(1, experts), most));
  }

  /// Piper chooses among all forms whose transients keep below a level, for every level that
  /// some form sets; the others have one form for all stages.
  void add_families(std::vector<PiperConfig> forms, std::int64_t batches,
                    std::vector<PiperFamily>& families) {
    std::stable_sort(forms.begin(), forms.end(), [](const PiperConfig& a, const PiperConfig& b) {
      return a.working_bytes < b.working_bytes;
    });
    for (std::size_t f = 0; f < forms.size(); ++f) {
      PiperFamily family;
      family.working_bytes = forms[f].working_bytes;
      if (variant_.is_piper) {
        if (f + 1 < forms.size() && forms[f + 1].working_bytes == family.working_bytes) continue;
        family.forms.assign(forms.begin(), forms.begin() + static_cast<std::ptrdiff_t>(f) + 1);
      } else {
        family.forms = {forms[f]};
      }
      std::stable_sort(
          family.forms.begin(), family.forms.end(), [](const PiperConfig& a, const PiperConfig& b) {
            return std::tie(a.form.tp, a.form.recompute) < std::tie(b.form.tp, b.form.recompute);
          });
      add_degrees(family, batches, families);
    }
  }

  /// Any data-parallel degrees; with sharded state, which they shard, one for all stages at a time.
  void add_degrees(PiperFamily family, std::int64_t batches, std::vector<PiperFamily>& families) {
    const std::int64_t devices = piper_.devices;
    const std::int64_t most = variant_.dp ? std::min(devices, batches) : 1;
    const std::int64_t ep = family.forms.front().form.ep;
    const auto layers = static_cast<std::int64_t>(piper_.layers->layers().layers.size());
    const auto add = [&](std::int64_t least_dp, std::int64_t most_dp) {
      family.least_dp = least_dp;
      family.most_dp = most_dp;
      // All devices at the least device time; but a stage has no more than most_dp replicas.
      double work_s = kInfinity;
      double alone_s = work_s;
      for (const PiperConfig& form : family.forms) {
        work_s = std::min(work_s, form.time_s * form.form.tp);
        alone_s = std::min(alone_s, form.time_s);
      }
      const std::int64_t stages = !variant_.cuts ? 1 : std::min(layers, devices);
      family.bound_s =
          std::max(work_s / static_cast<double>(devices),
                   alone_s / static_cast<double>(most_dp) / static_cast<double>(stages));
      families.push_back(family);
    };
    const bool one_each = space_.dp.single() || family.forms.front().form.zero != Zero::none;
    if (!one_each && !space_.dp.list().empty()) {
      throw Error(Where{"", 0, "--dp"}, "the piper planner gives each stage a degree of its own",
                  "give one degree for all, or a limit with --max-dp");
    }
    if (!one_each) return add(ep, space_.dp.at_most(most));
    for (std::int64_t dp = ep; dp <= most; dp += ep) {
      if (batches % dp == 0 && space_.dp.allows(dp)) add(dp, dp);
    }
  }

  PiperProblem problem_of(const PiperFamily& family) {
    PiperProblem problem =
        piper_problem_of(piper_, family.forms, family.least_dp, family.working_bytes);
    problem.least_dp = family.least_dp;
    problem.most_dp = family.most_dp;
    problem.one_stage = !variant_.cuts;
    return problem;
  }

  /// What the family that needs least memory, most likely, is short of.
  void explain(Outcome& outcome, const std::vector<PiperFamily>& families) {
    if (families.empty()) {
      outcome.infeasibility = Infeasibility{
          "no degrees divide the devices, heads and batch as the planner asks", -1, 0, 0, {}};
      return;
    }
    const auto smallest = std::max_element(
        families.begin(), families.end(), [](const PiperFamily& a, const PiperFamily& b) {
          const auto rank = [](const PiperFamily& family) {
            const Configuration& last = family.forms.back().form;
            return std::tuple(-last.micro_batch, last.recompute, last.ep, last.tp,
                              -family.working_bytes);
          };
          return rank(a) < rank(b);
        });
    const PiperProblem problem = problem_of(*smallest);
    const double available = usable_bytes(system_.groups.front().chip);
    PiperSolution solution = variant_.search(problem, {});
    if (solution.reason.empty()) {
      const double beside_bytes = std::max(0.0, available - problem.memory_bytes);
      explain_infeasible(problem, variant_.search, {}, solution, beside_bytes);
    }
    outcome.infeasibility = Infeasibility{solution.reason, -1, solution.needed_bytes, available,
                                          to_parallelism(smallest->forms.back().form)};
  }

  static constexpr std::int64_t kMostMicroBatch = 16;

  const PiperVariant& variant_;
  const Job& job_;
  const System& system_;
  const PiperSpace& space_;
  const Budget budget_;
  const Progress& progress_;
  LayerTables tables_;
  PiperJob piper_;
  static constexpr double kNever_s = kInfinity;
  double best_s_ = kNever_s;
  double rest_bound_s_ = kNever_s;  ///< Of the families that are still to come.
  bool overfull_ = false;           ///< A plan fitted by Piper's count alone.
};

}  // namespace

PiperSpace piper_space(const SpaceOptions& space, const FamilyWords& words) {
  const bool levels = word_of(words, "network") == "levels";
  return {space, levels ? PiperNetwork::levels : PiperNetwork::flat};
}

Outcome plan_piper(std::string_view name, const Job& job, const System& system,
                   const PiperSpace& space, const Budget& budget, const Progress& progress) {
  const PiperVariant& variant = find_piper_variant(name);
  if (!is_homogeneous(system)) {
    throw Error(
        "the " + std::string(name) + " planner needs one kind of device on a hierarchical network",
        "plan on one group of " + system.name);
  }
  if (space.all_devices) {
    throw Error(Where{"", 0, "--all-devices"},
                fmt::format("the planner {} gives each stage as many devices as are fastest", name),
                "leave it out or use --planner braid");
  }
  if (!variant.is_piper && space.network != PiperNetwork::flat) {
    throw Error(std::string(name) + " takes the network as flat", "leave out --network levels");
  }
  if (const std::string_view option = option_outside(variant, space); !option.empty()) {
    Outcome outcome = begin_outcome(job, system);
    outcome.objective_name = kObjective;
    outcome.infeasibility = Infeasibility{
        fmt::format("the planner {} cannot do as {} says", name, option), -1, 0, 0, {}};
    return outcome;
  }
  return PiperSearch(variant, job, system, space, budget, progress).run();
}

}  // namespace braid
