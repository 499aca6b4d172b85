#include "braid/plan/trainer_fit.h"

#include <algorithm>

namespace braid {

bool has_even_chunks(const Plan& plan) {
  if (plan.stages.empty()) return true;
  const std::size_t vp = plan.stages.front().chunks.size();
  std::vector<std::size_t> layers;
  for (std::size_t c = 0; c < vp; ++c) {
    for (const Stage& stage : plan.stages) layers.push_back(stage.chunks[c].layers.size());
  }
  if (layers.empty()) return true;
  // What the ends have beside their blocks is at most a layer each.
  const std::size_t inner = layers.size() > 2 ? layers[1] : std::min(layers.front(), layers.back());
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    const bool is_end = chunk == 0 || chunk + 1 == layers.size();
    if (layers[chunk] < inner || layers[chunk] > inner + (is_end ? 1 : 0)) return false;
  }
  return true;
}

std::string refusal(const TrainerLimits& limits, const Plan& plan) {
  if (!limits.unlike_stages && !is_uniform(plan)) return "has one parallel form for all stages";
  if (std::string reason = refusal(limits, plan.parallel); !reason.empty()) return reason;
  if (!limits.uneven_stages && !has_even_chunks(plan)) {
    return "has equally many layers in all stages";
  }
  for (const std::vector<Option>& options : plan.profile.kinds) {
    for (const Option& option : options) {
      if (!limits.found_sharding && !option.divided.empty()) {
        return "divides layers only as they are written";
      }
    }
  }
  return "";
}

}  // namespace braid
