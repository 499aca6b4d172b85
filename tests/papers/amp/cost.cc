#include "papers/amp/cost.h"

#include <algorithm>

#include "braid/base/infinity.h"

namespace braid {
namespace {

constexpr double kBackwardPerForward = 2;

/// Time of each layer for one micro-batch on average over the cluster's devices.
std::vector<double> average_times_s(const AmpModel& model, const AmpCluster& cluster,
                                    const AmpStrategy& strategy) {
  std::vector<double> times_s(model.layers.size(), 0);
  for (const std::int32_t type : cluster.type) {
    const std::vector<double>& forward_s = model.forward_at(type, strategy.tp);
    for (std::size_t l = 0; l < times_s.size(); ++l) times_s[l] += forward_s[l];
  }
  for (double& time_s : times_s) time_s /= static_cast<double>(cluster.devices());
  return times_s;
}

/// Of each layer on the slowest of the stage's devices.
std::vector<double> stage_times_s(const AmpModel& model, const AmpCluster& cluster,
                                  const AmpStrategy& strategy, std::int32_t stage) {
  std::vector<double> times_s(model.layers.size(), 0);
  std::int32_t last_type = -1;
  for (std::int32_t rank = 0; rank < strategy.dp * strategy.tp; ++rank) {
    const std::int32_t device = strategy.at(stage, 0, rank);
    const std::int32_t type = cluster.type[static_cast<std::size_t>(device)];
    if (type == last_type) continue;
    last_type = type;
    const std::vector<double>& forward_s = model.forward_at(type, strategy.tp);
    for (std::size_t l = 0; l < times_s.size(); ++l) {
      times_s[l] = std::max(times_s[l], forward_s[l]);
    }
  }
  return times_s;
}

std::vector<double> micro_batch_sums_s(std::vector<double> forward_s, std::int32_t micro_batch) {
  for (double& time_s : forward_s) time_s *= (1 + kBackwardPerForward) * micro_batch;
  return running_sums(forward_s);
}

/// Mean over the replicas of the time per byte from a stage to the next.
double handover_s_per_byte(const AmpCluster& cluster, const AmpStrategy& strategy,
                           std::int32_t stage) {
  double sum = 0;
  for (std::int32_t replica = 0; replica < strategy.dp; ++replica) {
    double slowest = kInfinity;
    for (std::int32_t shard = 0; shard < strategy.tp; ++shard) {
      slowest = std::min(slowest, cluster.link(strategy.at(stage, replica, shard),
                                               strategy.at(stage + 1, replica, shard)));
    }
    sum += 1 / slowest;
  }
  return sum / strategy.dp;
}

}  // namespace

AmpPipeline amp_pipeline(const AmpModel& model, const AmpCluster& cluster,
                         const AmpStrategy& strategy, std::int64_t global_batch,
                         const AmpRules& rules) {
  AmpPipeline pipeline;
  if (rules.average_devices) {
    pipeline.time_before_s.push_back(
        micro_batch_sums_s(average_times_s(model, cluster, strategy), strategy.micro_batch));
  }
  std::vector<double> s_per_byte;
  for (std::int32_t stage = 0; stage < strategy.pp; ++stage) {
    if (!rules.average_devices) {
      pipeline.time_before_s.push_back(
          micro_batch_sums_s(stage_times_s(model, cluster, strategy, stage), strategy.micro_batch));
    }
    if (stage + 1 < strategy.pp)
      s_per_byte.push_back(handover_s_per_byte(cluster, strategy, stage));
  }
  pipeline.chain.micro_batches = strategy.micro_batches(global_batch);
  for (std::int32_t stage = 0; stage < strategy.pp; ++stage) {
    const std::size_t at = rules.average_devices ? 0 : static_cast<std::size_t>(stage);
    pipeline.chain.stages.push_back({pipeline.time_before_s[at], {}});
  }
  pipeline.chain.boundary_s.reserve(s_per_byte.size() * model.layers.size());
  for (std::size_t l = 0; l + 1 < model.layers.size(); ++l) {
    const AmpLayer& layer = model.layers[l];
    const double bytes = layer.output_elements * rules.activation_element_bytes *
                         strategy.micro_batch / (layer.output_split ? strategy.tp : 1);
    for (const double time : s_per_byte) pipeline.chain.boundary_s.push_back(bytes * time);
  }
  return pipeline;
}

double amp_sync_s(const AmpModel& model, const AmpCluster& cluster, const AmpStrategy& strategy,
                  const Ends& ends, const AmpRules& rules) {
  if (strategy.dp == 1) return 0;
  double longest_s = 0;
  std::int32_t begin = 0;
  for (std::int32_t stage = 0; stage < strategy.pp; ++stage) {
    const std::int32_t end = ends[static_cast<std::size_t>(stage)];
    double slowest = kInfinity;
    for (std::int32_t shard = 0; shard < strategy.tp; ++shard) {
      for (std::int32_t replica = 0; replica < strategy.dp; ++replica) {
        slowest =
            std::min(slowest, cluster.link(strategy.at(stage, replica, shard),
                                           strategy.at(stage, (replica + 1) % strategy.dp, shard)));
      }
    }
    const double bytes =
        amp_stage_parameters(model, strategy.tp, begin, end) * rules.gradient_element_bytes;
    longest_s = std::max(longest_s, 2.0 * (strategy.dp - 1) / strategy.dp * bytes / slowest);
    begin = end;
  }
  return longest_s;
}

AmpCost amp_cost(const AmpModel& model, const AmpCluster& cluster, const AmpStrategy& strategy,
                 std::int64_t global_batch, const Ends& ends, const AmpRules& rules) {
  AmpCost cost;
  const AmpPipeline pipeline = amp_pipeline(model, cluster, strategy, global_batch, rules);
  cost.pipeline_s = amp_pipeline_s(pipeline.chain, ends);
  cost.sync_s = amp_sync_s(model, cluster, strategy, ends, rules);
  return cost;
}

}  // namespace braid
