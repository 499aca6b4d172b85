#include "braid/schedule/in_flight.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/sub_pipeline.h"

namespace braid {

std::int64_t table_in_flight(PassGroup stage, PassGroup successor,
                             std::int64_t successor_in_flight) {
  const std::int64_t own = stage.k * stage.micro_batch;
  const std::int64_t next = successor.k * successor.micro_batch;
  const std::int64_t larger = std::max(stage.micro_batch, successor.micro_batch);
  if (own < next) {
    if (own < larger) return successor_in_flight + successor.micro_batch;
    return successor_in_flight + (own == larger ? larger : 2 * larger);
  }
  if (own == next) return successor_in_flight + (own == larger ? own : 2 * larger);
  if (next < larger) return successor_in_flight + own - next + stage.micro_batch;
  if (next == larger) return successor_in_flight + own;
  return successor_in_flight + own - next + 2 * larger;
}

std::vector<std::int64_t> table_in_flight(const StageGraph& graph,
                                          std::span<const std::int64_t> k) {
  assert(k.size() == graph.stages.size());
  const EdgeGroups outgoing = edges_by_source(graph);
  std::vector<std::size_t> order = topological_stages(depths_of(graph));
  std::reverse(order.begin(), order.end());
  std::vector<std::int64_t> in_flight(k.size());
  for (const std::size_t s : order) {
    const PassGroup own{graph.stages[s].micro_batch, k[s]};
    in_flight[s] = own.k * own.micro_batch;
    for (const std::size_t e : outgoing.of(s)) {
      const std::size_t y = at(graph.edges[e].target);
      const PassGroup next{graph.stages[y].micro_batch, k[y]};
      in_flight[s] = std::max(in_flight[s], table_in_flight(own, next, in_flight[y]));
    }
  }
  return in_flight;
}

std::vector<std::int64_t> warm_ups_of(const StageGraph& graph, std::span<const std::int64_t> k,
                                      std::span<const std::int64_t> in_flight) {
  assert(k.size() == graph.stages.size() && in_flight.size() == k.size());
  std::vector<std::int64_t> warm_ups;
  warm_ups.reserve(k.size());
  for (std::size_t s = 0; s < k.size(); ++s) {
    const std::int64_t b = graph.stages[s].micro_batch;
    warm_ups.push_back(
        std::min(std::max((in_flight[s] + b - 1) / b, k[s]), graph.micro_batches(s)));
  }
  return warm_ups;
}

std::vector<std::int64_t> least_warm_ups(const TimedGraph& timed, std::span<const std::int64_t> k) {
  const StageGraph& graph = timed.graph;
  assert(k.size() == graph.stages.size() && graph.rounds == 1);
  std::vector<std::size_t> order = topological_stages(depths_of(graph));
  std::reverse(order.begin(), order.end());
  std::vector<std::int64_t> warm_ups(k.size());
  std::vector<std::vector<Work>> chosen(k.size());
  for (const std::size_t s : order) {
    const auto stage = static_cast<std::int32_t>(s);
    const std::int64_t count = graph.micro_batches(s);
    SubPipeline after(timed, s, chosen);
    const double best_s = after.end_s(k_f_k_b_passes(stage, count, count, count));
    for (std::int64_t warm_up = std::min(k[s], count);; ++warm_up) {
      chosen[s] = k_f_k_b_passes(stage, count, k[s], warm_up);
      warm_ups[s] = warm_up;
      // All forward passes first is the order that finishes earliest, so that this ends there.
      if (warm_up == count || after.end_s(chosen[s]) <= best_s * (1 + 1e-12)) break;
    }
  }
  return warm_ups;
}

}  // namespace braid
