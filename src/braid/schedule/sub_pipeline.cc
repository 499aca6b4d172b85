#include "braid/schedule/sub_pipeline.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/schedule/order_run.h"

namespace braid {

SubPipeline::SubPipeline(const TimedGraph& timed, std::size_t stage,
                         std::span<const std::vector<Work>> orders) {
  const StageGraph& graph = timed.graph;
  assert(orders.size() == graph.stages.size());
  const EdgeGroups outgoing = edges_by_source(graph);
  std::vector<std::int32_t> number(graph.stages.size(), -1);  // In the part.
  std::vector<std::size_t> members = {stage};
  number[stage] = 0;
  for (std::size_t next = 0; next < members.size(); ++next) {
    for (const std::size_t e : outgoing.of(members[next])) {
      const auto target = static_cast<std::size_t>(graph.edges[e].target);
      if (number[target] < 0) {
        number[target] = static_cast<std::int32_t>(members.size());
        members.push_back(target);
      }
      part_.graph.edges.push_back({number[members[next]], number[target]});
      part_.transfer_s.push_back(timed.transfer_s[e]);
    }
  }
  part_.graph.batch = graph.batch;
  part_.graph.rounds = graph.rounds;
  part_.graph.stages.reserve(members.size());
  part_.costs.reserve(members.size());
  order_.devices.reserve(members.size());
  for (const std::size_t member : members) {
    // One stage per device: the device of a stage bears its number.
    part_.graph.stages.push_back({number[member], graph.stages[member].micro_batch});
    part_.costs.push_back(timed.costs[member]);
    passes_ += 2 * graph.micro_batches(member);
    order_.devices.push_back(orders[member]);
    for (Work& work : order_.devices.back()) work.stage = number[member];
  }
}

double SubPipeline::end_s(const std::vector<Work>& passes) {
  order_.devices.front() = passes;
  for (Work& work : order_.devices.front()) work.stage = 0;
  const std::vector<DeviceProgress> run = run_order(part_, order_);
  if (stuck_at(order_, run) != nullptr) return kInfinity;
  return std::max(run.front().free_s, run.front().reduced_s);
}

}  // namespace braid
