#pragma once

#include "braid/schedule/chain_time.h"

namespace braid {

/// Fills in timed.passes_end_s and timed.first_forward_end_s, for two stages of several chunks
/// each.
///
/// Links are one per ordered pair of stages, so with two of them the handover that wraps around to
/// the next chunk shares its link with the gradients. Round r runs forward pass r - s of each stage
/// s and then the backward pass that follows it there, r - 2·vp + s.
void time_interleaved_pair(TimedPasses& timed, ChainWorkspace& workspace);

}  // namespace braid
