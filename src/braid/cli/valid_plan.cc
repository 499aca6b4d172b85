#include "braid/cli/valid_plan.h"

#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/plan/plan_json.h"
#include "braid/verify/verify.h"

namespace braid {

ValidPlan read_valid_plan(const std::string& path) { return valid_plan(read_plan(path), path); }

ValidPlan valid_plan(Plan plan, const std::string& path) {
  ValidPlan valid{std::move(plan), {}};
  for (const Check& check : verify(valid.plan).checks) {
    if (check.holds) continue;
    if (check.name == "memory") {
      valid.warnings.push_back("the plan does not fit: " + check.detail);
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
  return valid;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "braid: warning: {}\n", warning);
  }
}

}  // namespace braid
