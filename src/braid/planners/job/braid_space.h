#pragma once

#include <cstdint>
#include <utility>

#include "braid/planners/job/job.h"

namespace braid {

/// Which plan of its space the planner braid puts first.
enum class Preference : std::uint8_t {
  fastest,
  easiest,  ///< That is nearly as fast: the rule is in plan/ease.h.
};

/// What the planner braid is told, on systems of one kind and of several.
struct BraidSpace : SpaceOptions {
  BraidSpace() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a space is one, whose fastest plan is asked for.
  BraidSpace(SpaceOptions space, Preference preferred = Preference::fastest)
      : SpaceOptions(std::move(space)), preference(preferred) {}

  Preference preference = Preference::fastest;
};

}  // namespace braid
