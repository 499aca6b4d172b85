#include "braid/cli/profile_answer.h"

#include <stdexcept>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/quantity.h"
#include "braid/cli/outcome_json.h"
#include "braid/plan/plan_json.h"
#include "braid/planners/piper/problem.h"

namespace braid {

std::string plan_line(const ProfileOutcome& made) {
  if (made.outcome.candidates.empty()) {
    return fmt::format("No plan to simulate: {}\n", made.no_plan);
  }
  const Candidate& best = made.outcome.candidates.front();
  std::string text = fmt::format(
      "Simulated: {:.9g} s for {} samples on {} devices, {} on the fullest; no plan of these "
      "options takes less than {:.6g} s\n",
      best.metrics.iteration_time_s, best.plan.global_batch, devices_used(best.plan),
      format_bytes(best.metrics.peak_memory_bytes), made.outcome.physical_bound.time_s);
  for (const std::string& assumption : made.outcome.assumptions) {
    text += fmt::format("Assumed: {}\n", assumption);
  }
  return text;
}

void add_plan(const ProfileOutcome& made, Json& json) {
  json["lower_bound_s"] = made.outcome.physical_bound.time_s;
  if (made.outcome.candidates.empty()) {
    json["iteration_time_s"] = json["peak_memory_bytes"] = json["plan"] = nullptr;
    json["no_plan"] = made.no_plan;
    return;
  }
  const Candidate& best = made.outcome.candidates.front();
  json["iteration_time_s"] = best.metrics.iteration_time_s;
  json["peak_memory_bytes"] = best.metrics.peak_memory_bytes;
  json["plan"] = candidate_to_json(best, made.outcome.physical_bound);
  json["plan"]["assumptions"] = made.outcome.assumptions;
}

void finish_plan(ProfileOutcome& made, const std::string& planner, const std::string& output) {
  if (made.outcome.candidates.empty()) {
    if (output.empty() || made.outcome.status == Status::infeasible) return;
    throw Error(Where{output, 0, ""}, "there is no plan to write: " + made.no_plan,
                "leave out -o, or plan with --planner braid");
  }
  Candidate& best = made.outcome.candidates.front();
  const std::string fault = fault_of(best, made.outcome.physical_bound, planner);
  if (!fault.empty()) throw std::logic_error(fault);
  if (!output.empty()) write_file(output, to_text(to_json(best.plan)));
}

}  // namespace braid
