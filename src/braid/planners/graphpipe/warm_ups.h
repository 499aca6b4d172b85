#pragma once

#include <cstdint>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// Forward passes before the first backward pass, [stage] each.
using WarmUps = std::vector<std::int64_t>;

/// Micro-batches of each stage of a 1F1B plan with nothing on the host that its devices have room
/// for; 1 where they have for none.
WarmUps room_of(Plan plan);

/// Warm-ups for a 1F1B plan of one micro-batch size with nothing on the host: by the plan's own
/// times the fewest micro-batches in flight that lose no time at its rate (least_in_flight in
/// planners/graphpipe/in_flight.h), which is that of its slowest stage or link. Where a device has
/// no room for them as many as it has room for, at least one, and no more in any stage behind, so
/// that none waits for ever. Cost: stages times edges.
WarmUps rate_keeping_warm_ups(const Plan& plan);

/// By the plan's own times the fewest with which each stage ends as early as it could with those
/// behind it (least_warm_ups in in_flight.h), within the same room: slow links may ask for more
/// than keeps the rate. Cost: for each stage log m timings of the stages after it.
WarmUps time_keeping_warm_ups(const Plan& plan);

/// As few in each stage as lose no time: from the sinks, each stage's count, at least that of those
/// behind it, is halved as long as the plan's iteration by simulation takes no longer. The plan has
/// warm-ups that never make a stage wait for ever. Cost: for each stage as many simulations as its
/// count can be halved.
WarmUps fewest_warm_ups(const Plan& plan);

void set_warm_ups(Plan& plan, const WarmUps& warm_ups);

}  // namespace braid
