#pragma once

#include <cstdint>

#include "braid/planners/piper/problem.h"

namespace braid {

/// A plan that takes more than a device has, as its rounds do not nest or as Piper counts no
/// working space, is looked for again within less.
inline constexpr int kMostAttemptsWithinLess = 20;

/// Looks for a plan within ever less memory until one fits. `attempt(problem)`: by how many bytes
/// what is found within the problem's memory is above that of a device, infinity where nothing is
/// found; at most 0 ends the search. False when no plan fitted.
template <typename Attempt>
bool within_less_memory(PiperProblem problem, const Attempt& attempt) {
  for (int i = 0; i < kMostAttemptsWithinLess && problem.memory_bytes > 0; ++i) {
    const double excess_bytes = attempt(problem);
    if (excess_bytes <= 0) return true;
    problem.memory_bytes -= excess_bytes;
  }
  return false;
}

/// Attempts the problem with each data-parallel degree for all stages, whose rounds then nest.
template <typename Attempt>
void with_equal_degrees(PiperProblem problem, const Attempt& attempt) {
  for (const std::int64_t dp : piper_dp_degrees(problem)) {
    problem.least_dp = problem.most_dp = dp;
    attempt(problem);
  }
}

}  // namespace braid
