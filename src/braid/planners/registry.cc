#include "braid/planners/registry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/error.h"
#include "braid/base/rounding.h"
#include "braid/base/text.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/amp/amp_planner.h"
#include "braid/planners/amp/mixed_planner.h"
#include "braid/planners/graphpipe/graphpipe_planner.h"
#include "braid/planners/job/by_kind.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/mixed/mixed_planner.h"
#include "braid/planners/phaze/phaze_planner.h"
#include "braid/planners/piper/piper_planner.h"
#include "braid/planners/piper/variants.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/planners/within_options.h"

namespace braid {
namespace {

/// The planner of kPiperVariants[number].
template <std::size_t number>
Outcome piper(const Job& job, const System& system, const PlannerOptions& options,
              const Budget& budget, const Progress& progress) {
  return plan_piper(kPiperVariants[number].name, job, system, piper_space(options, options.own),
                    budget, progress);
}

Outcome braid_on_any(const Job& job, const System& system, const PlannerOptions& options,
                     const Budget& budget, const Progress& progress) {
  return plan_braid(job, system, BraidSpace(options, options.preference), budget, progress);
}

/// A planner with options of its own: `space_of` has the space with what they say.
template <auto plan, auto space_of>
Outcome with_family_options(const Job& job, const System& system, const PlannerOptions& options,
                            const Budget& budget, const Progress& progress) {
  return plan(job, system, space_of(options, options.own), budget, progress);
}

/// A planner with nothing of its own to be told.
using SpacePlan = Outcome (*)(const Job&, const System&, const SpaceOptions&, const Budget&,
                              const Progress&);

template <SpacePlan plan>
Outcome plain(const Job& job, const System& system, const PlannerOptions& options,
              const Budget& budget, const Progress& progress) {
  return plan(job, system, options, budget, progress);
}

template <SpacePlan homogeneous, SpacePlan mixed>
Outcome by_kind(const Job& job, const System& system, const PlannerOptions& options,
                const Budget& budget, const Progress& progress) {
  return plan_by_kind({homogeneous, mixed}, job, system, options, budget, progress);
}

/// What a planner is called with.
enum class Systems : std::uint8_t {
  homogeneous,  ///< In place of others, slowest_of() them (job/by_kind.h).
  any,
};

/// An entry, whose `plan` on_layers() wraps, and what that does around it.
struct Planner {
  PlannerEntry entry;
  Systems systems = Systems::homogeneous;
  Recompute start = Recompute::none;  ///< Of the layers' options that its search begins with.
};

consteval std::size_t number_of(std::string_view variant) {
  std::size_t number = 0;
  while (kPiperVariants.at(number).name != variant) ++number;
  return number;
}

template <std::size_t number>
constexpr Planner of_piper() {
  constexpr const PiperVariant& variant = kPiperVariants[number];
  return {{.name = variant.name,
           .description = variant.description,
           .plan = piper<number>,
           .heterogeneous_stages = variant.cuts,
           .family_options = variant.is_piper ? &kPiperOptions : nullptr}};
}

constexpr std::array kPlanners = {
    Planner{{.name = kDefaultPlanner,
             .description = "best-first search over all splits, uneven stages, memory options",
             .plan = braid_on_any,
             .recommends = true,
             .bounds_systems = true},
            Systems::any},
    // Not compared: it checks another.
    Planner{
        {.name = "exhaustive",
         .description = "every configuration of braid's space evaluated, as a check of its search",
         .plan = plain<plan_exhaustively>,
         .compared = false},
        Systems::any},
    Planner{{.name = "megatron",
             .description =
                 "published rule of thumb: tensor within the node, then pipeline, then data; best "
                 "micro-batch, recomputation, split of experts and ZeRO-1 or none",
             .plan = plain<plan_megatron>},
            Systems::homogeneous,
            Recompute::full},
    // Not compared: it is a part of another.
    Planner{
        {.name = "megatron-rule",
         .description =
             "the same rule with micro-batches of one sample, full recomputation, experts whole",
         .plan = plain<plan_megatron_rule>,
         .compared = false},
        Systems::homogeneous,
        Recompute::full},
    Planner{{.name = "amp",
             .description =
                 "AMP's cost model over pp, dp, tp and micro-batch size, layers assigned exactly",
             .plan = by_kind<plan_amp, plan_amp_mixed>},
            Systems::any},
    Planner{{.name = "amp-sa",
             .description = "AMP's simulated annealing, 100 steps",
             .plan = by_kind<plan_amp_sa, plan_amp_sa_mixed>},
            Systems::any},
    Planner{{.name = "phaze",
             .description = "Phaze's placement: flushed 1F1B on a flat network, stages exact",
             .plan = with_family_options<plan_phaze, phaze_space>,
             .family_options = &kPhazeOptions,
             .bounds_systems = true,
             .recomputes_all = true,
             .own_time = "Phaze's time of a batch"}},
    Planner{{.name = "random",
             .description = "the best by AMP's cost of 100 strategies drawn at random",
             .plan = by_kind<plan_random, plan_random_mixed>},
            Systems::any},
    of_piper<number_of("piper")>(),
    of_piper<number_of("no-dp")>(),
    of_piper<number_of("no-tp")>(),
    of_piper<number_of("no-ar")>(),
    of_piper<number_of("equi")>(),
    of_piper<number_of("equi-no-tp")>(),
    of_piper<number_of("pipedream")>(),
    Planner{{.name = "graphpipe",
             .description = "stages that form a graph, each with its own replicas (GraphPipe)",
             .plan = with_family_options<plan_graphpipe, graphpipe_space>,
             .heterogeneous_stages = true,
             .family_options = &kGraphPipeOptions},
            Systems::any},
    of_piper<number_of("dp-only")>(),
    of_piper<number_of("tp-only")>(),
};

/// Drops plans that the trainer cannot be told, which planners of other spaces than braid's may
/// find.
void keep_what_can_be_told(const Trainer& trainer, const TrainerLimits& can, Outcome& outcome) {
  if (can == TrainerLimits{}) return;
  std::string reason;
  std::erase_if(outcome.candidates, [&](const Candidate& candidate) {
    const std::string refused = refusal(can, candidate.plan);
    if (reason.empty()) reason = refused;
    return !refused.empty();
  });
  if (reason.empty() || !outcome.candidates.empty()) return;
  outcome.status = Status::infeasible;
  outcome.infeasibility = Infeasibility{
      fmt::format("the planner's plan cannot be told to {}, which {}", trainer.name, reason),
      -1,
      0,
      0,
      {}};
}

/// Of a search for the least simulated time that left out some of what the trainer does (sends that
/// block, on clusters of several kinds): what it has found takes what it takes, and is proven no
/// further than the search's bound, which holds all the same.
void correct_times(Outcome& outcome) {
  if (outcome.candidates.empty() || outcome.objective_name != kSimulatedObjective) return;
  const auto faster = [](const Candidate& a, const Candidate& b) {
    return a.metrics.iteration_time_s < b.metrics.iteration_time_s;
  };
  // What rounding alone puts before the first stays behind it.
  const double least_s =
      std::min_element(outcome.candidates.begin(), outcome.candidates.end(), faster)
          ->metrics.iteration_time_s;
  const bool is_chosen =
      (outcome.recommendation && outcome.recommendation->fastest) ||
      outcome.candidates.front().metrics.iteration_time_s * (1 - kSameTime) <= least_s;
  std::stable_sort(outcome.candidates.begin() + (is_chosen ? 1 : 0), outcome.candidates.end(),
                   faster);
  const double time_s = fastest_of(outcome).metrics.iteration_time_s;
  if (time_s <= outcome.objective * kAboveTolerance) return;
  outcome.objective = time_s;
  if (outcome.status == Status::optimal && outcome.search_bound_s < time_s * kBelowTolerance) {
    outcome.status = Status::feasible;
  }
}

/// The planner on the systems that it is for, or what stands for them.
Outcome on_systems(const Planner& planner, const Job& job, const System& system,
                   const PlannerOptions& options, const Budget& budget, const Progress& progress) {
  if (planner.systems == Systems::any)
    return planner.entry.plan(job, system, options, budget, progress);
  const PlanFunction alone = [&](const Job& one, const System& slowest, const SpaceOptions& space,
                                 const Budget& most, const Progress& shown) {
    PlannerOptions told = options;
    static_cast<SpaceOptions&>(told) = space;
    return planner.entry.plan(one, slowest, told, most, shown);
  };
  return plan_for_slowest({alone, std::string(planner.entry.name)}, job, system, options, budget,
                          progress);
}

/// The planner on what the job's layers have options for. It looks at them once for all that it
/// does.
template <std::size_t number>
Outcome on_layers(const Job& job, const System& system, const PlannerOptions& options,
                  const Budget& budget, const Progress& progress) {
  const Planner& planner = kPlanners[number];
  const std::shared_ptr<const LayerOptions> layers = layer_options(job);
  Job looked_at = job;
  looked_at.layers = layers.get();
  if (layers->searches_shardings()) looked_at.sharding = ShardingSource::automatic;
  PlannerOptions within = options;
  static_cast<SpaceOptions&>(within) =
      within_options(job, *layers, options, planner.start, planner.entry.name);
  Outcome outcome = on_systems(planner, looked_at, system, within, budget, progress);
  keep_what_can_be_told(job.trainer, options.can, outcome);
  correct_times(outcome);
  return outcome;
}

template <std::size_t... numbers>
std::vector<PlannerEntry> all_planners(std::index_sequence<numbers...> /*numbers*/) {
  std::vector<PlannerEntry> entries{kPlanners[numbers].entry...};
  constexpr std::array kPlans = {on_layers<numbers>...};
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].plan = kPlans[i];
  return entries;
}

}  // namespace

Outcome plan_braid(const Job& job, const System& system, const BraidSpace& space,
                   const Budget& budget, const Progress& progress) {
  const auto preferring = [&](auto plan) {
    return [plan, &space](const Job& one, const System& usable, const SpaceOptions& within,
                          const Budget& most, const Progress& shown) {
      return plan(one, usable, BraidSpace(within, space.preference), most, shown);
    };
  };
  return plan_by_kind({preferring(plan_uniform), preferring(plan_mixed), ShardingSource::automatic},
                      job, system, space, budget, progress);
}

const std::vector<PlannerEntry>& planners() {
  static const std::vector<PlannerEntry> entries =
      all_planners(std::make_index_sequence<kPlanners.size()>());
  return entries;
}

std::string planners_text(const std::function<bool(const PlannerEntry&)>& is) {
  std::vector<std::string_view> names;
  for (const PlannerEntry& entry : planners()) {
    if (is(entry)) names.push_back(entry.name);
  }
  return fmt::format("the planner{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ", "));
}

std::vector<const FamilyOptions*> family_options() {
  std::vector<const FamilyOptions*> all;
  for (const PlannerEntry& entry : planners()) {
    if (entry.family_options == nullptr) continue;
    if (std::find(all.begin(), all.end(), entry.family_options) == all.end()) {
      all.push_back(entry.family_options);
    }
  }
  return all;
}

const PlannerEntry& find_planner(std::string_view name, const char* option) {
  std::string known;
  for (const PlannerEntry& entry : planners()) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(Where{"", 0, option}, "unknown planner " + in_quotes(name), "use one of " + known);
}

}  // namespace braid
