#pragma once

#include <cstdint>
#include <vector>

#include "braid/system/group_span.h"

namespace braid {

/// Devices in a unit of each level of a homogeneous system, innermost first. The outermost has them
/// all.
std::vector<std::int64_t> unit_devices(const System& system);

/// The span of a group of `size` devices `stride` apart that lies inside a unit of each level or
/// starts at the edge of one. Where it fills no whole number of units the last counts as filled.
/// Cost: linear in the levels.
GroupSpan aligned_span(const System& system, std::int64_t stride, std::int64_t size);

}  // namespace braid
