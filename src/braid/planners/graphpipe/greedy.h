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

/// What no order of the stages' passes can beat: a stage's passes one after another, the shortest
/// way of the first micro-batch to it and of the last one's gradients from it, by the plan's own
/// times. Cost: linear in stages and edges.
double any_order_bound_s(const Plan& plan);

}  // namespace braid
