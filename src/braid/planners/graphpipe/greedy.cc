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
#include "braid/schedule/plan_pipeline.h"

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

double any_order_bound_s(const Plan& plan) {
  const Pipeline pipeline = pipeline_to_time(plan).pipeline;
  assert(pipeline.vp == 1);
  const std::size_t stages = plan.stages.size();
  std::vector<double> there_s(stages, 0), back_s(stages, 0);
  double bound_s = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    for (const Transfer& transfer : pipeline.transfers) {
      if (at(transfer.target) != s) continue;
      const std::size_t from = at(transfer.source);
      there_s[s] = std::max(there_s[s], there_s[from] + pipeline.forward_s[from] + transfer.time_s);
      back_s[s] = std::max(back_s[s], transfer.back_s() + pipeline.backward_s[from] + back_s[from]);
    }
    back_s[s] = std::max(back_s[s], tail_s(pipeline.sync[s], pipeline.backward_s[s]));
    const double passes_s = static_cast<double>(pipeline.micro_batches_of(s)) *
                            (pipeline.forward_s[s] + pipeline.backward_s[s]);
    bound_s = std::max(bound_s, there_s[s] + passes_s + back_s[s]);
  }
  return bound_s;
}

}  // namespace braid
