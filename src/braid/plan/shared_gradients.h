#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// Gradient of a parameter that a device of a stage run as `form` sums with the other stages that
/// hold it: what it keeps of the gradient, its rank's share where ZeRO-2 or 3 divide gradients.
double shared_gradient_bytes(const SharedParameter& parameter, const Parallelism& form,
                             const Precision& precision);

/// Time of a ring all-reduce of `bytes` over two or more stages, all devices of a stage at once, in
/// the order given: 2(n - 1) steps, each as long as the slowest message of bytes / n.
/// `message_s(from, to, bytes)` is the time of one.
template <typename Message>
double ring_of_stages_s(std::span<const std::int32_t> stages, double bytes, Message message_s) {
  if (stages.size() < 2 || bytes <= 0) return 0;
  const auto n = static_cast<double>(stages.size());
  double slowest_s = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int32_t next = stages[i + 1 == stages.size() ? 0 : i + 1];
    const double step_s = message_s(stages[i], next, bytes / n);
    slowest_s = step_s > slowest_s ? step_s : slowest_s;
  }
  return 2 * (n - 1) * slowest_s;
}

/// [stage]: time that a stage takes, once its gradients are synchronised over data-parallel ranks,
/// to sum those of parameters that other stages hold too, one parameter after another
/// (docs/cost-model.md, "Parameters of several stages").
std::vector<double> shared_gradient_sync_s(const Plan& plan);

}  // namespace braid
