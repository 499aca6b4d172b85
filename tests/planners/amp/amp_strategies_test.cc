#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/system/system.h"

#include "base/pick.h"
#include "base/reference_files.h"
#include "papers/amp/placement_search.h"
#include "papers/amp/strategies.h"
#include "planners/amp_experiments.h"

namespace braid {
namespace {

using test::pick;

struct Setting {
  AmpModel model;
  AmpCluster cluster;
};

/// Nodes of two devices.
Setting random_setting(std::mt19937_64& random, int layers, int count) {
  Setting setting;
  setting.model.degrees = {1, 2};
  setting.model.layers.resize(static_cast<std::size_t>(layers));
  for (AmpLayer& layer : setting.model.layers) {
    layer.output_elements = pick(random, 0, 20);
    layer.parameters = pick(random, 0, 20);
  }
  for (int type = 0; type < 2; ++type) {
    setting.model.forward_s.emplace_back();
    for (int degree = 0; degree < 2; ++degree) {
      std::vector<double> times_s;
      for (int l = 0; l < layers; ++l) times_s.push_back(pick(random, 1, 9));
      setting.model.forward_s.back().push_back(times_s);
    }
  }
  std::vector<AmpNode> nodes;
  for (int n = 0; n < count; ++n) {
    const double card = pick(random, 1, 4);
    nodes.push_back({1, 2, pick(random, 0, 1), card + pick(random, 0, 9), card});
    if (n == 1 && pick(random, 0, 1) == 0) nodes.back() = nodes.front();
  }
  setting.cluster = amp_cluster_of(nodes);
  return setting;
}

Setting random_setting(std::mt19937_64& random) {
  const int layers = pick(random, 6, 8);
  return random_setting(random, layers, 3);
}

/// Every order of the devices that leaves shards in one node.
double best_of_all_orders(const Setting& setting, const AmpStrategy& degrees,
                          std::int64_t global_batch, const AmpRules& rules) {
  double best = std::numeric_limits<double>::infinity();
  AmpStrategy strategy = degrees;
  strategy.device = rank_order(setting.cluster);
  do {
    bool together = true;
    for (std::size_t rank = 0; rank < strategy.device.size(); ++rank) {
      const std::size_t first =
          rank / static_cast<std::size_t>(strategy.tp) * static_cast<std::size_t>(strategy.tp);
      together = together && strategy.device[rank] / 2 == strategy.device[first] / 2;
    }
    // Devices of a node are alike: keep them in order.
    const auto place = [&](std::int32_t device) {
      return std::find(strategy.device.begin(), strategy.device.end(), device);
    };
    const auto devices = static_cast<std::int32_t>(strategy.device.size());
    for (std::int32_t device = 0; device < devices && together; device += 2) {
      together = place(device) < place(device + 1);
    }
    if (!together) continue;
    const auto choice = amp_evaluate(setting.model, setting.cluster, strategy, global_batch, rules);
    if (choice.has_value()) best = std::min(best, choice->cost_s);
  } while (std::next_permutation(strategy.device.begin(), strategy.device.end()));
  return best;
}

/// Most of them on four devices, where that is cheap.
TEST(AmpCluster, ComesFromASystem) {
  const AmpCluster cluster = amp_cluster(load_system("dgx-h100:4nodes"));
  EXPECT_EQ(cluster.devices(), 32);
  EXPECT_EQ(cluster.nodes(), 4);
  EXPECT_EQ(cluster.type, std::vector<std::int32_t>(32, 0));
  EXPECT_EQ(cluster.node[15], 1);
  EXPECT_GT(cluster.link(0, 7), cluster.link(0, 8));
  EXPECT_DOUBLE_EQ(cluster.link(0, 8), cluster.link(31, 2));
  EXPECT_THROW(amp_cluster(load_system("dgx-h100:512nodes")), Error);
}

TEST(AmpPlacement, IsTheBestOfAllOrdersOfDevices) {
  std::mt19937_64 random(71);
  const AmpRules rules;
  for (int n = 0; n < 10'100; ++n) {
    const bool large = n < 100;
    const int layers = large ? pick(random, 6, 8) : pick(random, 3, 4);
    const Setting setting = random_setting(random, layers, large ? 3 : 2);
    const std::int64_t batch = large ? 12 : 4;
    const auto degrees = amp_degrees(setting.model, setting.cluster, batch);
    const AmpStrategy& chosen = degrees[random() % degrees.size()];
    const AmpPlacementResult found =
        amp_place(setting.model, setting.cluster, std::span(&chosen, 1), batch, rules, {});
    const double best = best_of_all_orders(setting, chosen, batch, rules);
    ASSERT_TRUE(found.best.has_value());
    ASSERT_NEAR(found.best->cost_s, best, 1e-9 * best) << n;
    ASSERT_NEAR(found.gap(), 0, 1e-9) << n;
    ASSERT_EQ(std::set<std::int32_t>(found.best->strategy.device.begin(),
                                     found.best->strategy.device.end())
                  .size(),
              large ? 6U : 4U);
  }
}

TEST(AmpPlacement, BoundsHoldWhenTheBudgetIsSmall) {
  std::mt19937_64 random(72);
  for (int n = 0; n < 60; ++n) {
    const Setting setting = random_setting(random);
    const auto degrees = amp_degrees(setting.model, setting.cluster, 12);
    const AmpPlacementResult all =
        amp_place(setting.model, setting.cluster, degrees, 12, {}, {.most_states = 1'000'000});
    ASSERT_NEAR(all.gap(), 0, 1e-9);
    for (const std::int64_t most : {1, 30, 100}) {
      const AmpPlacementResult some =
          amp_place(setting.model, setting.cluster, degrees, 12, {}, {.most_states = most});
      ASSERT_LE(some.bound_s, all.best->cost_s * (1 + 1e-12));
      ASSERT_GE(some.best->cost_s, all.best->cost_s * (1 - 1e-12));
      ASSERT_GE(some.gap(), -1e-12);
    }
  }
}

/// A search may not lose to one whose space it contains.
TEST(AmpPlacement, NeverLosesToTheOtherSearches) {
  std::mt19937_64 random(73);
  const AmpRules rules;
  for (int n = 0; n < 15; ++n) {
    const Setting setting = random_setting(random);
    const auto degrees = amp_degrees(setting.model, setting.cluster, 12);
    const double best =
        amp_place(setting.model, setting.cluster, degrees, 12, rules, {.most_states = 1'000'000})
            .best->cost_s;
    const auto in_order = amp_search(setting.model, setting.cluster, 12, rules);
    ASSERT_LE(best, in_order.front().cost_s * (1 + 1e-12));
    for (const AmpChoice& choice :
         amp_anneal(setting.model, setting.cluster, 12, rules, {.seed = random()})) {
      // Lying rectangles may put shards into different nodes.
      bool together = true;
      for (std::size_t rank = 0; rank + 1 < choice.strategy.device.size(); rank += 2) {
        together =
            together && choice.strategy.device[rank] / 2 == choice.strategy.device[rank + 1] / 2;
      }
      if (choice.strategy.tp == 2 && !together) continue;
      ASSERT_LE(best, choice.cost_s * (1 + 1e-12));
    }
  }
}

TEST(AmpStrategies, AreAllTheProductsThatFit) {
  std::mt19937_64 random(74);
  const Setting setting = random_setting(random);
  std::set<std::vector<int>> expected, found;
  for (int tp = 1; tp <= 2; ++tp) {
    for (int dp = 1; dp <= 6; ++dp) {
      for (int micro_batch = 1; micro_batch <= 12; ++micro_batch) {
        if (6 % (tp * dp) != 0 || 12 % (dp * micro_batch) != 0) continue;
        expected.insert({6 / tp / dp, dp, tp, micro_batch});
      }
    }
  }
  for (const AmpStrategy& s : amp_degrees(setting.model, setting.cluster, 12)) {
    found.insert({s.pp, s.dp, s.tp, s.micro_batch});
  }
  EXPECT_EQ(found, expected);
}

TEST(AmpStrategies, RandomSearchesRepeatThemselves) {
  std::mt19937_64 random(75);
  const Setting setting = random_setting(random);
  const AmpRules rules;
  for (const auto search : {amp_anneal, amp_draw}) {
    const auto once = search(setting.model, setting.cluster, 12, rules, {.seed = 5});
    const auto again = search(setting.model, setting.cluster, 12, rules, {.seed = 5});
    ASSERT_FALSE(once.empty());
    ASSERT_EQ(once.size(), again.size());
    for (std::size_t i = 0; i < once.size(); ++i) {
      EXPECT_EQ(once[i].strategy.device, again[i].strategy.device);
      EXPECT_EQ(once[i].cost_s, again[i].cost_s);
      auto devices = once[i].strategy.device;
      std::sort(devices.begin(), devices.end());
      EXPECT_EQ(devices, rank_order(setting.cluster));
    }
  }
}

/// The paper's three settings have 53, 53 and 65 strategies in AMP's records.
TEST(AmpStrategies, AreAsManyAsInThePaper) {
  const std::string folder = reference_file("reference/amp");
  if (folder.empty()) GTEST_SKIP() << "reference data not present";
  for (const auto& [name, count] : {std::pair<const char*, std::size_t>{"homogeneous", 53},
                                    {"het_cluster", 53},
                                    {"het_model", 65}}) {
    const AmpExperiment experiment = amp_experiment(name, folder);
    EXPECT_EQ(amp_degrees(experiment.model, experiment.cluster, experiment.global_batch).size(),
              count);
  }
}

}  // namespace
}  // namespace braid
