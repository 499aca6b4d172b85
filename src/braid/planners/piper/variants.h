#pragma once

#include <array>
#include <string_view>

#include "braid/planners/piper/search.h"

namespace braid {

/// A planner on piper problems: Piper, or one whose space is part of Piper's.
using PiperSolve = PiperSolution (*)(const PiperProblem& problem, const PiperSearchLimits& limits);

/// Piper with what a planner leaves out of its space, or a planner that goes its own way through
/// it.
struct PiperVariant {
  std::string_view name;
  std::string_view description;
  PiperSolve search;  ///< solve_piper, solve_equi or solve_pipedream.
  // What may be used:
  bool dp = true, tp = true;  ///< Degrees above one.
  bool recompute = true;      ///< Options that recompute.
  bool cuts = true;           ///< More than one stage.
  /// Whether it is Piper's search, with less to choose from perhaps. The others take the network as
  /// flat, and data-parallel degrees that sum to at most the micro-batches.
  bool is_piper = true;

  /// The problem with what it leaves out left out; layers may end up without options.
  PiperProblem restrict(PiperProblem problem) const;
  /// Its search on the restricted problem. Stages' options are numbered as in the full one.
  PiperSolution solve(const PiperProblem& problem, const PiperSearchLimits& limits) const;
};

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

inline constexpr std::array kPiperVariants = {
    PiperVariant{.name = "piper",
                 .description = "least time per sample over cuts of the layer graph (Piper)",
                 .search = solve_piper},
    PiperVariant{.name = "no-dp",
                 .description = "piper without data parallelism",
                 .search = solve_piper,
                 .dp = false},
    PiperVariant{.name = "no-tp",
                 .description = "piper without tensor parallelism",
                 .search = solve_piper,
                 .tp = false},
    PiperVariant{.name = "no-ar",
                 .description = "piper without activation recomputation",
                 .search = solve_piper,
                 .recompute = false},
    PiperVariant{.name = "equi",
                 .description = "equal stages (PipeDream-2BW), with tensor parallelism",
                 .search = solve_equi,
                 .is_piper = false},
    PiperVariant{.name = "equi-no-tp",
                 .description = "equal stages (PipeDream-2BW)",
                 .search = solve_equi,
                 .tp = false,
                 .is_piper = false},
    PiperVariant{.name = "pipedream",
                 .description = "PipeDream's recurrence on the layers as a chain",
                 .search = solve_pipedream,
                 .tp = false,
                 .recompute = false,
                 .is_piper = false},
    PiperVariant{.name = "dp-only",
                 .description = "one stage, data parallelism",
                 .search = solve_piper,
                 .tp = false,
                 .cuts = false},
    PiperVariant{.name = "tp-only",
                 .description = "one stage, tensor parallelism",
                 .search = solve_piper,
                 .dp = false,
                 .cuts = false},
};
/// Throws Error with the known names.
const PiperVariant& find_piper_variant(std::string_view name);

/// Why a (restricted) problem is infeasible for solve_piper, solve_equi or solve_pipedream: a layer
/// that fits nowhere, or the least memory that would do and the stage that needs it; fills in
/// reason and needed_bytes, both with `beside_bytes`, which every device needs beside its stages
/// and the problem's memory leaves out. Cost: some tens of feasibility checks.
void explain_infeasible(const PiperProblem& problem, PiperSolve solve,
                        const PiperSearchLimits& limits, PiperSolution& solution,
                        double beside_bytes = 0);

}  // namespace braid
