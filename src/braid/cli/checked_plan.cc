#include "braid/cli/checked_plan.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braid/base/and_list.h"
#include "braid/base/text.h"
#include "braid/cli/verbs.h"
#include "braid/planners/blame.h"
#include "braid/planners/job/contradiction.h"
#include "braid/planners/job/outcomes.h"
#include "braid/report/plan_assumptions.h"
#include "braid/verify/check_candidates.h"

namespace braid {

std::string fault_of(Candidate& candidate, const LowerBound& bound, std::string_view planner) {
  const std::string failure = claim_and_check(candidate, bound);
  return failure.empty() ? "" : fmt::format("a plan of {} {}", planner, failure);
}

CheckedOutcome plan_and_check(const LoadedJob& loaded, const PlannerEntry& planner,
                              const Progress& progress) {
  CheckedOutcome checked;
  const auto start = std::chrono::steady_clock::now();
  // Some of what is found besides may tell nobody anything: more is asked for than is shown.
  PlannerOptions space = loaded.space;
  if (space.top > 1) space.top += space.top / 2 + 1;
  checked.outcome = planner.plan(loaded.job, loaded.system, space, loaded.budget, progress);
  leave_out_idle_trades(checked.outcome);
  std::vector<Candidate>& candidates = checked.outcome.candidates;
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, loaded.space.top));
  if (candidates.size() > most)
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(most), candidates.end());
  checked.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  checked.outcome.trainer_notes = loaded.trainer_notes;
  std::vector<std::string>& assumptions = checked.outcome.assumptions;
  assumptions.insert(assumptions.begin(), loaded.assumptions.begin(), loaded.assumptions.end());
  if (auto& why = checked.outcome.infeasibility; why && why->stage >= 0 && loaded.longest_samples) {
    why->reason += fmt::format(" at {} tokens a sample (the model's maximum; --seq-len sets fewer)",
                               loaded.graph.seq_len);
  }
  if (!checked.outcome.candidates.empty()) {
    const std::vector<std::string> said =
        plan_assumptions(loaded.job.graph, checked.outcome.candidates.front().plan);
    assumptions.insert(assumptions.begin(), said.begin(), said.end());
  }
  const std::string failure = claim_and_check(checked.outcome);
  if (!failure.empty()) checked.failure = fmt::format("a plan of {} {}", planner.name, failure);
  return checked;
}

CheckedOutcome plan_checked(const LoadedJob& loaded, const PlannerEntry& planner,
                            const Progress& progress) {
  CheckedOutcome checked = plan_and_check(loaded, planner, progress);
  if (!checked.failure.empty()) throw std::logic_error(checked.failure);
  return checked;
}

void say_what_is_to_blame(const LoadedJob& loaded, const PlannerEntry& planner, Outcome& outcome) {
  if (outcome.status != Status::infeasible || !outcome.infeasibility) return;
  Infeasibility& why = *outcome.infeasibility;
  if (why.names_options) return;
  const bool of_memory = why.stage >= 0;
  if (!of_memory && loaded.job.graph != nullptr && is_homogeneous(loaded.system)) {
    const SpaceLimits limits = space_limits(loaded.job, loaded.system);
    const std::optional<Contradiction> broken = contradiction(limits, loaded.space);
    if (broken) {
      why.reason = text_of(*broken, limits, loaded.space);
      return;
    }
  }
  BlamedSystem on{loaded.system, nullptr, ""};
  if (loaded.unlimited) {
    on.unlimited = &*loaded.unlimited;
    on.limit = "--max-memory " + in_quotes(loaded.max_memory);
  }
  const std::optional<std::vector<std::string>> blamed =
      restrictions_to_blame(loaded.job, on, loaded.space, planner);
  if (!blamed) return;
  why.reason += blamed->empty()
                    ? ", whatever is fixed"
                    : fmt::format(", with {} ({} {})", and_list(*blamed),
                                  blamed->size() == 1 ? "without it" : "dropping any one of them,",
                                  of_memory ? "some plan fits" : "there is a plan");
}

int status_of(const Outcome& outcome) {
  if (!outcome.candidates.empty()) return kFound;
  return outcome.status == Status::budget_exhausted ? kExhausted : kInfeasible;
}

}  // namespace braid
