#include "chip/cores/check_core_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "braid/base/rounding.h"

namespace braid {
namespace {

bool fits(bool needed, std::int32_t core, std::int64_t cores) {
  return needed ? core >= 0 && core < cores : core == -1;
}

/// What is wrong with where an operator runs; empty where nothing is.
std::string fault_of_place(const CoreOperator& op, const PlacedOperator& placed,
                           const CoreCounts& cores) {
  const bool any_core = placed.tensor_core >= 0 || placed.vector_core >= 0;
  if (placed.all_cores || op.kind == CoreKind::none) return any_core ? "names a core" : "";
  if (!fits(needs_tensor_core(op.kind), placed.tensor_core, cores.tensor)) {
    return fmt::format("is on tensor core {}", placed.tensor_core);
  }
  if (!fits(needs_vector_core(op.kind), placed.vector_core, cores.vector)) {
    return fmt::format("is on vector core {}", placed.vector_core);
  }
  if (op.kind == CoreKind::fused && placed.tensor_core != placed.vector_core) {
    return "is on two cores that are no pair";
  }
  return "";
}

/// Whether two operators may not run at once.
bool exclude_each_other(const CoreProblem& problem, const CoreSchedule& schedule, std::size_t a,
                        std::size_t b) {
  const CoreKind kind_a = problem.operators[a].kind, kind_b = problem.operators[b].kind;
  if (kind_a == CoreKind::none || kind_b == CoreKind::none) return false;
  const PlacedOperator& first = schedule.operators[a];
  const PlacedOperator& second = schedule.operators[b];
  if (first.all_cores || second.all_cores) {
    if (problem.rule == AllCoresRule::alone) return true;
    return (needs_tensor_core(kind_a) && needs_tensor_core(kind_b)) ||
           (needs_vector_core(kind_a) && needs_vector_core(kind_b));
  }
  return (first.tensor_core >= 0 && first.tensor_core == second.tensor_core) ||
         (first.vector_core >= 0 && first.vector_core == second.vector_core);
}

}  // namespace

std::vector<std::string> check_core_schedule(const CoreProblem& problem,
                                             const CoreSchedule& schedule) {
  std::vector<std::string> faults;
  const std::size_t count = problem.operators.size();
  if (schedule.operators.size() != count) return {"another number of operators"};
  const double slack_s = kToleranceShare * schedule.makespan_s;
  double last_s = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const CoreOperator& op = problem.operators[i];
    const PlacedOperator& placed = schedule.operators[i];
    last_s = std::max(last_s, placed.end_s);
    const double takes_s = placed.all_cores ? op.all_cores_s : op.one_core_s;
    if (!(std::abs(placed.end_s - placed.start_s - takes_s) <= slack_s)) {
      faults.push_back(fmt::format("operator {} takes another time than {} s", i, takes_s));
    }
    if (!(placed.start_s >= 0)) faults.push_back(fmt::format("operator {} starts before 0", i));
    const std::string fault = fault_of_place(op, placed, problem.cores);
    if (!fault.empty()) faults.push_back(fmt::format("operator {} {}", i, fault));
  }
  if (!(std::abs(last_s - schedule.makespan_s) <= slack_s)) {
    faults.push_back(
        fmt::format("the last operator ends at {} s, not at {} s", last_s, schedule.makespan_s));
  }
  for (const auto& [from, to] : problem.edges) {
    if (schedule.operators[static_cast<std::size_t>(to)].start_s <
        schedule.operators[static_cast<std::size_t>(from)].end_s - slack_s) {
      faults.push_back(fmt::format("operator {} starts before operator {} has ended", to, from));
    }
  }
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      const PlacedOperator& first = schedule.operators[a];
      const PlacedOperator& second = schedule.operators[b];
      const bool apart =
          first.end_s <= second.start_s + slack_s || second.end_s <= first.start_s + slack_s;
      if (!apart && exclude_each_other(problem, schedule, a, b)) {
        faults.push_back(fmt::format("operators {} and {} run at once and must not", a, b));
      }
    }
  }
  return faults;
}

}  // namespace braid
