#include "braid/planners/uniform/easiest_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/trainer_fit.h"
#include "braid/profile/layer_options.h"

namespace braid {
namespace {

bool has_own_layers(const ChainJob& chain, const Ends& ends) {
  if (ends.size() < 2) return false;
  std::vector<std::int32_t> counts(ends.begin(), ends.end());
  std::adjacent_difference(ends.begin(), ends.end(), counts.begin());
  return !is_dealt_evenly(counts) ||
         counts !=
             layers_of_chunks(ends.back(), static_cast<std::int32_t>(ends.size()), chain.heavy_end);
}

std::int64_t seq_len_of(const ChainJob& chain) { return chain.layers->layers().seq_len; }

Degrees at_most(const Degrees& degrees, int most) {
  return Degrees(degrees.list(), std::min(degrees.limit(), most));
}

}  // namespace

Ease ease_of(const ChainJob& chain, const FoundPlan& found) {
  const Configuration& configuration = found.configuration;
  const bool own_layout = configuration.order != AxisOrder::pipeline_outermost ||
                          configuration.sharding != ShardingKind::manual ||
                          has_own_layers(chain, found.ends);
  return ease_of(configuration, own_layout, seq_len_of(chain));
}

SpacePart space_within(const Ease& most, std::int64_t seq_len, const SpaceOptions& space) {
  SpacePart part = space;
  part.top = 1;
  part.allow_offload = space.allow_offload && most.offload;
  part.most_dimensions = most.dimensions;
  if (!most.own_layout) {
    part.can.uneven_stages = part.can.data_outermost = part.can.auto_sharding = false;
  }
  if (!most.extreme) {
    part.vp = at_most(space.vp, kMostUsualChunks);
    part.micro_batch = at_most(space.micro_batch, most_usual_micro_batch(seq_len));
  }
  return part;
}

EasiestPlan easiest_plan(const ChainJob& chain, const FoundPlan& fastest, const SpaceOptions& space,
                         const PartSearch& search,
                         EaseLimits (*limits_of)(double fastest_s, double without_offload_s)) {
  EasiestPlan easiest{fastest, std::nullopt, true};
  const auto look = [&](const Ease& most, double below_s) {
    PartResult found = search(space_within(most, seq_len_of(chain), space), below_s);
    easiest.proven = easiest.proven && found.proven;
    return found;
  };
  double without_offload_s = fastest.time_s;
  if (ease_of(chain, fastest).offload) {
    PartResult found = look({false, kPlanDimensions, true, true}, kInfinity);
    without_offload_s = found.fastest ? found.fastest->time_s : kInfinity;
    // Where the budget ran out first, nothing is known of it.
    if (found.fastest || found.proven) easiest.without_offload_s = without_offload_s;
    if (!limits_of(fastest.time_s, without_offload_s).offload) {
      easiest.plan = *std::move(found.fastest);
    }
  }
  const EaseLimits limits = limits_of(fastest.time_s, without_offload_s);
  // Searches are for what takes less.
  const double below_s = std::nextafter(limits.most_s, kInfinity);
  Ease ease = ease_of(chain, easiest.plan);
  const auto is_found = [&](const Ease& most) {
    PartResult found = look(most, below_s);
    if (!found.fastest) return false;
    easiest.plan = *std::move(found.fastest);
    ease = ease_of(chain, easiest.plan);
    return true;
  };
  while (ease.dimensions > 0 && is_found({limits.offload, ease.dimensions - 1, true, true})) {
  }
  if (ease.own_layout) is_found({limits.offload, ease.dimensions, false, true});
  if (ease.extreme) is_found({limits.offload, ease.dimensions, ease.own_layout, false});
  return easiest;
}

}  // namespace braid
