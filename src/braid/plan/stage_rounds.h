#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// For each of `stages` stages, the number of stages on the longest path from it to a sink, itself
/// included: pp - stage in a chain. Throws Error naming a stage when the edges form a circle.
/// Cost: linear.
std::vector<int> stage_depths(int stages, std::span<const ChunkEdge> edges);

/// Samples that a stage's replicas take in together, micro-batch by micro-batch, and how often.
struct StageRounds {
  std::int64_t samples = 1;  ///< dp · micro-batch.
  std::int64_t count = 1;    ///< Micro-batches of each replica.
  friend bool operator==(const StageRounds&, const StageRounds&) = default;
};

/// Of each stage of a plan. Throws Error naming a stage whose rounds do not make up the global
/// batch.
std::vector<StageRounds> stage_rounds(const Plan& plan);

/// Forward passes that each stage of one chunk runs before its first backward pass, which is also
/// the most micro-batches that it holds. GPipe: all. 1F1B: with g samples a round, let
///   S = g + the largest S of any successor
/// be the samples on the longest way to the end; then ⌈S/g⌉ (Piper's bound, Tarnawski et al. 2021,
/// §3.2; the depth when all rounds are alike), more where rounds do not nest, and at most all.
///
/// How much more: a round of stage u can reach o(u, v) = g_u - gcd(g_u, g_v) samples beyond one of
/// its neighbour v. With a_v = max over predecessors u of a_u + o(u, v), and
///   z_u = max(a_u + (⌈S/g⌉ - 1)·g, max over successors v of z_v + o(v, u)),
/// it is ⌊(z - a)/g⌋ + 1. Then (last sample of a forward pass) + a and (last sample of a backward
/// pass) + z never fall along an order or dependency, and rise where a forward pass follows a
/// backward one: no circle, so nothing waits for ever. Throws Error when the edges form a circle.
/// Cost: linear.
std::vector<std::int64_t> forwards_first(ScheduleKind schedule, std::span<const StageRounds> rounds,
                                         std::span<const ChunkEdge> edges);

/// The same of a plan's stages of one chunk: where a stage has a warm-up or an order of passes of
/// its own, as that has it. These can make stages wait for each other for ever, which timing and
/// verify() find out. Throws Error naming the stage whose count is not of 1 to all of its
/// micro-batches, whose passes are no order of them, or which has such in a plan of GPipe.
std::vector<std::int64_t> forwards_first(const Plan& plan);

/// Most micro-batches that each of these stages holds: as many, but for stages with an order of
/// passes of their own, of which the fullest moment counts. Throws Error as above.
std::vector<std::int64_t> micro_batches_held(const Plan& plan);

/// Why a stage (counted from 0) with a form of its own cannot have its warm-up or order of passes;
/// empty when it can.
std::string own_order_fault(ScheduleKind schedule, std::size_t stage, const StageConfig& own,
                            std::int64_t micro_batches);

}  // namespace braid
