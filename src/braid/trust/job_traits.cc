#include "braid/trust/job_traits.h"

#include <algorithm>

#include "braid/system/links.h"

namespace braid {
namespace {

bool has_experts(const Profile& profile) {
  for (const std::vector<Option>& options : profile.kinds) {
    for (const Option& option : options) {
      if (option.cost.expert_parameters > 0) return true;
    }
  }
  return false;
}

}  // namespace

JobTraits traits_of(const Plan& plan, const Metrics& metrics) {
  const Parallelism form = form_of(plan, 0);
  const auto sample_tokens = static_cast<double>(std::max<std::int64_t>(1, plan.seq_len));
  JobTraits traits;
  traits.chip = chip_names_of(plan.system);
  traits.trainer = plan.trainer.name;
  traits.format = name_of(plan.precision);
  traits.experts = has_experts(plan.profile);
  traits.devices = static_cast<double>(devices_used(plan));
  traits.parameters = std::max(1.0, plan.model_parameters);
  traits.tokens = static_cast<double>(plan.global_batch) * sample_tokens;
  traits.micro_batch_tokens = form.micro_batch * sample_tokens / form.cp;
  traits.tp = form.tp;
  traits.pp = plan.parallel.pp;
  traits.dp = form.dp;
  traits.cp = form.cp;
  traits.ep = form.ep;
  traits.mfu = metrics.mfu;
  return traits;
}

}  // namespace braid
