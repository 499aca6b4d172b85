#include "braid/cli/plan_profile.h"

#include "braid/base/document.h"
#include "braid/cli/plan_phaze.h"
#include "braid/cli/plan_piper.h"
#include "braid/planners/phaze/problem.h"

namespace braid {
namespace {

/// The planner asked for, or the profile's own.
std::string own_planner(const std::string& asked, const Value& profile) {
  return !asked.empty() ? asked : is_phaze_input(profile) ? "phaze" : "piper";
}

}  // namespace

CheckedOutcome outcome_by_own_rules(const ProfileOptions& options, const std::string& asked,
                                    std::int64_t budget, const Progress& progress) {
  const Document document = Document::parse_file(options.profiles.front());
  const std::string planner = own_planner(asked, document.root());
  CheckedOutcome checked = planner == "phaze"
                               ? phaze_outcome(options, progress)
                               : piper_outcome(options, document, planner, budget, progress);
  for (Candidate& candidate : checked.outcome.candidates) {
    checked.failure = fault_of(candidate, checked.outcome.physical_bound, planner);
  }
  return checked;
}

int plan_profile(const ProfileOptions& options, const std::string& asked, std::int64_t budget,
                 const AnswerOutput& to, const Progress& progress) {
  const Document document = Document::parse_file(options.profiles.front());
  const std::string planner = own_planner(asked, document.root());
  if (planner == "phaze") return plan_phaze_profile(options, to, progress);
  return plan_piper_profile(options, document, planner, budget, to, progress);
}

}  // namespace braid
