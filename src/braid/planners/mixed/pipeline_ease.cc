#include "braid/planners/mixed/pipeline_ease.h"

#include <bit>
#include <tuple>
#include <vector>

#include "braid/plan/trainer_fit.h"

namespace braid {
namespace {

auto key_of(const Configuration& config) {
  return std::tie(config.tp, config.cp, config.ep, config.dp, config.micro_batch,
                  config.sequence_parallel, config.sharding, config.recompute, config.zero,
                  config.offload_optimizer, config.offload_weights, config.offload_activations);
}

}  // namespace

Ease ease_of(std::span<const PlacedStage> stages, std::int64_t seq_len) {
  Ease ease;
  unsigned dimensions = 0;
  std::vector<std::int32_t> counts;
  for (const PlacedStage& stage : stages) {
    Configuration config = stage.config;
    config.pp = static_cast<std::int32_t>(stages.size());
    config.vp = 1;
    const bool differs = key_of(config) != key_of(stages.front().config);
    const Ease own = ease_of(config, differs || config.sharding != ShardingKind::manual, seq_len);
    dimensions |= parallel_dimensions(config);
    ease.offload = ease.offload || own.offload;
    ease.own_layout = ease.own_layout || own.own_layout;
    ease.extreme = ease.extreme || own.extreme;
    counts.push_back(stage.end - stage.begin);
  }
  ease.dimensions = std::popcount(dimensions);
  ease.own_layout = ease.own_layout || (counts.size() > 1 && !is_dealt_evenly(counts));
  return ease;
}

}  // namespace braid
