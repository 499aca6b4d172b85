#include "braid/schedule/greedy_order.h"

#include <algorithm>
#include <utility>

#include "braid/schedule/graph_orders.h"
#include "braid/schedule/order_form.h"
#include "braid/schedule/sub_pipeline.h"

namespace braid {
namespace {

/// Passes of one stage so far, and how they would go on with a backward pass and then 1F1B.
struct Prefix {
  std::int32_t stage = 0;
  std::int64_t micro_batches = 0;
  std::int64_t forwards = 0, backwards = 0;
  std::vector<Work> passes;

  void add(WorkKind kind) {
    passes.push_back({kind, stage, kind == WorkKind::forward ? forwards++ : backwards++});
  }
  void finish_with_backward() {
    while (backwards < micro_batches) {
      add(WorkKind::backward);
      if (forwards < micro_batches) add(WorkKind::forward);
    }
  }
};

std::vector<Work> greedy_passes(std::int32_t stage, std::int64_t micro_batches,
                                SubPipeline& after) {
  // With all inputs there at once, all forward passes first is the order that ends earliest.
  const double best_s =
      after.end_s(k_f_k_b_passes(stage, micro_batches, micro_batches, micro_batches));
  Prefix prefix{stage, micro_batches, 0, 0, {}};
  prefix.add(WorkKind::forward);
  while (prefix.forwards < micro_batches) {
    bool backward = false;
    if (prefix.backwards < prefix.forwards) {
      Prefix whole = prefix;
      whole.finish_with_backward();
      backward = after.end_s(whole.passes) <= best_s * (1 + 1e-12);
    }
    prefix.add(backward ? WorkKind::backward : WorkKind::forward);
  }
  while (prefix.backwards < micro_batches) prefix.add(WorkKind::backward);
  return std::move(prefix.passes);
}

}  // namespace

WorkOrder greedy_order(const TimedGraph& timed) {
  const StageGraph& graph = timed.graph;
  require_own_devices(graph, "the greedy schedule");
  require_one_round(graph, "the greedy schedule");
  std::vector<std::size_t> stages = topological_stages(depths_of(graph));
  std::reverse(stages.begin(), stages.end());
  std::vector<std::vector<Work>> chosen(stages.size());
  WorkOrder order;
  order.devices.resize(device_count(graph));
  for (const std::size_t s : stages) {
    const auto stage = static_cast<std::int32_t>(s);
    SubPipeline after(timed, s, chosen);
    chosen[s] = greedy_passes(stage, graph.micro_batches(s), after);
    std::vector<Work>& device = order.devices[static_cast<std::size_t>(graph.stages[s].device)];
    device = chosen[s];
    append_update(device, stage);
  }
  return order;
}

}  // namespace braid
