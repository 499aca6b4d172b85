#include "braid/explore/one_after_other.h"

#include <cassert>
#include <utility>

#include "braid/explore/search_value.h"
#include "braid/planners/job/fixed_degrees.h"

namespace braid {
namespace {

/// Nothing but the parallel form of a plan whose stages all have the same.
void fix_form(const Parallelism& parallel, SpaceOptions& options) {
  fix_degrees(parallel, options);
  options.vp = parallel.vp;
  options.recompute = parallel.recompute;
  options.zero = parallel.zero;
}

/// The first system, with the reference chip.
System reference_system(const SystemSpace& systems, const SpacePoint& first) {
  if (!systems.architectures) return system_of(systems, first);
  return system_of(systems, first, systems.architectures->rest);
}

}  // namespace

OneAfterOther choose_one_after_other(const Space& space, std::size_t planner) {
  assert(space.units.size() == 1 && is_searched(space));
  const SpacePoint first(space.axes.size(), 0);
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  OneAfterOther chosen;
  const WorkloadPlan reference =
      plan_workload(systems, 0, planner, reference_system(systems, first));
  if (!reference.refusal.empty() || reference.outcome.candidates.empty()) return chosen;
  const Plan& plan = reference.outcome.candidates.front().plan;
  chosen.form = parallelism_text(plan);
  Space fixed = space;
  SystemSpace& fixed_systems = std::get<SystemSpace>(fixed.points);
  fix_form(plan.parallel, fixed_systems.options);
  fixed_systems.search->keep = 1;
  std::vector<FoundSystem> best = search_systems_by(fixed, planner).best;
  if (best.empty()) return chosen;
  chosen.system = std::move(best.front());
  chosen.fixed_value = chosen.system.value;
  SpacePoint point = chosen.system.place;
  point[kMethodAxis] = planner;
  const PointResult planned = plan_point(systems, point).result;
  if (!is_found(planned)) return chosen;
  const double amount = searched_amount(systems, planned);
  chosen.value = search_value(systems, {&amount, 1}, {planned.usd, planned.watts});
  return chosen;
}

}  // namespace braid
