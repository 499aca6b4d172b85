#include "papers/amp/strategies.h"

#include <algorithm>
#include <numeric>

#include "braid/planners/amp/assignment.h"

namespace braid {

std::vector<AmpStrategy> amp_degrees(const AmpModel& model, const AmpCluster& cluster,
                                     std::int64_t global_batch) {
  std::vector<std::int32_t> node_devices(cluster.node_bytes_per_s.size(), 0);
  for (const std::int32_t node : cluster.node) ++node_devices[static_cast<std::size_t>(node)];
  std::vector<AmpStrategy> found;
  for (const std::int32_t tp : model.degrees) {
    if (!std::all_of(node_devices.begin(), node_devices.end(),
                     [&](std::int32_t devices) { return devices % tp == 0; })) {
      continue;
    }
    const std::int32_t groups = cluster.devices() / tp;
    for (std::int32_t dp = 1; dp <= groups; ++dp) {
      const std::int32_t pp = groups / dp;
      if (groups % dp != 0 || global_batch % dp != 0 ||
          static_cast<std::size_t>(pp) > model.layers.size()) {
        continue;
      }
      const std::int64_t samples = global_batch / dp;
      for (std::int64_t micro_batch = 1; micro_batch <= samples; ++micro_batch) {
        if (samples % micro_batch != 0) continue;
        found.push_back({pp, dp, tp, static_cast<std::int32_t>(micro_batch), {}});
      }
    }
  }
  return found;
}

std::vector<std::int32_t> rank_order(const AmpCluster& cluster) {
  std::vector<std::int32_t> device(cluster.node.size());
  std::iota(device.begin(), device.end(), 0);
  return device;
}

std::optional<AmpChoice> amp_evaluate(const AmpModel& model, const AmpCluster& cluster,
                                      const AmpStrategy& strategy, std::int64_t global_batch,
                                      const AmpRules& rules) {
  const AmpPipeline pipeline = amp_pipeline(model, cluster, strategy, global_batch, rules);
  auto assignment = assign_layers(pipeline.chain);
  if (!assignment.has_value()) return std::nullopt;
  AmpChoice choice;
  choice.strategy = strategy;
  choice.ends = std::move(assignment->ends);
  choice.cost_s = assignment->pipeline_s + amp_sync_s(model, cluster, strategy, choice.ends, rules);
  return choice;
}

std::vector<AmpChoice> amp_search(const AmpModel& model, const AmpCluster& cluster,
                                  std::int64_t global_batch, const AmpRules& rules) {
  std::vector<AmpChoice> found;
  for (AmpStrategy& strategy : amp_degrees(model, cluster, global_batch)) {
    strategy.device = rank_order(cluster);
    auto choice = amp_evaluate(model, cluster, strategy, global_batch, rules);
    if (choice.has_value()) found.push_back(std::move(*choice));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const AmpChoice& a, const AmpChoice& b) { return a.cost_s < b.cost_s; });
  return found;
}

}  // namespace braid
