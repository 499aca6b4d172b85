#pragma once

#include <cstdint>

#include "braid/system/collective.h"

namespace braid {

/// Expected units that hold one of `chosen` different targets, all equally likely, where `units`
/// hold `targets` evenly. `chosen` is at most `targets`. Cost: linear in `chosen`.
double units_reached(double units, double targets, std::int64_t chosen);

/// Time to send `bytes` of tokens that each device holds, every token to `chosen` of `targets` that
/// lie evenly on the group's devices, all equally likely. A token crosses each level once for every
/// unit below it that has one of its targets, and is copied on inside (DeepSeek-V3 report 2024,
/// section 3.2.2). The way back, where copies are summed on the same path, takes as long. Zero for
/// groups of one device. `chosen` is at most `targets`. Cost: linear in `chosen` and the levels.
CollectiveTime dispatch_time(double bytes, std::int64_t targets, std::int64_t chosen,
                             const GroupSpan& span, const System& system);

}  // namespace braid
