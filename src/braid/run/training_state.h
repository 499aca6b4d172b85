#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "braid/run/checkpoint.h"
#include "braid/run/rank_link.h"
#include "braid/run/stage_math.h"
#include "braid/run/staged_model.h"

namespace braid {

/// What a rank is in a run, for what all ranks do together between iterations.
struct RunningRank {
  std::int32_t rank = 0;
  const StagedModel& staged;
  std::span<const ParameterGroup> groups;
  StageMath& math;
  RankLink& link;
};

/// The training as it is after so many iterations, on rank 0; the others, which all call it, get
/// none. `checkpoint` has the model's name and the settings.
std::optional<Checkpoint> collected(const RunningRank& own, Checkpoint checkpoint);

/// Gives a rank the weights and the optimizer's state of a checkpoint. Throws Error as row_of().
void restore(const RunningRank& own, const Checkpoint& checkpoint);

}  // namespace braid
