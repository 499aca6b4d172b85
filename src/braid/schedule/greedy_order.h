#pragma once

#include "braid/schedule/order_timing.h"

namespace braid {

/// The greedy schedule (Jeon 2024, §3.10.1, Algorithm 4): stage by stage from the sinks, each runs
/// a backward pass next whenever it can still finish as early as any order of its passes could,
/// given the schedules of the stages after it and all its inputs at time 0; else a forward pass.
/// Of the orders with that end each stage's has the fewest micro-batches in flight. That every
/// stage on its own finishes first does not make the whole iteration shortest: a stage that starts
/// its backward passes late holds up those before it (order_search.h).
/// One stage per device, one round; any graph and sizes. Throws Error naming the stage otherwise.
/// Cost: for each stage, twice as many timings of the stages after it as it has micro-batches.
WorkOrder greedy_order(const TimedGraph& timed);

}  // namespace braid
