#include "braid/base/error.h"
#include "braid/planners/amp_mixed_planner.h"
#include "braid/planners/mixed_baseline.h"
#include "braid/planners/piper_planner.h"
#include "braid/planners/piper_variants.h"
#include "braid/planners/planner.h"

namespace braid {
namespace {

template <std::size_t number>
Outcome piper_alone(const Job& job, const System& system, const SpaceOptions& space,
                    const Budget& budget, const Progress& progress) {
  return plan_piper(piper_variants()[number].name, job, system, space, budget, progress);
}

/// The planner of piper_variants()[number].
template <std::size_t number>
Outcome piper(const Job& job, const System& system, const SpaceOptions& space, const Budget& budget,
              const Progress& progress) {
  return plan_for_slowest(piper_alone<number>, std::string(piper_variants()[number].name), job,
                          system, space, budget, progress);
}

struct Baseline {
  std::string_view name;
  PlanFunction plan;
};
constexpr Baseline kMegatron{"megatron", plan_megatron};
constexpr Baseline kPhaze{"phaze", plan_phaze};

template <const Baseline& baseline>
Outcome on_any(const Job& job, const System& system, const SpaceOptions& space,
               const Budget& budget, const Progress& progress) {
  return plan_for_slowest(baseline.plan, std::string(baseline.name), job, system, space, budget,
                          progress);
}

template <PlanFunction homogeneous, PlanFunction mixed>
Outcome by_kind(const Job& job, const System& system, const SpaceOptions& space,
                const Budget& budget, const Progress& progress) {
  return plan_by_kind(homogeneous, mixed, job, system, space, budget, progress);
}

}  // namespace

const std::vector<PlannerEntry>& planners() {
  static const std::vector<PlannerEntry> entries = {
      {"braid", "best-first search over all splits, uneven stages, memory options", plan_braid},
      {"exhaustive", "every configuration of braid's space evaluated, as a check of its search",
       plan_exhaustively},
      {"megatron", "published rule of thumb: tensor within the node, then pipeline, then data",
       on_any<kMegatron>},
      {"amp", "AMP's cost model over pp, dp, tp and micro-batch size, layers assigned exactly",
       by_kind<plan_amp, plan_amp_mixed>},
      {"amp-sa", "AMP's simulated annealing, 100 steps", by_kind<plan_amp_sa, plan_amp_sa_mixed>},
      {"phaze", "Phaze's placement: flushed 1F1B on a flat network, stages exact", on_any<kPhaze>},
      {"random", "the best by AMP's cost of 100 strategies drawn at random",
       by_kind<plan_random, plan_random_mixed>},
      {"piper", "least time per sample over cuts of the layer graph (Piper)", piper<0>},
      {"no-dp", "piper without data parallelism", piper<1>},
      {"no-tp", "piper without tensor parallelism", piper<2>},
      {"no-ar", "piper without activation recomputation", piper<3>},
      {"equi", "equal stages (PipeDream-2BW), with tensor parallelism", piper<4>},
      {"equi-no-tp", "equal stages (PipeDream-2BW)", piper<5>},
      {"pipedream", "PipeDream's recurrence on the layers as a chain", piper<6>},
      {"graphpipe", "stages that form a graph, each with its own replicas (GraphPipe)",
       plan_graphpipe},
      {"dp-only", "one stage, data parallelism", piper<7>},
      {"tp-only", "one stage, tensor parallelism", piper<8>},
  };
  return entries;
}

const PlannerEntry& find_planner(const std::string& name) {
  std::string known;
  for (const PlannerEntry& entry : planners()) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(Where{"", 0, "--planner"}, "unknown planner \"" + name + "\"", "use one of " + known);
}

}  // namespace braid
