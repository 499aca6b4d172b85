#include "braid/cli/valid_plan.h"

#include <utility>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/plan/plan_json.h"
#include "braid/report/alternatives.h"
#include "braid/report/heading.h"
#include "braid/verify/verify.h"

namespace braid {

ValidPlan read_valid_plan(const std::string& path) {
  const Document document = Document::parse_file(path);
  Plan plan = plan_from_json(document.root());
  const Alternatives alternatives = alternatives_from_json(document.root());
  ValidPlan valid = valid_plan(std::move(plan), path);
  valid.notes.insert(valid.notes.end(), alternatives.notes.begin(), alternatives.notes.end());
  return valid;
}

ValidPlan valid_plan(Plan plan, const std::string& path) {
  ValidPlan valid{std::move(plan), {}, {}};
  for (const Check& check : verify(valid.plan).checks) {
    if (check.holds) continue;
    if (check.name == "memory") {
      valid.warnings.push_back("the plan does not fit: " + check.detail + ". " + kTimeOfMisfit);
      continue;
    }
    if (check.name == "claims") {
      valid.warnings.push_back("the plan is not what it claims: " + check.detail);
      continue;
    }
    throw Error(Where{path, 0, ""},
                "the plan fails the check '" + check.name + "': " + check.detail,
                "braid verify lists all checks");
  }
  valid.notes = valid.warnings;
  return valid;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "braid: warning: {}\n", warning);
  }
}

}  // namespace braid
