#pragma once

#include <random>
#include <string>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/piper/problem.h"

namespace braid {

/// Least time of the slowest stage by trying every partition, degree and option: infinity when
/// nothing fits. Shares nothing with the planner but the types.
double brute_force_time(const PiperProblem& problem);

/// The same for at most k devices and a sum of data-parallel degrees of at most s: [k - 1][s - 1].
std::vector<std::vector<double>> brute_force_table(const PiperProblem& problem);

/// Least time of one stage, the layers in `layers` (bit by bit), with so many micro-batches in
/// flight, over all choices of options within memory: infinity when nothing fits.
double brute_force_stage_time(const PiperProblem& problem, unsigned layers, int tp, std::int64_t dp,
                              double in_flight);

/// Infinity when nothing was found.
inline double time_or_infinity(const PiperSolution& solution) {
  return solution.stages.empty() ? kInfinity : solution.time;
}

struct RandomPiper {
  int most_nodes = 4;
  int most_devices = 5;
  bool whole_numbers = true;  ///< Costs are small integers: many ties, sums without rounding.
  bool recompute_pairs = false;
};
/// A small random DAG of any shape, with several options per layer and often too little memory.
PiperProblem random_piper_problem(std::mt19937_64& random, const RandomPiper& what);

/// The same graph with its layers in another topological order.
PiperProblem relabelled(const PiperProblem& problem, std::mt19937_64& random);

/// Checks a solution against the definition: stages contiguous and in order, every layer once,
/// counts, memory and times. Empty when all is well.
std::string fault_of(const PiperProblem& problem, const PiperSolution& solution);

}  // namespace braid
