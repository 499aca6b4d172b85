#pragma once

#include "braid/chip/cores/core_problem.h"

namespace braid {

/// The least makespan, by trying everything: each operator on every core, on every pair, or on all,
/// in every order, each as early as the ones before it allow (a serial schedule generation scheme,
/// Kolisch 1996, by order of starts: an optimal schedule, all of whose operators are moved as far
/// to the front as they can, is made by its own order of starts and its own cores). For up to 6 or
/// 7 operators.
double least_core_makespan(const CoreProblem& problem);

}  // namespace braid
