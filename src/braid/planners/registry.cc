#include "braid/base/error.h"
#include "braid/planners/piper_planner.h"
#include "braid/planners/piper_variants.h"
#include "braid/planners/planner.h"

namespace braid {
namespace {

/// The planner of piper_variants()[number].
template <std::size_t number>
Outcome piper(const Job& job, const System& system, const SpaceOptions& space, const Budget& budget,
              const Progress& progress) {
  return plan_piper(piper_variants()[number].name, job, system, space, budget, progress);
}

}  // namespace

const std::vector<PlannerEntry>& planners() {
  static const std::vector<PlannerEntry> entries = {
      {"braid", "best-first search over all splits, uneven stages, memory options", plan_braid},
      {"exhaustive", "every configuration of braid's space evaluated, as a check of its search",
       plan_exhaustively},
      {"megatron", "published rule of thumb: tensor within the node, then pipeline, then data",
       plan_megatron},
      {"amp", "AMP's cost model over pp, dp, tp and micro-batch size, layers assigned exactly",
       plan_amp},
      {"amp-sa", "AMP's simulated annealing, 100 steps", plan_amp_sa},
      {"phaze", "Phaze's placement: flushed 1F1B on a flat network, stages exact", plan_phaze},
      {"random", "the best by AMP's cost of 100 strategies drawn at random", plan_random},
      {"piper", "least time per sample over cuts of the layer graph (Piper)", piper<0>},
      {"no-dp", "piper without data parallelism", piper<1>},
      {"no-tp", "piper without tensor parallelism", piper<2>},
      {"no-ar", "piper without activation recomputation", piper<3>},
      {"equi", "equal stages (PipeDream-2BW), with tensor parallelism", piper<4>},
      {"equi-no-tp", "equal stages (PipeDream-2BW)", piper<5>},
      {"pipedream", "PipeDream's recurrence on the layers as a chain", piper<6>},
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
