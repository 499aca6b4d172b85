#include "braid/cli/valid_plan.h"

#include "braid/base/error.h"
#include "braid/plan/plan_json.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/verify.h"

namespace braid {
namespace {

void expect_holds(const Verification& verification, const std::string& path) {
  for (const Check& check : verification.checks) {
    // Without a time yet, checks of the time say nothing.
    if (check.holds ||
        (verification.iteration_time_s == 0 && (check.name == "time" || check.name == "bound"))) {
      continue;
    }
    throw Error(Where{path, 0, ""},
                "the plan fails the check '" + check.name + "': " + check.detail,
                "braid verify lists all checks");
  }
}

}  // namespace

Plan read_valid_plan(const std::string& path) {
  Plan plan = read_plan(path);
  expect_holds(verify(plan, 0), path);
  expect_holds(verify(plan, simulate_time_s(plan)), path);
  return plan;
}

}  // namespace braid
