#include "braid/cli/valid_plan.h"

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/plan/plan_json.h"
#include "braid/verify/verify.h"

namespace braid {

Plan read_valid_plan(const std::string& path) {
  Plan plan = read_plan(path);
  for (const Check& check : verify(plan).checks) {
    if (check.holds) continue;
    if (check.name == "memory") {
      fmt::print(stderr, "braid: warning: the plan does not fit: {}\n", check.detail);
      continue;
    }
    if (check.name == "claims") {
      fmt::print(stderr, "braid: warning: the plan is not what it claims: {}\n", check.detail);
      continue;
    }
    throw Error(Where{path, 0, ""},
                "the plan fails the check '" + check.name + "': " + check.detail,
                "braid verify lists all checks");
  }
  return plan;
}

}  // namespace braid
