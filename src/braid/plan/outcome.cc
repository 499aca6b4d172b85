#include "braid/plan/outcome.h"

namespace braid {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::optimal:
      return "optimal";
    case Status::feasible:
      return "feasible";
    case Status::infeasible:
      return "infeasible";
    case Status::budget_exhausted:
      return "budget_exhausted";
  }
  return "";
}

}  // namespace braid
