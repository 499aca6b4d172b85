#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "braid/schedule/order_timing.h"

namespace braid {

/// What bounds greedy_order.
struct GreedyLimits {
  /// [stage]: micro-batches in flight at most, at least 1; empty: all of them.
  std::span<const std::int64_t> in_flight = {};
  /// Passes that may still be timed, each counted again in every timing: lowered by those that are,
  /// below 0 when they run out. Null: any number.
  std::int64_t* work = nullptr;
};

/// The greedy schedule (Jeon 2024, §3.10.1, Algorithm 4): stage by stage from the sinks, each runs
/// a backward pass next whenever it can still finish as early as any order of its passes within its
/// limit could, given the schedules of the stages after it and all its inputs at time 0; else a
/// forward pass. Of the orders with that end each stage's has the fewest micro-batches in flight.
/// That every stage on its own finishes first does not make the whole iteration shortest: a stage
/// that starts its backward passes late holds up those before it (order_search.h).
///
/// Whether a backward pass can be next is asked for whole ranges at once: more forward passes
/// before a backward pass never let the stage finish later, so that the greedy order starts with as
/// many as it needs and then keeps one fewer in flight from some backward pass on, again and again,
/// each the first from which that loses no time.
///
/// One stage per device, one round; any graph and sizes. Throws Error naming the stage otherwise,
/// or when it may hold fewer micro-batches than the stages after it wait for. Nullopt when that
/// takes more work than allowed. Cost: for each stage, timings of the stages after it, log m for
/// each number of micro-batches in flight that its order comes down to.
std::optional<WorkOrder> greedy_order(const TimedGraph& timed, const GreedyLimits& limits);

/// The same without limits.
WorkOrder greedy_order(const TimedGraph& timed);

}  // namespace braid
