#include "braid/chip/cores/core_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "braid/chip/cores/operator_order.h"

namespace braid {
namespace {

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

bool is_valid_on(const CoreOperator& op, const CoreCounts& cores) {
  if (!is_time(op.one_core_s) || !is_time(op.all_cores_s)) return false;
  if (op.kind == CoreKind::none) return op.one_core_s == 0 && op.all_cores_s == 0;
  return (!needs_tensor_core(op.kind) || cores.tensor > 0) &&
         (!needs_vector_core(op.kind) || cores.vector > 0);
}

}  // namespace

bool is_valid(const CoreProblem& problem) {
  const auto count = static_cast<std::int64_t>(problem.operators.size());
  const auto is_operator = [&](std::int32_t op) { return op >= 0 && op < count; };
  return std::all_of(problem.operators.begin(), problem.operators.end(),
                     [&](const CoreOperator& op) { return is_valid_on(op, problem.cores); }) &&
         std::all_of(problem.edges.begin(), problem.edges.end(),
                     [&](const auto& edge) {
                       return is_operator(edge.first) && is_operator(edge.second);
                     }) &&
         topological_operators(problem).size() == problem.operators.size();
}

}  // namespace braid
