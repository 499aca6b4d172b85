#include "braid/planners/mixed/pipeline_ease.h"

#include <bit>
#include <tuple>
#include <vector>

#include "braid/plan/trainer_fit.h"

namespace braid {
namespace {

auto key_of(const Configuration& form) {
  return std::tie(form.tp, form.cp, form.ep, form.dp, form.micro_batch, form.sequence_parallel,
                  form.sharding, form.recompute, form.zero, form.offload_optimizer,
                  form.offload_weights, form.offload_activations);
}

}  // namespace

Ease ease_of(std::span<const PlacedStage> stages, std::int64_t seq_len) {
  Ease ease;
  unsigned dimensions = 0;
  std::vector<std::int32_t> counts;
  for (const PlacedStage& stage : stages) {
    Configuration form = stage.form;
    form.pp = static_cast<std::int32_t>(stages.size());
    form.vp = 1;
    const bool differs = key_of(form) != key_of(stages.front().form);
    const Ease own = ease_of(form, differs || form.sharding != ShardingKind::manual, seq_len);
    dimensions |= divided_dimensions(form);
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
