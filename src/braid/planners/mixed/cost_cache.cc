#include "braid/planners/mixed/cost_cache.h"

#include <algorithm>

namespace braid {

MixedCostCache::MixedCostCache(const MixedProblem& problem) : problem_(problem) {
  for (const MixedConfig& config : problem.configs)
    variants_ = std::max(variants_, config.variants.size());
}

std::int64_t MixedCostCache::number_of(std::span<const std::int32_t> used) const {
  std::int64_t number = 0;
  for (std::size_t k = 0; k < used.size(); ++k) {
    number = number * (problem_.capacity[k] + std::int64_t{1}) + used[k];
  }
  return number;
}

MixedCostCache::At& MixedCostCache::at(std::span<const std::int32_t> used) {
  const auto [found, fresh] = known_.try_emplace(number_of(used));
  At& at = found->second;
  if (fresh) {
    const std::size_t configs = problem_.configs.size();
    at.allowed.assign(configs, -1);
    at.used.assign(used.begin(), used.end());
    at.rates_at.assign(configs * variants_, -1);
    at.exchange_s.assign(configs * variants_, problem_.costs->exchanges() ? -1 : 0);
    at.handover_s.resize(configs);
  }
  return at;
}

bool MixedCostCache::allows(At& at, std::span<const std::int32_t> used, std::size_t config) const {
  std::int8_t& known = at.allowed[config];
  if (known >= 0) return known > 0;
  known = 1;
  const MixedConfig& wanted = problem_.configs[config];
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k] + wanted.takes[k] > problem_.capacity[k]) known = 0;
  }
  const auto number = static_cast<std::int32_t>(config);
  if (known > 0 && !problem_.costs->allows(used, number)) known = 0;
  return known > 0;
}

double MixedCostCache::handover_s(At& at, std::span<const std::int32_t> used, std::size_t below,
                                  std::size_t above, std::int32_t cut) const {
  const std::int32_t kind = problem_.cut_class[static_cast<std::size_t>(cut)];
  const auto classes = static_cast<std::size_t>(problem_.cut_classes);
  std::vector<double>& of_below = at.handover_s[below];
  if (of_below.empty()) of_below.assign(problem_.configs.size() * classes, -1);
  double& known_s = of_below[above * classes + static_cast<std::size_t>(kind)];
  if (known_s < 0) {
    known_s = problem_.costs->handover_s(used, static_cast<std::int32_t>(below),
                                         static_cast<std::int32_t>(above), kind);
  }
  return known_s;
}

}  // namespace braid
