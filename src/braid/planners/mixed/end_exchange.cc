#include "braid/planners/mixed/end_exchange.h"

#include <algorithm>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {
namespace {

/// Exchanges of gradients that are asked for in advance.
constexpr std::int64_t kMostExchanges = 200'000;

/// Whether a stage of the config has room where `used` is taken.
bool fits(const MixedProblem& problem, const std::vector<std::int32_t>& used, std::size_t config) {
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k] + problem.configs[config].takes[k] > problem.capacity[k]) return false;
  }
  return true;
}

}  // namespace

MixedEndExchange::MixedEndExchange(const MixedProblem& problem,
                                   std::vector<std::uint8_t> last_configs)
    : problem_(problem), last_configs_(std::move(last_configs)) {
  if (!problem.costs->exchanges()) return;
  const std::vector<std::int32_t> none(problem.capacity.size(), 0);
  const auto add = [&](std::size_t config, std::vector<std::size_t>& takers) {
    const auto same = [&](std::size_t other) {
      return problem.configs[other].takes == problem.configs[config].takes;
    };
    if (std::none_of(takers.begin(), takers.end(), same)) takers.push_back(config);
  };
  for (std::size_t config = 0; config < problem.configs.size(); ++config) {
    add(config, takers_);
    if (may_be_last(config) && fits(problem, none, config) &&
        problem.costs->allows(none, static_cast<std::int32_t>(config))) {
      add(config, last_takers_);
    }
  }
  std::int64_t places = 1;
  for (const std::int32_t devices : problem.capacity) places *= devices + std::int64_t{1};
  const auto pairs = static_cast<std::int64_t>(takers_.size() * last_takers_.size());
  if (places > kMostExchanges / std::max<std::int64_t>(1, pairs)) takers_.clear();
}

double MixedEndExchange::exchange_ahead_s(const std::vector<std::int32_t>& used) {
  if (takers_.empty()) return 0;
  const auto known = ahead_s_.find(used);
  if (known != ahead_s_.end()) return known->second;
  double least_s = kInfinity;
  for (const std::size_t first : takers_) {
    if (!fits(problem_, used, first)) continue;
    for (const std::size_t last : last_takers_) {
      if (least_s == 0) break;
      least_s =
          std::min(least_s, problem_.costs->least_exchange_s(used, static_cast<std::int32_t>(first),
                                                             static_cast<std::int32_t>(last)));
    }
  }
  std::vector<std::int32_t> further = used;
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k] == problem_.capacity[k]) continue;
    ++further[k];
    least_s = std::min(least_s, exchange_ahead_s(further));
    --further[k];
  }
  ahead_s_.emplace(used, least_s);
  return least_s;
}

}  // namespace braid
