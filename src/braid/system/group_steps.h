#pragma once

#include <cstddef>

#include "braid/system/group_span.h"
#include "braid/system/level_exchange.h"

namespace braid {

constexpr std::size_t kMostLevels = 8;

/// The levels over which a group's members talk, innermost first; those that it does not cross are
/// left out.
struct GroupSteps {
  LevelStep step[kMostLevels];
  std::size_t count = 0;
  double size = 1;  ///< Devices of the group.
};

GroupSteps steps_of(const GroupSpan& span, const System& system);

/// What a unit can send into `level`, all of its devices together.
double unit_bandwidth(const NetworkLevel& level);

}  // namespace braid
