#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

/// Time of an iteration by Phaze (Adnan et al. 2024, §5). With m micro-batches per pipeline, p
/// stages, load = forward + backward of a stage, sync = 4·(d - 1)/d · weights / bandwidth:
enum class PhazeObjective : std::uint8_t {
  /// As Phaze has it: (m + p - 1) · longest load + sync of the first stage. Right when all loads
  /// are equal; else too long, and a small first stage escapes most of the synchronisation.
  program,
  /// Sum of the loads + (m - 1) · longest load + the longest that some stage's synchronisation
  /// lasts beyond the backward passes of the stages before it, which run meanwhile.
  flush,
  /// The exact time of flushed 1F1B.
  simulated
};

std::string_view name_of(PhazeObjective objective);
/// Throws Error naming --objective.
PhazeObjective parse_phaze_objective(std::string_view name);

}  // namespace braid
