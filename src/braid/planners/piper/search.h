#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "braid/planners/piper/problem.h"
#include "braid/search/downset_lattice.h"
#include "braid/search/progress.h"

namespace braid {

struct PiperSearchLimits {
  std::size_t downsets = 200'000;  ///< Of the layer graph; more are an Error.
  std::int64_t work = 0;           ///< Stages examined before giving up; 0: no limit.
  Progress progress = {};          ///< Told of each threshold tried; may be empty.
};

/// Solves a checked problem exactly: no solution's slowest stage is faster than the result's by
/// more than rounding (a relative 1e-11), as long as the status says optimal. With the heuristic
/// knapsack this holds among the solutions that the heuristic can see.
///
/// Whether all stages can keep a threshold is decided over the suffixes of the layer graph, from
/// the empty one up. What counts of a suffix's stages is only how many devices they take and the
/// sum of their data-parallel degrees: fewer is better for all that comes before, so the
/// undominated pairs are kept, and for each stage, tensor degree and pair the least data-parallel
/// degree that keeps time and memory. The least threshold that can be kept is one of the stages'
/// times; it is found by bisection, which every solution found shortens to its slowest stage, and
/// proven by failing just below.
///
/// Throws Error when the graph has more downsets than allowed. Cost of one threshold: a few steps
/// for each pair of suffixes, one inside the other, and undominated pair of numbers.
PiperSolution solve_piper(const PiperProblem& problem, const PiperSearchLimits& limits = {});

/// Has every layer an option that so many devices can run?
bool has_options(const PiperProblem& problem);

/// The downsets of the problem's layer graph; only the empty and the whole one when it is not to be
/// cut. Throws Error when there are more than allowed.
DownsetLattice piper_prefixes(const PiperProblem& problem, const PiperSearchLimits& limits);
/// Those that some topological orders pass through.
DownsetLattice piper_order_prefixes(const PiperProblem& problem);

/// Any stages that fit, however slow; nullopt when there are none.
std::optional<std::vector<PiperStage>> feasible_stages(const PiperProblem& problem,
                                                       const PiperSearchLimits& limits = {});
/// The same among piper_order_prefixes() alone, where a flat problem has many more: sooner, but
/// nullopt says nothing.
std::optional<std::vector<PiperStage>> feasible_stages_soon(const PiperProblem& problem,
                                                            const PiperSearchLimits& limits = {});

}  // namespace braid
