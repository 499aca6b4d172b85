#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/schedule/chain_time.h"

namespace braid {

/// How many stages are timed at once, as far as the processor goes.
enum class Lanes : std::uint8_t { two, four, eight };
Lanes widest_lanes();  ///< Of this processor.

/// Fills in timed.passes_end_s and timed.first_forward_end_s, for more than two stages or one chunk
/// per stage. `lanes`: widest_lanes() or less; makes no difference to the result.
///
/// Passes are run in waves: rounds in which every stage runs a pass that needs results of earlier
/// rounds alone, so that neighbouring stages are lanes of vectors. Stages that have nothing to do
/// in a round run a pass that takes no time and hands on nothing (its result arrives before time
/// 0).
///
///     GPipe         forward pass k of stage s in round k + s, backward pass k in k + p - 1 - s of
///                   a second sequence
///     1F1B          forward pass k of stage s in round 2k + s, backward pass k in 2k + 2p - 1 - s:
///                   even and odd stages take turns
///     interleaved   forward pass j of stage s (over all its chunks) in round j + s, then
///                   backward pass j in round j + (v + 1)·p - 2 - s
void time_in_waves(TimedPasses& timed, Lanes lanes, ChainWorkspace& workspace);

}  // namespace braid
