#pragma once

#include <cstdint>
#include <optional>

#include "braid/plan/plan.h"

namespace braid {

/// The plan with the passes of each stage in the greedy order (greedy_order.h) by the plan's own
/// times, within the memory of the stage's devices: a stage has no more in flight than those before
/// it, so that none waits for ever. For plans of one micro-batch size without ZeRO and with nothing
/// on the host. Takes the passes timed from `work`; nullopt when these are too few.
std::optional<Plan> greedy_plan(Plan plan, std::int64_t& work);

}  // namespace braid
