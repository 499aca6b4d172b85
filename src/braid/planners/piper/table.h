#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/piper/search.h"

namespace braid {

/// The least time per sample for every number of devices and every sum of data-parallel degrees
/// that may be used (Tarnawski et al. 2021, Figure 2 and §4).
struct PiperTable {
  std::int64_t devices = 0;   ///< K of the problem.
  std::int64_t suffixes = 0;  ///< min(K, N).
  /// [k - 1][s - 1], for at most k devices and at most s; infinity where nothing fits.
  std::vector<double> time;
  bool proven = true;  ///< False when a knapsack was too large to solve exactly.

  double at(std::int64_t k, std::int64_t s) const {
    return time[static_cast<std::size_t>((k - 1) * suffixes + s - 1)];
  }
};

/// Most entries of such a table.
constexpr std::int64_t kMostPiperTableEntries = 20'000'000;

/// The whole table of a checked problem in one run, with the exact knapsack. For each suffix of the
/// layer graph and number of devices the undominated pairs of sum and time are kept; a stage in
/// front of them takes longer the larger the sum behind it, so only those pairs matter whose own
/// time is above the stage's, and the first that is not. Throws Error for tables that are too large
/// and for the heuristic knapsack, of which this does not hold.
PiperTable piper_table(const PiperProblem& problem, const PiperSearchLimits& limits = {});

}  // namespace braid
