#pragma once

#include "braid/planners/piper/search.h"

namespace braid {

/// Solves a checked problem whose stages' data-parallel degrees sum to exactly `micro_batches`
/// (PiperSum::exact), with the exact knapsack. Unlike with at most as many, less of them is not
/// always better for the layers before: for every suffix and every sum the fewest devices that keep
/// a threshold are kept, and the threshold is bisected as solve_piper does. Throws Error when that
/// table or the work for one threshold is too large. Cost of one threshold: a step for each pair of
/// suffixes, one inside the other, pair of degrees and sum.
PiperSolution solve_exact_sum(const PiperProblem& problem, const PiperSearchLimits& limits = {});

}  // namespace braid
