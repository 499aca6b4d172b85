#pragma once

#include <string_view>
#include <vector>

#include "braid/planners/piper/search.h"

namespace braid {

/// A planner on piper problems: Piper, or one whose space is part of Piper's.
using PiperSolve = PiperSolution (*)(const PiperProblem& problem, const PiperSearchLimits& limits);

struct PiperVariant {
  std::string_view name;
  std::string_view description;
  PiperSolve solve;
  /// The problem with what the variant leaves out left out; layers may end up without options.
  PiperProblem (*restrict)(const PiperProblem& problem);
  PiperSolve solve_restricted;  ///< solve_piper, solve_equi or solve_pipedream.
};

/// piper, no-dp, no-tp, no-ar, dp-only, tp-only: solve_piper with less to choose from;
/// equi, equi-no-tp: solve_equi; pipedream: solve_pipedream.
const std::vector<PiperVariant>& piper_variants();
/// Throws Error with the known names.
const PiperVariant& find_piper_variant(std::string_view name);

/// PipeDream-2BW's planner (Narayanan et al. 2021, ICML) as Piper's authors extended it: stages
/// with equally many blocks (later ones have one more when it does not come out even), the same
/// degrees everywhere, recomputation everywhere or nowhere. Blocks are the layers of one kind when
/// they take most of the model's time; the layers before and after go to the first and last stage,
/// or, tried too, to stages of their own. A model without such a kind is cut by number of layers,
/// in depth-first topological order. All such solutions are priced.
PiperSolution solve_equi(const PiperProblem& problem, const PiperSearchLimits& limits);

/// PipeDream (Narayanan et al. 2019, SOSP, §3.1) on the layers in topological order as a chain: the
/// least of
///   max(rest, 2·bytes between / bandwidth, max(Σ time, 2·(m-1)·Σ parameter bytes / bandwidth) / m)
/// over where the last stage begins and its m replicas. No tensor parallelism, no recomputation; it
/// does not look at memory. The result is priced as Piper prices it, and infeasible when it does
/// not fit memory after all.
PiperSolution solve_pipedream(const PiperProblem& problem, const PiperSearchLimits& limits);

/// Why a (restricted) problem is infeasible for solve_piper, solve_equi or solve_pipedream: a layer
/// that fits nowhere, or the least memory that would do and the stage that needs it; fills in
/// reason and needed_bytes. Cost: some tens of feasibility checks.
void explain_infeasible(const PiperProblem& problem, PiperSolve solve,
                        const PiperSearchLimits& limits, PiperSolution& solution);

}  // namespace braid
