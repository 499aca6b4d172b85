#include "braid/schedule/plan_graph.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/totals.h"
#include "braid/schedule/pipeline.h"

namespace braid {
namespace {

/// What a stage's chunk takes; its device's common costs are its first chunk's.
StageCost cost_of(const Plan& plan, std::size_t stage, std::size_t chunk, const StageLoad& load,
                  bool weights_apart) {
  const ChunkLoad& passes = load.chunks.at(chunk);
  const ChunkTotals totals = totals_of(plan.profile, plan.stages[stage].chunks[chunk]);
  StageCost cost;
  cost.forward_s = passes.forward_s();
  cost.weight_gradient_s = passes.backward_weight.total_s();
  cost.input_gradient_s = passes.backward_s() - cost.weight_gradient_s;
  if (weights_apart) cost.input_gradient_s += passes.hidden_tp_s;
  cost.stash_bytes = totals.stash_bytes - totals.offloaded_bytes;
  cost.weight_stash_bytes = cost.stash_bytes;
  cost.offloaded_bytes = totals.offloaded_bytes;
  if (chunk > 0) return cost;
  cost.optimizer_s = load.sync.optimizer_s;
  cost.reduce_gradients_s =
      std::max(0.0, tail_s(load.sync, passes.backward_s()) - cost.optimizer_s);
  cost.parameters_s = parameters_ready_s(load.sync, cost.forward_s);
  return cost;
}

}  // namespace

TimedGraph timed_graph_of(const Plan& plan, const PlanGraphForm& form) {
  if (plan.stages.empty()) throw Error("the plan has no stages");
  const std::size_t stages = plan.stages.size();
  const std::size_t chunks = plan.stages.front().chunks.size();
  const std::vector<StageLoad> loads = stage_loads(plan);
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  const auto in_turn = [&](std::size_t chunk, std::size_t stage) {
    return form.folded && chunk % 2 == 1 ? stages - 1 - stage : stage;
  };
  TimedGraph timed;
  timed.graph.batch = plan.global_batch;
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t i = 0; i < stages; ++i) {
      const std::size_t s = in_turn(c, i);
      const Parallelism parallel = form_of(plan, s);
      timed.graph.stages.push_back(
          {static_cast<std::int32_t>(s), std::int64_t{1} * parallel.dp * parallel.micro_batch});
      timed.costs.push_back(cost_of(plan, s, c, loads[s], form.weights_apart));
      if (c == 0) timed.costs.back().fixed_bytes = memory[s].device_total() - memory[s].activations;
    }
  }
  const auto place = [&](std::int32_t stage, std::int32_t chunk) {
    return static_cast<std::int32_t>(at(chunk) * stages + in_turn(at(chunk), at(stage)));
  };
  for (const EdgeLoad& load : edge_loads(plan)) {
    const StageEdge edge{place(load.edge.source_stage, load.edge.source_chunk),
                         place(load.edge.target_stage, load.edge.target_chunk)};
    const auto source = static_cast<double>(timed.graph.stages[at(edge.source)].micro_batch);
    const auto target = static_cast<double>(timed.graph.stages[at(edge.target)].micro_batch);
    const double back_s = load.backward_transfer_s < 0 ? load.transfer_s : load.backward_transfer_s;
    const double part = std::min(source, target);
    timed.graph.edges.push_back(edge);
    timed.transfer_s.push_back(
        std::max(load.transfer_s * (part / source), back_s * (part / target)));
  }
  check_stage_graph(timed.graph);
  return timed;
}

Plan folded_plan(Plan plan) {
  assert(is_uniform(plan));
  const std::size_t stages = plan.stages.size();
  for (std::size_t s = 0; s < stages - 1 - s; ++s) {
    assert(plan.stages[s].chunks.size() == 2);
    std::swap(plan.stages[s].chunks[1], plan.stages[stages - 1 - s].chunks[1]);
  }
  return plan;
}

}  // namespace braid
