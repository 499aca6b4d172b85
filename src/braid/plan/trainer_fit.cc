#include "braid/plan/trainer_fit.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "braid/base/text.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/direct_stages.h"

namespace braid {

bool is_dealt_evenly(std::span<const std::int32_t> counts) {
  if (counts.empty()) return true;
  const std::int32_t inner =
      counts.size() > 2 ? counts[1] : std::min(counts.front(), counts.back());
  for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
    const bool is_end = chunk == 0 || chunk + 1 == counts.size();
    if (counts[chunk] < inner || counts[chunk] > inner + (is_end ? 1 : 0)) return false;
  }
  const auto layers = std::accumulate(counts.begin(), counts.end(), std::int32_t{0});
  return std::ranges::equal(counts,
                            layers_of_chunks(layers, static_cast<std::int32_t>(counts.size())));
}

TrainerLimits limits_of(const TrainerFile& trainer, const Plan& plan) {
  TrainerSubject subject = subject_of(trainer, plan.system, plan.precision);
  subject.model = lowered(plan.model);
  subject.seq_len = plan.seq_len;
  if (plan.shape) describe_model(*plan.shape, subject);
  return trainer.limits(subject);
}

namespace {

/// Whether all stages have the same degrees and memory options.
bool has_one_form(const Plan& plan) {
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    if (form_of(plan, s) != form_of(plan, 0)) return false;
  }
  return true;
}

}  // namespace

std::string refusal(const TrainerLimits& limits, const Plan& plan) {
  if (!limits.heterogeneous_stages && !has_one_form(plan))
    return "has the same parallel degrees for all stages";
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (std::string reason = refusal(limits, form_of(plan, s)); !reason.empty()) return reason;
  }
  if (!limits.uneven_stages && !is_dealt_evenly(layer_counts(plan))) {
    return "has equally many layers in all stages";
  }
  for (const std::vector<Option>& options : plan.profile.kinds) {
    for (const Option& option : options) {
      if (!limits.auto_sharding && !option.sharded.empty()) {
        return "has no automatic sharding";
      }
    }
  }
  return "";
}

}  // namespace braid
