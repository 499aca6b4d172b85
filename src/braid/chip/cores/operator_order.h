#pragma once

#include <cstdint>
#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/graph/bitset.h"

namespace braid {

/// Operators, those that others wait for first, the lowest number first where several are free. Of
/// a cycle and what waits for it nothing.
std::vector<std::int32_t> topological_operators(const CoreProblem& problem);

/// Who must come before whom of the operators that take a core, directly or through others: those
/// of kind `none` are left out, and what they pass on stays.
struct OperatorOrder {
  std::vector<std::int32_t> operators;  ///< Of the problem, topologically ordered.
  std::vector<Bitset> before;           ///< By place in `operators`, all that come before it.
};

/// O(operators · edges / 64). The problem has no cycle.
OperatorOrder operator_order(const CoreProblem& problem);

/// Runs of places in `operators` (after it is reordered by this function, topologically still) of
/// which all of each come before all of the next, as many as there are: a schedule of the whole is
/// one of each after the other, and the least time is the sum of the least times. An operator that
/// is comparable with all others is a run of its own. Returns where each begins, and the end.
/// O(operators² / 64).
std::vector<std::size_t> cut_in_series(OperatorOrder& order);

}  // namespace braid
