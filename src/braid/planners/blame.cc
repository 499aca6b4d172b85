#include "braid/planners/blame.h"

#include <utility>

#include "braid/base/error.h"
#include "braid/planners/job/contradiction.h"

namespace braid {

std::optional<std::vector<std::string>> restrictions_to_blame(const Job& job, const System& system,
                                                              const PlannerOptions& options,
                                                              const PlannerEntry& planner,
                                                              std::int64_t most_work) {
  const auto outcome_of = [&](const PlannerOptions& space) {
    Outcome outcome;
    try {
      outcome = planner.plan(job, system, space, Budget{most_work}, {});
    } catch (const Error&) {
      outcome.status = Status::infeasible;  // The rest does not go together.
    }
    return outcome;
  };
  const auto lacks_plan = [&](const PlannerOptions& space) {
    return outcome_of(space).status == Status::infeasible;
  };
  std::vector<GivenRestriction> given = given_restrictions(options);
  if (given.empty()) return std::nullopt;
  PlannerOptions left = options;
  for (const GivenRestriction& restriction : given) restriction.take_back(left);
  if (lacks_plan(left)) return std::vector<std::string>{};
  left = options;
  std::vector<std::string> blamed;
  for (const GivenRestriction& restriction : given) {
    PlannerOptions without_it = left;
    restriction.take_back(without_it);
    if (lacks_plan(without_it)) {
      left = std::move(without_it);
    } else {
      blamed.push_back(restriction.text);
    }
  }
  return blamed;
}

}  // namespace braid
