#pragma once

#include <cstdint>
#include <vector>

#include "braid/system/system.h"

namespace braid {

/// Share of a unit's bandwidth at `level` that one flow to one other unit can use: all of it
/// through a switch or dragonfly, one of the links of a full mesh, ring or torus (to each neighbour
/// one).
double link_fraction(const NetworkLevel& level);

/// Share of a unit's bandwidth at `level` that a collective of `members` of its units can use at
/// once: of a full mesh the links among the members; of a ring both directions when it is closed,
/// else one; of a torus the same for each dimension that the members reach, filling one dimension
/// after the other. In (0, 1].
double group_fraction(const NetworkLevel& level, double members);

/// What the busiest link across the middle carries, in each direction, when each of `members` units
/// sends one byte in all, in equal parts to every member: d/8 for closed rings of d along the
/// longest dimension that the members reach (half of the bytes cross, over two cuts), d/4 when it
/// is open. 0 where every unit has its own way to every other.
double bisection_load(const NetworkLevel& level, double members);

/// `units` as a product of `dimensions` sizes, ascending and as near to each other as going from
/// the smallest up allows: 64 in three dimensions is 4 x 4 x 4, 8960 is 16 x 20 x 28, 7 is 1 x 1
/// x 7. Cost: units^(1/2) at most.
std::vector<std::int64_t> torus_shape(std::int64_t units, std::size_t dimensions);

}  // namespace braid
