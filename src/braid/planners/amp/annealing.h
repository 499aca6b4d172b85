#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/job/job.h"
#include "braid/search/random_numbers.h"

namespace braid {

/// What searches by random steps or draws evaluated.
template <typename Assignment>
struct AmpSearch {
  std::vector<Assignment> found;
  std::int64_t work = 0;  ///< Configurations evaluated.
};

/// AMP's simulated annealing (100 steps from two starts) over `all`, as far as `budget` goes: a
/// step keeps dp or tp and takes one of the configurations that do. `evaluate(configuration,
/// random)` is an optional<Assignment> with a `cost_s`.
template <typename Assignment, typename Evaluate>
AmpSearch<Assignment> amp_annealing(const std::vector<Configuration>& all, const Budget& budget,
                                    Evaluate evaluate) {
  constexpr std::int64_t kChains = 2, kSteps = 50;
  constexpr double kHottest_s = 10;
  AmpSearch<Assignment> search;
  for (std::int64_t chain = 0; chain < kChains && !all.empty(); ++chain) {
    RandomNumbers random(static_cast<std::uint64_t>(chain) + 1);
    Configuration here = all[random.below(all.size())];
    double cost_s = kInfinity;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (budget.work > 0 && search.work >= budget.work) return search;
      ++search.work;
      const bool keep_dp = random.below(2) == 0;
      std::vector<Configuration> near;
      for (const Configuration& other : all) {
        if (step == 0 ? other == here : keep_dp ? other.dp == here.dp : other.tp == here.tp) {
          near.push_back(other);
        }
      }
      const Configuration next = near[random.below(near.size())];
      const double chance = random.share();
      std::optional<Assignment> choice = evaluate(next, random);
      if (!choice.has_value()) continue;
      const double temperature_s =
          kHottest_s * (1 - static_cast<double>(step) / static_cast<double>(kSteps));
      const double next_s = choice->cost_s;
      search.found.push_back(std::move(*choice));
      if (cost_s < kInfinity &&
          chance >= std::exp(std::min((cost_s - next_s) / temperature_s, 0.0))) {
        continue;
      }
      here = next;
      cost_s = next_s;
    }
  }
  return search;
}

/// A hundred of `all` drawn at random, as far as `budget` goes; `evaluate` as above.
template <typename Assignment, typename Evaluate>
AmpSearch<Assignment> amp_random_strategies(const std::vector<Configuration>& all,
                                            const Budget& budget, Evaluate evaluate) {
  constexpr std::int64_t kDraws = 100;
  AmpSearch<Assignment> search;
  RandomNumbers random(1);
  while (!all.empty() && search.work < kDraws && (budget.work == 0 || search.work < budget.work)) {
    ++search.work;
    std::optional<Assignment> choice = evaluate(all[random.below(all.size())], random);
    if (choice.has_value()) search.found.push_back(std::move(*choice));
  }
  return search;
}

}  // namespace braid
