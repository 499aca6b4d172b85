#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/run/instructions.h"

namespace braid {

/// What a run of all ranks' instructions comes to, with nothing computed.
struct DryRun {
  /// [part][as StagePart::ranks]: micro-batches between their forward and backward pass, at most at
  /// once.
  std::vector<std::vector<std::int64_t>> in_flight;
  std::int64_t messages = 0;  ///< Between different ranks, each of all values of a handover.
};

/// Lets every rank go through its instructions, as far as messages and the other members of its
/// groups let it. Throws Error, with the instruction, when one waits for ever, when a message comes
/// with other samples than are waited for, or when one is never received. Linear in instructions.
DryRun dry_run(const StagedModel& staged, std::span<const ParameterGroup> groups,
               std::span<const std::vector<Instruction>> ranks);

}  // namespace braid
