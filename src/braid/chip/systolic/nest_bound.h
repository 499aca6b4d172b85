#pragma once

#include "braid/chip/systolic/loop_nest.h"
#include "braid/chip/systolic/systolic_core.h"

namespace braid {

/// Words that must cross into and out of a buffer of S = `words`, whatever the order of the
/// multiplications: each operand once; and of GEMMs 2·macs/√S − 2S (Smith et
/// al., "A Tight I/O Lower Bound for Matrix Multiplication", arXiv:1702.02017). For between any 2S
/// words that come in, or sums that begin, at most 3S are at hand, and with a + b + c = 3S of the
/// three operands at most √(abc) ≤ S^1.5 multiplications (Loomis and Whitney); each sum that begins
/// is written once. Windows share words between multiplications, so only the first holds for them.
double least_words(const LoopNest& nest, double words);

/// Cycles that no mapping whose operands pass through the buffers stays below, tiled or not: passes
/// of the array with whole folds, dealt out evenly; words over rates of every level for the whole
/// of its buffers: what units hold, all cores' L2 together, the global buffer.
double least_cycles(const LoopNest& nest, const SystolicMachine& machine);

}  // namespace braid
