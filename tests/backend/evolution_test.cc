#include "braid/backend/placement/evolution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

/// Random costs of runs of equal choices: each choice costs something at each place, and each run
/// of choices other than 0 something more.
struct RunCosts {
  std::vector<std::vector<double>> at_place;
  double by_run = 0.3;

  double operator()(const Genes& genes) const {
    double cost = 0;
    for (std::size_t i = 0; i < genes.size(); ++i) {
      cost += at_place[i][static_cast<std::size_t>(genes[i])];
      if (genes[i] != 0 && (i == 0 || genes[i - 1] != genes[i])) cost += by_run;
    }
    return cost;
  }
};

RunCosts random_costs(std::size_t places, std::size_t choices, unsigned seed) {
  std::mt19937 random(seed);
  RunCosts costs;
  for (std::size_t i = 0; i < places; ++i) {
    costs.at_place.emplace_back();
    for (std::size_t c = 0; c < choices; ++c) {
      costs.at_place.back().push_back(static_cast<double>(random() % 1000) / 1e3);
    }
  }
  return costs;
}

double cheapest_of_all(const RunCosts& costs, std::size_t places, int choices) {
  Genes genes(places, 0);
  double best = std::numeric_limits<double>::infinity();
  while (true) {
    best = std::min(best, costs(genes));
    std::size_t i = 0;
    while (i < places && ++genes[i] == choices) genes[i++] = 0;
    if (i == places) return best;
  }
}

TEST(Evolution, FindsTheCheapestOfFewMostly) {
  int found = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const RunCosts costs = random_costs(6, 3, seed);
    const Evolved answer = evolved({Genes(6, 0)}, 3, costs, {});
    const double cheapest = cheapest_of_all(costs, 6, 3);
    EXPECT_DOUBLE_EQ(answer.cost, costs(answer.best));
    EXPECT_LE(answer.cost, 1.1 * cheapest) << seed;
    if (answer.cost <= cheapest + 1e-9) ++found;
  }
  EXPECT_GE(found, 17);
}

TEST(Evolution, IsNeverDearerThanItsSeedsAndNeverForgetsWithElites) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const RunCosts costs = random_costs(30, 3, seed);
    const Genes first(30, 0), second(30, 1);
    EvolutionOptions options;
    options.population = 6;
    const Evolved answer = evolved({first, second}, 3, costs, options);
    EXPECT_LE(answer.cost, std::min(costs(first), costs(second)));
    EXPECT_TRUE(std::is_sorted(answer.best_cost_by_generation.rbegin(),
                               answer.best_cost_by_generation.rend()));
    options.elites = 0;
    EXPECT_LE(evolved({first, second}, 3, costs, options).cost,
              std::min(costs(first), costs(second)));
  }
}

TEST(Evolution, AsksOnceAndAnswersTheSameAgain) {
  std::map<Genes, int> asked;
  const RunCosts costs = random_costs(8, 2, 3);
  const auto cost = [&](const Genes& genes) {
    ++asked[genes];
    return costs(genes);
  };
  const Evolved one = evolved({Genes(8, 0)}, 2, cost, {});
  EXPECT_EQ(one.asked, asked.size());
  for (const auto& [genes, times] : asked) EXPECT_EQ(times, 1);
  EXPECT_EQ(evolved({Genes(8, 0)}, 2, costs, {}).best, one.best);
}

TEST(Evolution, LeavesWhatIsNotPossible) {
  const auto cost = [](const Genes& genes) {
    return genes[2] == 1 ? std::numeric_limits<double>::infinity()
                         : 4.0 - static_cast<double>(std::count(genes.begin(), genes.end(), 1));
  };
  EXPECT_THAT(evolved({Genes(4, 0)}, 2, cost, {}).best, testing::ElementsAre(1, 1, 0, 1));
}

}  // namespace
}  // namespace braid
