#include "braid/plan/shared_gradients.h"

#include <algorithm>

#include "braid/plan/stage_load.h"

namespace braid {

double shared_gradient_bytes(const SharedParameter& parameter, const Parallelism& form,
                             const Precision& precision) {
  double elements = parameter.elements;
  if (parameter.sharded) elements /= form.tp;
  if (form.zero >= Zero::gradients) elements /= static_cast<double>(form.dp) * form.cp;
  return elements * bytes_per_element(precision.shared_gradient.value_or(precision.gradient));
}

std::vector<double> shared_gradient_sync_s(const Plan& plan) {
  std::vector<double> time_s(plan.stages.size(), 0);
  if (plan.profile.shared.empty() || plan.stages.size() < 2) return time_s;
  std::vector<std::int32_t> stage_of(plan.profile.layers.size(), -1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const Chunk& chunk : plan.stages[s].chunks) {
      for (const std::int32_t layer : chunk.layers) {
        stage_of[static_cast<std::size_t>(layer)] = static_cast<std::int32_t>(s);
      }
    }
  }
  const bool uniform = is_uniform(plan);
  const auto message_s = [&](std::int32_t from, std::int32_t to, double bytes) {
    if (uniform) return transfer_time_s(plan.parallel, plan.system, from, to, bytes);
    return handover_s(plan.system, plan.stages[static_cast<std::size_t>(from)].devices,
                      plan.stages[static_cast<std::size_t>(to)].devices, bytes);
  };
  std::vector<std::int32_t> holders;
  for (const SharedParameter& parameter : plan.profile.shared) {
    holders.clear();
    for (const std::int32_t layer : parameter.layers) {
      const std::int32_t stage = stage_of[static_cast<std::size_t>(layer)];
      if (stage >= 0) holders.push_back(stage);
    }
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    double bytes = 0;
    for (const std::int32_t stage : holders) {
      bytes = std::max(
          bytes, shared_gradient_bytes(parameter, form_of(plan, static_cast<std::size_t>(stage)),
                                       plan.precision));
    }
    const double sum_s = ring_of_stages_s(holders, bytes, message_s);
    for (const std::int32_t stage : holders) time_s[static_cast<std::size_t>(stage)] += sum_s;
  }
  return time_s;
}

}  // namespace braid
