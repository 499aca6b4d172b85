#include "braid/planners/graphpipe/greedy.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

#include "braid/base/index.h"
#include "braid/planners/graphpipe/warm_ups.h"
#include "braid/schedule/greedy_order.h"
#include "braid/schedule/plan_graph.h"
#include "braid/schedule/plan_orders.h"

namespace braid {

std::optional<Plan> greedy_plan(Plan plan, std::int64_t& work) {
  std::int64_t passes = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    assert(plan.stages[s].own.has_value());
    plan.stages[s].own->warm_up.reset();
    plan.stages[s].own->passes.clear();
    passes += 2 * form_of(plan, s).num_micro_batches;
  }
  if (passes > work) return std::nullopt;
  const TimedGraph timed = timed_graph_of(plan);
  WarmUps room = room_of(plan);
  // Stages are in topological order, and so are their edges' sources.
  for (std::size_t s = 0; s < room.size(); ++s) {
    for (const StageEdge& edge : timed.graph.edges) {
      if (at(edge.source) != s) continue;
      std::int64_t& next = room[at(edge.target)];
      next = std::min(next, room[s]);
    }
  }
  const std::optional<WorkOrder> order = greedy_order(timed, {room, &work});
  if (!order) return std::nullopt;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].own->passes = runs_of(order->devices[s]);
  }
  return plan;
}

}  // namespace braid
