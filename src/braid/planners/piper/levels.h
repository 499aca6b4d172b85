#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "braid/planners/piper/search.h"

namespace braid {

/// Most downsets of a layer graph that solve_piper_levels() takes.
constexpr std::size_t kMostPiperLevelDownsets = 1500;

/// Solves a checked problem on a hierarchical network (Tarnawski et al. 2021, Appendix E, with
/// precise memory and tensor parallelism) exactly.
///
/// Level l joins K_l devices of the level below; the lowest, l = 1, joins accelerators. On level l
/// a contiguous set of layers is cut into superstages, each replicated on d of the K_l devices,
/// until on level 1 they are stages with tensor-parallel degrees and options. A stage's replicas
/// are the product of the degrees d down to it. With P the product above a (super)stage, what may
/// not exceed the time per sample is
///   on level 1:  share(P·d)·(Σ time + border bytes / B_1) + sync(P·d, d)·Σ parameter_bytes / B_1
///   above:       (share(P·d)·border bytes + sync(P·d, d)·Σ piper_weight_bytes) / B_l
/// where re-layouts cross the border on level 1 only. Σ d of all replicas is at most
/// micro_batches, and a stage holds ⌈s / replicas⌉ micro-batches, s being the replicas of this
/// stage and all later ones.
///
/// Whether a threshold can be kept: for a set of layers in one device of level l+1, with b
/// micro-batches in flight behind it and P copies of it in all, what counts is the least sum of
/// replicas, less being never worse for the layers before. It follows from the undominated pairs
/// of devices used and sum for each suffix of the set, to which a superstage of degree d adds d and
/// d times the least sum of its own layers on level l-1, behind ⌈(b + sum) / d⌉. The least
/// threshold is found as solve_piper() does.
///
/// Throws Error for more downsets than the limit, the heuristic knapsack and PiperSum::exact.
PiperSolution solve_piper_levels(const PiperProblem& problem, const PiperSearchLimits& limits);

/// Any stages that fit, however slow; nullopt when there are none.
std::optional<std::vector<PiperStage>> feasible_level_stages(const PiperProblem& problem,
                                                             const PiperSearchLimits& limits);

}  // namespace braid
