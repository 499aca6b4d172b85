#include "braid/chip/cores/core_problem.h"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/chip/cores/operator_order.h"

namespace braid {
namespace {

void check_operator(const CoreProblem& problem, std::size_t at, const std::string& file) {
  const CoreOperator& op = problem.operators[at];
  const Where where{file, 0, fmt::format("operators[{}]", at)};
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  if (!is_time(op.one_core_s) || !is_time(op.all_cores_s)) {
    throw Error(
        where, fmt::format("takes {} s on one core and {} s on all", op.one_core_s, op.all_cores_s),
        "give times of 0 or more that are finite");
  }
  if (op.kind == CoreKind::none && (op.one_core_s > 0 || op.all_cores_s > 0)) {
    throw Error(where, "takes time and runs on no kind of core",
                "say whether it needs tensor cores, vector cores or both");
  }
  if (needs_tensor_core(op.kind) && problem.cores.tensor < 1) {
    throw Error(where, "needs a tensor core and the chip has none",
                "give the chip tensor cores, or run it on vector cores");
  }
  if (needs_vector_core(op.kind) && problem.cores.vector < 1) {
    throw Error(where, "needs a vector core and the chip has none", "give the chip vector cores");
  }
}

}  // namespace

void check_core_problem(const CoreProblem& problem, const std::string& file) {
  for (std::size_t i = 0; i < problem.operators.size(); ++i) check_operator(problem, i, file);
  const auto count = static_cast<std::int64_t>(problem.operators.size());
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    const auto [from, to] = problem.edges[e];
    if (from < 0 || from >= count || to < 0 || to >= count) {
      throw Error({file, 0, fmt::format("edges[{}]", e)},
                  fmt::format("leads from operator {} to operator {} of {}", from, to, count),
                  "operators count from 0");
    }
  }
  const std::size_t ordered = topological_operators(problem).size();
  if (ordered < problem.operators.size()) {
    throw Error({file, 0, "edges"},
                fmt::format("{} operators wait for each other in a cycle or behind one",
                            problem.operators.size() - ordered),
                "take out an edge of each cycle");
  }
}

}  // namespace braid
