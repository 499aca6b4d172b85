#pragma once

#include <utility>

#include "braid/plan/ease.h"
#include "braid/planners/job/job.h"

namespace braid {

/// A part of the space that the planner braid looks through by itself.
struct SpacePart : SpaceOptions {
  SpacePart() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a space is a part of itself.
  SpacePart(SpaceOptions space) : SpaceOptions(std::move(space)) {}

  int most_dimensions = kPlanDimensions;  ///< Of tp, cp, ep and pp, so many above 1.
};

}  // namespace braid
