#include "braid/schedule/in_flight.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
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

LeastWarmUps::LeastWarmUps(const TimedGraph& timed)
    : timed_(timed), warm_ups_(timed.graph.stages.size(), 0), chosen_(timed.graph.stages.size()) {
  assert(timed.graph.rounds == 1);
}

double LeastWarmUps::choose(std::size_t stage, std::int64_t k) {
  const auto number = static_cast<std::int32_t>(stage);
  const std::int64_t count = timed_.graph.micro_batches(stage);
  SubPipeline after(timed_, stage, chosen_);
  const auto end_s = [&](std::int64_t warm_up) {
    chosen_[stage] = k_f_k_b_passes(number, count, k, warm_up);
    work_ += after.passes();
    return after.end_s(chosen_[stage]);
  };
  // All forward passes first is the order that finishes earliest. More of them before each backward
  // pass never let the stage finish later, so that the fewest are found by halving.
  const double best_s = end_s(count);
  const std::int64_t enough = first_where(std::min(k, count), count, [&](std::int64_t warm_up) {
    return end_s(warm_up) <= best_s * kAboveRounding;
  });
  chosen_[stage] = k_f_k_b_passes(number, count, k, enough);
  warm_ups_[stage] = enough;
  return best_s;
}

std::vector<std::int64_t> least_warm_ups(const TimedGraph& timed, std::span<const std::int64_t> k) {
  assert(k.size() == timed.graph.stages.size());
  std::vector<std::size_t> order = topological_stages(depths_of(timed.graph));
  std::reverse(order.begin(), order.end());
  LeastWarmUps least(timed);
  for (const std::size_t s : order) least.choose(s, k[s]);
  return least.warm_ups();
}

}  // namespace braid
