#include "braid/base/error.h"
#include "braid/planners/planner.h"

namespace braid {

const std::vector<PlannerEntry>& planners() {
  static const std::vector<PlannerEntry> entries = {
      {"braid", "best-first search over all splits, uneven stages, memory options", plan_braid},
      {"megatron", "published rule of thumb: tensor within the node, then pipeline, then data",
       plan_megatron},
      {"amp", "AMP's cost model over pp, dp, tp and micro-batch size, layers assigned exactly",
       plan_amp},
      {"amp-sa", "AMP's simulated annealing, 100 steps", plan_amp_sa},
      {"random", "the best by AMP's cost of 100 strategies drawn at random", plan_random},
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
