#pragma once

#include "braid/chip/systolic/loop_nest.h"
#include "braid/chip/systolic/systolic_core.h"

namespace braid {

/// Words that must cross into and out of a buffer of `words`, whatever the order of the
/// multiplications: each operand once; and of plain products 2mnk/√words + mn (Kwasniewski et al.,
/// "Red-Blue Pebbling Revisited", SC 2019, theorem 2). Windows share words between multiplications,
/// so only the first holds for them.
double least_words(const LoopNest& nest, double words);

/// Fewest words of any tiling of one level by tiles of whole elements in any order of loops, as
/// Orojenesis has them (Huang et al., "Mind the Gap", ISCA 2024): tiles of all three operands in a
/// buffer of `words`. Infinite where no tile of one element fits. At least least_words(). About
/// 6·√(m + n + k) steps.
double least_tiled_words(const LoopNest& nest, double words);

/// Cycles that no mapping stays below: multiplications over units, words over rates of every level
/// for the whole of its buffers, all cores' L2 together.
double least_cycles(const LoopNest& nest, const SystolicMachine& machine);

}  // namespace braid
