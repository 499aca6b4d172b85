#pragma once

#include <optional>
#include <string>

#include "braid/chip/cores/core_problem.h"

namespace braid {

/// Phaze's integer program of a problem (ICML 2024, figure 3: constraints 1 to 16, all of them at
/// once; the horizon is the lesser sum of the times) in CPLEX's LP format. Times should be near 1.
std::string core_program(const CoreProblem& problem);

bool has_cbc();

/// COIN-OR CBC's optimum of the program, without a gap. `seconds` is how long it may take, 0: as
/// long as it wants; nullopt where that ran out.
std::optional<double> solve_core_program(const CoreProblem& problem, const std::string& name,
                                         int seconds = 0);

/// The same with what is found when the time is out: a schedule that CBC has, and whether it is
/// proven.
struct ProgramAnswer {
  std::optional<double> makespan;
  bool proven = false;
};
ProgramAnswer answer_of_core_program(const CoreProblem& problem, const std::string& name,
                                     int seconds);

}  // namespace braid
