#include "braid/planners/blame.h"

#include <utility>

#include "braid/base/error.h"
#include "braid/planners/job/contradiction.h"

namespace braid {

std::optional<std::vector<std::string>> restrictions_to_blame(const Job& job,
                                                              const BlamedSystem& on,
                                                              const PlannerOptions& options,
                                                              const PlannerEntry& planner,
                                                              std::int64_t most_work) {
  const auto lacks_plan = [&](PlannerOptions space, bool limited) {
    space.preference = Preference::fastest;  // Any will do.
    try {
      const System& system = limited || on.unlimited == nullptr ? on.system : *on.unlimited;
      return planner.plan(job, system, space, Budget{most_work}, {}).status == Status::infeasible;
    } catch (const Error&) {
      return true;  // The rest does not go together.
    }
  };
  std::vector<GivenRestriction> given = given_restrictions(options);
  if (given.empty() && on.unlimited == nullptr) return std::nullopt;
  PlannerOptions left = options;
  for (const GivenRestriction& restriction : given) restriction.take_back(left);
  if (lacks_plan(left, /*limited=*/false)) return std::vector<std::string>{};
  left = options;
  bool limited = on.unlimited != nullptr;
  std::vector<std::string> blamed;
  for (const GivenRestriction& restriction : given) {
    PlannerOptions without_it = left;
    restriction.take_back(without_it);
    if (lacks_plan(without_it, limited)) {
      left = std::move(without_it);
    } else {
      blamed.push_back(restriction.text);
    }
  }
  if (limited && !lacks_plan(left, /*limited=*/false)) blamed.push_back(on.limit);
  return blamed;
}

}  // namespace braid
