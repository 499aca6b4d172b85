#include "braid/planners/amp_physics.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/system/system.h"

#include "base/pick.h"
#include "planners/amp_experiments.h"

namespace braid {
namespace {

using testing::pick;

/// `layers` equal layers of a second each on type 0, two seconds on type 1.
AmpModel equal_layers(int layers) {
  AmpModel model;
  model.degrees = {1, 2};
  for (int l = 0; l < layers; ++l) {
    AmpLayer layer;
    layer.output_elements = 10;
    layer.parameters = 100;
    layer.activation_bytes = 7;
    layer.split_activation_bytes = 20;
    model.layers.push_back(layer);
  }
  const auto count = static_cast<std::size_t>(layers);
  model.forward_s = {{std::vector<double>(count, 1.0), std::vector<double>(count, 0.5)},
                     {std::vector<double>(count, 2.0), std::vector<double>(count, 1.0)}};
  return model;
}

constexpr AmpPhysics kPhysics{};

TEST(AmpPhysics, IsTheClosedFormForEqualStagesWithoutTraffic) {
  const AmpModel model = equal_layers(8);
  const std::vector<AmpNode> nodes = {{2, 4, 0, 1e30, 1e30}};
  const AmpCluster cluster = amp_cluster_of(nodes, {1e9, 1e9});
  const AmpForecast forecast =
      amp_forecast(model, cluster, in_rank_order(4, 2, 1, 3), 60, {2, 4, 6, 8}, kPhysics);
  // 10 micro-batches of 3 samples, 4 stages of 2 layers, 3 s each forward and backward.
  EXPECT_NEAR(forecast.iteration_s, (10 + 4 - 1) * 3 * 2 * 3, 1e-9);
  // The first stage keeps four micro-batches.
  EXPECT_DOUBLE_EQ(forecast.peak_bytes[0], 2 * 100 * 20 + 4 * 3 * 2 * 27);
  EXPECT_DOUBLE_EQ(forecast.peak_bytes[3], 2 * 100 * 20 + 1 * 3 * 2 * 27);
}

TEST(AmpPhysics, IssuingOperatorsDoesNotGrowWithTheMicroBatch) {
  AmpModel model = equal_layers(1);
  model.layers[0].operators = 10;
  const std::vector<AmpNode> nodes = {{1, 1, 0, 1, 1}};
  AmpCluster cluster = amp_cluster_of(nodes, {1e9});
  const auto time_s = [&](int micro_batch, double operator_s) {
    cluster.operator_s = {operator_s};
    return amp_forecast(model, cluster, in_rank_order(1, 1, 1, micro_batch), micro_batch, {1}, {})
        .iteration_s;
  };
  EXPECT_NEAR(time_s(1, 0.025), 2 * 0.25 + 3 * 0.75, 1e-12);
  EXPECT_NEAR(time_s(8, 0.025), 2 * 0.25 + 3 * 0.75 * 8, 1e-12);
  EXPECT_NEAR(time_s(8, 0.5), 2, 1e-12);  // At most the whole layer.
}

TEST(AmpPhysics, ShardsDivideWorkAndCommunicateOnceEachWay) {
  AmpModel model = equal_layers(1);
  model.layers[0].operators = 10;
  // Of the 1 s of a single device 0.2 are issued; of the 0.9 s of two, 0.4 are work: 0.3 s to
  // communicate 10 elements of two bytes, half a message of each shard.
  model.forward_s[0] = {{1.0}, {0.9}};
  const std::vector<AmpNode> nodes = {{1, 2, 0, 1e30, 1e30}};
  AmpCluster cluster = amp_cluster_of(nodes, {1e9});
  cluster.operator_s = {0.02};
  const auto time_s = [&](int micro_batch) {
    return amp_forecast(model, cluster, in_rank_order(1, 1, 2, micro_batch), micro_batch, {1}, {})
        .iteration_s;
  };
  EXPECT_NEAR(time_s(1), 2 * 0.2 + 3 * 0.4 + 2 * 0.3, 1e-12);
  EXPECT_NEAR(time_s(4), 2 * 0.2 + 4 * (3 * 0.4 + 2 * 0.3), 1e-12);
  cluster.half_bytes = {20};  // Messages of 10 and 40 bytes: twice as long, not four times.
  EXPECT_NEAR(time_s(4), 2 * 0.2 + 4 * 3 * 0.4 + 2 * 2 * 0.3, 1e-12);
  // Without times of a single device all is work but issuing.
  model.degrees = {2};
  model.forward_s = {{{0.9}}};
  EXPECT_NEAR(time_s(4), 2 * 0.2 + 3 * 4 * 0.7, 1e-12);
}

TEST(AmpPhysics, RingsShareANodesCard) {
  const AmpModel model = equal_layers(1);
  // Two nodes of two devices, 100 bytes/s out of each node.
  const std::vector<AmpNode> nodes = {{2, 2, 0, 1e30, 100}};
  const AmpCluster cluster = amp_cluster_of(nodes, {1e9});
  const auto sync_s = [&](AmpStrategy strategy) {
    return amp_forecast(model, cluster, strategy, 4, {1}, kPhysics).iteration_s;
  };
  // tp 2: two rings of two devices in different nodes, 50 parameters of 4 bytes each; both leave
  // each node, at 50 bytes/s.
  EXPECT_NEAR(sync_s(in_rank_order(1, 2, 2, 1)), 2 * 3 * 0.5 + 2 * 0.5 * 200 / 50, 1e-9);
  // dp 4: one ring, 400 bytes at 100 bytes/s.
  EXPECT_NEAR(sync_s(in_rank_order(1, 4, 1, 1)), 3 + 2 * 0.75 * 400 / 100, 1e-9);
  // The same in an order that crosses between the nodes at each step: two flows leave each.
  AmpStrategy crossing = in_rank_order(1, 4, 1, 1);
  crossing.device = {0, 2, 1, 3};
  EXPECT_GE(sync_s(crossing), sync_s(in_rank_order(1, 4, 1, 1)));
}

TEST(AmpPhysics, AStageIsAsFastAsItsOwnDevices) {
  const AmpModel model = equal_layers(3);
  const std::vector<AmpNode> nodes = {{1, 1, 0, 1e30, 1e30}, {1, 1, 1, 1e30, 1e30}};
  const AmpCluster cluster = amp_cluster_of(nodes, {1e9, 1e9});
  const AmpStrategy strategy = in_rank_order(2, 1, 1, 1);
  // Two layers of 3 s on the fast device, one of 6 s on the slow one.
  EXPECT_NEAR(amp_forecast(model, cluster, strategy, 10, {2, 3}, kPhysics).iteration_s,
              (10 + 1) * 6, 1e-9);
  const AmpPipeline pipeline = amp_physical_pipeline(model, cluster, strategy, 10, kPhysics);
  EXPECT_EQ(assign_layers(pipeline.chain)->ends, (Ends{2, 3}));
  // AMP's program takes all stages for equal.
  const AmpPipeline averaged =
      amp_pipeline(model, cluster, strategy, 10, {.average_devices = true});
  EXPECT_NEAR(assign_layers(averaged.chain)->pipeline_s, (10 - 1) * 9 + 13.5, 1e-6);
}

TEST(AmpPhysics, MemoryLimitsTheAssignment) {
  AmpModel model = equal_layers(4);
  for (std::size_t l = 0; l < 4; ++l) model.layers[l].parameters = 100.0 * (l == 0 ? 3 : 1);
  const std::vector<AmpNode> nodes = {{1, 2, 0, 1e30, 1e30}};
  const AmpStrategy strategy = in_rank_order(2, 1, 1, 1);
  const AmpCluster roomy = amp_cluster_of(nodes, {1e9});
  EXPECT_EQ(assign_layers(amp_physical_pipeline(model, roomy, strategy, 4, {}).chain)->ends,
            (Ends{2, 4}));
  // Layer 0 fills a device with 6000 bytes of state and 2 · 27 of activations.
  const AmpCluster tight = amp_cluster_of(nodes, {6200.0});
  EXPECT_EQ(assign_layers(amp_physical_pipeline(model, tight, strategy, 4, {}).chain)->ends,
            (Ends{1, 4}));
  const AmpForecast forecast = amp_forecast(model, tight, strategy, 4, {2, 4}, {});
  EXPECT_FALSE(forecast.fits());
  EXPECT_DOUBLE_EQ(forecast.missing_bytes, 400 * 20 + 2 * 2 * 27 - 6200);
}

TEST(AmpPhysics, BetterHardwareNeverHurts) {
  std::mt19937_64 random(61);
  for (int n = 0; n < 400; ++n) {
    const int layers = pick(random, 4, 9);
    AmpModel model = equal_layers(layers);
    for (auto& layer : model.layers) {
      layer.output_elements = pick(random, 0, 50);
      layer.parameters = pick(random, 0, 50);
      layer.operators = pick(random, 0, 40);
      layer.embedding_parameters = pick(random, 0, 3) == 0 ? 40 : 0;
    }
    for (auto& type : model.forward_s) {
      for (auto& degree : type) {
        for (double& time_s : degree) time_s = pick(random, 0, 10);
      }
    }
    const std::vector<AmpNode> nodes = {
        {pick(random, 1, 2), 4, 0, 20.0 * pick(random, 1, 9), 10.0 * pick(random, 1, 9)},
        {1, 4, 1, 20.0 * pick(random, 1, 9), 10.0 * pick(random, 1, 9)}};
    AmpCluster cluster = amp_cluster_of(nodes, {1e4, 1e4});
    cluster.operator_s = {0.01, 0.02};
    cluster.half_bytes = {10, 0};
    AmpStrategy strategy;
    const int tp = pick(random, 1, 2);
    const int dp = pick(random, 0, 1) == 0 ? 2 : 4;
    if (cluster.devices() % (dp * tp) != 0 || cluster.devices() / (dp * tp) > layers) continue;
    strategy = in_rank_order(cluster.devices() / (dp * tp), dp, tp, 1);
    std::shuffle(strategy.device.begin(), strategy.device.end(), random);
    Ends ends;
    for (int i = 1; i < strategy.pp; ++i) ends.push_back(i);
    ends.push_back(layers);
    const auto time_s = [&](const AmpModel& of_model, const AmpCluster& on) {
      return amp_forecast(of_model, on, strategy, 8L * dp, ends, {}).iteration_s;
    };
    const double before_s = time_s(model, cluster);
    AmpCluster faster = cluster;
    for (double& rate : faster.bytes_per_s) rate *= 2;
    ASSERT_LE(time_s(model, faster), before_s * (1 + 1e-12)) << n;
    for (double& rate : faster.node_bytes_per_s) rate *= 2;
    ASSERT_LE(time_s(model, faster), before_s * (1 + 1e-12)) << n;
    // Twice as fast in everything: half the time.
    AmpModel quick = model;
    for (auto& type : quick.forward_s) {
      for (auto& degree : type) {
        for (double& time : degree) time /= 2;
      }
    }
    for (double& issue_s : faster.operator_s) issue_s /= 2;
    ASSERT_NEAR(amp_forecast(quick, faster, strategy, 8L * dp, ends, {}).iteration_s, before_s / 2,
                1e-9);
    // Which of a node's devices is which does not matter.
    AmpStrategy renamed = strategy;
    for (auto& device : renamed.device) device = device / 4 * 4 + 3 - device % 4;
    ASSERT_NEAR(amp_forecast(model, cluster, renamed, 8L * dp, ends, {}).iteration_s, before_s,
                1e-9);
  }
}

TEST(AmpPhysics, ClustersComeFromSystems) {
  const System system = load_system("dgx-h100:4nodes");
  const AmpCluster cluster = amp_cluster(system);
  EXPECT_EQ(cluster.devices(), 32);
  EXPECT_EQ(cluster.nodes(), 4);
  EXPECT_EQ(cluster.type, std::vector<std::int32_t>(32, 0));
  EXPECT_EQ(cluster.node[15], 1);
  EXPECT_GT(cluster.link(0, 7), cluster.link(0, 8));
  EXPECT_DOUBLE_EQ(cluster.link(0, 8), cluster.link(31, 2));
  EXPECT_THROW(amp_cluster(load_system("dgx-h100:512nodes")), Error);
}

TEST(AmpPhysics, NamesAMissingDegree) {
  const AmpModel model = equal_layers(2);
  EXPECT_THROW(model.forward_at(0, 4), Error);
}

}  // namespace
}  // namespace braid
