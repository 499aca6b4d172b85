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
#include "braid/search/dice.h"

namespace braid {

/// The `place`-th least, counted from 1; infinity when there are not so many.
inline double least_but(std::vector<double> costs_s, std::size_t place) {
  if (place > costs_s.size()) return kInfinity;
  const auto at = costs_s.begin() + static_cast<std::ptrdiff_t>(place - 1);
  std::nth_element(costs_s.begin(), at, costs_s.end());
  return *at;
}

/// What a walk through configurations came by.
template <typename Found>
struct AmpWalk {
  std::vector<Found> found;
  std::int64_t work = 0;  ///< Configurations evaluated.
};

/// AMP's simulated annealing (100 steps from two starts) over `all`, as far as `budget` goes: a
/// step keeps dp or tp and takes one of the configurations that do. `evaluate(configuration, dice)`
/// is an optional<Found> with a `cost_s`.
template <typename Found, typename Evaluate>
AmpWalk<Found> amp_annealing_walk(const std::vector<Configuration>& all, const Budget& budget,
                                  Evaluate evaluate) {
  constexpr std::int64_t kChains = 2, kSteps = 50;
  constexpr double kHottest_s = 10;
  AmpWalk<Found> walk;
  for (std::int64_t chain = 0; chain < kChains && !all.empty(); ++chain) {
    Dice dice(static_cast<std::uint64_t>(chain) + 1);
    Configuration here = all[dice.below(all.size())];
    double cost_s = kInfinity;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (budget.work > 0 && walk.work >= budget.work) return walk;
      ++walk.work;
      const bool keep_dp = dice.below(2) == 0;
      std::vector<Configuration> near;
      for (const Configuration& other : all) {
        if (step == 0 ? other == here : keep_dp ? other.dp == here.dp : other.tp == here.tp) {
          near.push_back(other);
        }
      }
      const Configuration next = near[dice.below(near.size())];
      const double chance = dice.share();
      std::optional<Found> choice = evaluate(next, dice);
      if (!choice.has_value()) continue;
      const double temperature_s =
          kHottest_s * (1 - static_cast<double>(step) / static_cast<double>(kSteps));
      const double next_s = choice->cost_s;
      walk.found.push_back(std::move(*choice));
      if (cost_s < kInfinity &&
          chance >= std::exp(std::min((cost_s - next_s) / temperature_s, 0.0))) {
        continue;
      }
      here = next;
      cost_s = next_s;
    }
  }
  return walk;
}

/// A hundred of `all` drawn at random, as far as `budget` goes; `evaluate` as above.
template <typename Found, typename Evaluate>
AmpWalk<Found> amp_random_walk(const std::vector<Configuration>& all, const Budget& budget,
                               Evaluate evaluate) {
  constexpr std::int64_t kDraws = 100;
  AmpWalk<Found> walk;
  Dice dice(1);
  while (!all.empty() && walk.work < kDraws && (budget.work == 0 || walk.work < budget.work)) {
    ++walk.work;
    std::optional<Found> choice = evaluate(all[dice.below(all.size())], dice);
    if (choice.has_value()) walk.found.push_back(std::move(*choice));
  }
  return walk;
}

}  // namespace braid
