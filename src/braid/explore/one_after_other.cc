#include "braid/explore/one_after_other.h"

#include <cassert>
#include <utility>
namespace braid {
namespace {

/// Nothing but the division of a plan whose stages are all divided alike.
void fix_division(const Plan& plan, SpaceOptions& options) {
  const auto only = [](std::int64_t degree) {
    return Degrees({static_cast<int>(degree)}, Degrees::kNoLimit);
  };
  const Parallelism& parallel = plan.parallel;
  options.tp = only(parallel.tp);
  options.pp = only(parallel.pp);
  options.dp = only(parallel.dp);
  options.cp = only(parallel.cp);
  options.ep = only(parallel.ep);
  options.vp = only(parallel.vp);
  options.micro_batch = only(parallel.micro_batch);
  options.recompute = parallel.recompute;
  options.zero = parallel.zero;
  options.schedule = parallel.schedule;
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
  chosen.form = division_text(plan);
  Space fixed = space;
  SystemSpace& fixed_systems = std::get<SystemSpace>(fixed.points);
  fix_division(plan, fixed_systems.options);
  fixed_systems.search->keep = 1;
  SystemSearchResult found = search_systems(fixed, nullptr);
  std::vector<FoundSystem>& best = found.searches[planner].best;
  if (best.empty()) return chosen;
  chosen.system = std::move(best.front());
  chosen.fixed_value = chosen.system.value;
  SpacePoint point = chosen.system.place;
  point[kMethodAxis] = planner;
  const PointResult planned = plan_point(systems, point).result;
  if (!is_found(planned)) return chosen;
  const double time_s = searched_time_s(planned);
  chosen.value = search_value(systems, {&time_s, 1}, {planned.usd, planned.watts});
  return chosen;
}

}  // namespace braid
