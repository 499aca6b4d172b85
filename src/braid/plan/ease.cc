#include "braid/plan/ease.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <tuple>

#include "braid/base/infinity.h"

namespace braid {

int most_usual_micro_batch(std::int64_t seq_len) {
  if (seq_len <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>(std::max<std::int64_t>(1, kMostUsualTokens / seq_len));
}

EaseLimits ease_limits(double fastest_s, double without_offload_s) {
  const double most_s = (1 + kSlowerWithoutOffload) * fastest_s;
  if (without_offload_s > most_s) return {true, (1 + kSlowerForEase) * fastest_s};
  return {false, std::min((1 + kSlowerForEase) * without_offload_s, most_s)};
}

std::size_t easiest_of(std::span<const TimedEase> plans) {
  assert(!plans.empty());
  double fastest_s = kInfinity, without_offload_s = kInfinity;
  for (const TimedEase& plan : plans) {
    fastest_s = std::min(fastest_s, plan.time_s);
    if (!plan.ease.offload) without_offload_s = std::min(without_offload_s, plan.time_s);
  }
  const EaseLimits limits = ease_limits(fastest_s, without_offload_s);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const TimedEase& plan = plans[i];
    if (plan.time_s > limits.most_s || (plan.ease.offload && !limits.offload)) continue;
    const auto key = [](const TimedEase& of) { return std::tie(of.ease, of.time_s); };
    if (!best || key(plan) < key(plans[*best])) best = i;
  }
  return *best;
}

}  // namespace braid
