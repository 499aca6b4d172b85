#include "braid/explore/family_bound.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/explore/point_result.h"
#include "braid/plan/plan_energy.h"
#include "braid/profile/layer_activity.h"
#include "braid/report/plan_text.h"

namespace braid {
namespace {

/// What a batch takes at least on a chip of that design.
ChipActivity least_work(const SystemWorkload& workload, const Graph& graph,
                        const AcceleratorDesign& design) {
  ChipActivity least = least_activity(graph, workload.global_batch, design.chip);
  least.tensor_l2_bytes += least_l2_bytes(least.macs, design.chip);
  return least;
}

}  // namespace

BoundedFamily bounded_family(const SystemSpace& systems, const SystemFamily& family,
                             std::size_t planner, const std::shared_ptr<NestMemo>& nests) {
  const SystemArchitectures& every = *systems.architectures;
  Chip best = chip_of(every, envelope(every.all, family.members));
  best.execution = ChipExecution::core_bounds;
  const System system = system_of(systems, family.place, best);
  BoundedFamily made{family, ""};
  SystemFamily& bounded = made.family;
  bounded.is_bounded = true;
  bounded.least.clear();
  for (std::size_t w = 0; w < systems.workloads.size(); ++w) {
    const WorkloadPlan plan = plan_workload(systems, w, planner, system, nests);
    const bool is_infeasible = plan.outcome.status == Status::infeasible;
    const bool none = !plan.refusal.empty() || is_infeasible;
    if (none && made.refusal.empty()) {
      made.refusal =
          is_infeasible && plan.refusal.empty() ? infeasibility_text(plan.outcome) : plan.refusal;
    }
    if (systems.search->what == SearchFor::energy && !none) {
      bounded.least.push_back(least_work(systems.workloads[w], plan.graph, *best.accelerator));
    }
    bounded.least_s[w] = std::max(bounded.least_s[w],
                                  none ? kInfinity : kBelowRounding * plan.outcome.search_bound_s);
    if (none) break;
  }
  return made;
}

}  // namespace braid
