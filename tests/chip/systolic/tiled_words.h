#pragma once

#include "braid/chip/systolic/loop_nest.h"

namespace braid::test {

/// Fewest words of any tiling of one level by tiles of whole elements in any order of loops, as
/// Orojenesis has them (Huang et al., "Mind the Gap", ISCA 2024): tiles of all three operands in a
/// buffer of `words`, of an operand with a window whole positions, halos moved again. Infinite
/// where no tile of one element fits. At least least_words(). About √m + √n + √k steps, with a
/// window as many as their products.
double least_tiled_words(const LoopNest& nest, double words);

}  // namespace braid::test
