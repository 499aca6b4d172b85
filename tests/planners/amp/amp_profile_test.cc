#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/verify.h"

#include "base/pick.h"
#include "papers/amp/profile.h"
#include "planners/amp_experiments.h"
#include "system/network_level.h"

namespace braid {
namespace {

using test::level;
using test::pick;

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

constexpr double kFast = 1e30;  ///< Bytes/s.

struct Kind {
  std::int64_t nodes = 1, devices = 1;
  double inside_bytes_per_s = kFast, card_bytes_per_s = kFast;
};

/// Nodes whose network starts at once, of devices that update their parameters at once.
System system_of(const std::vector<Kind>& kinds) {
  System system;
  system.device_count = 0;
  std::int64_t nodes = 0;
  double most = 0;
  for (const Kind& kind : kinds) {
    DeviceGroup group;
    group.chip.name = "chip" + std::to_string(system.groups.size());
    group.chip.peaks = {{Dtype::f16, 1e15}};
    group.chip.memory = {"memory", 1e9, kFast};
    group.chip.efficiency.kernel_launch_s = 0;
    group.nodes = kind.nodes;
    group.devices_per_node = kind.devices;
    group.intra_node = level(Topology::switched, kind.devices, kind.inside_bytes_per_s,
                             kind.inside_bytes_per_s, 0);
    group.node_bytes_per_s = kind.card_bytes_per_s;
    most = std::max(most, kind.card_bytes_per_s);
    nodes += kind.nodes;
    system.device_count += kind.nodes * kind.devices;
    system.groups.push_back(group);
  }
  if (nodes > 1) system.levels = {level(Topology::switched, nodes, most, most, 0)};
  return system;
}

double time_s(const AmpModel& model, const System& system, const AmpStrategy& strategy,
              std::int64_t global_batch, const Ends& ends) {
  return measure(amp_plan(model, system, strategy, global_batch, ends)).iteration_time_s;
}

TEST(AmpProfile, PlansTakeTheClosedFormForEqualStagesWithoutTraffic) {
  const Plan plan = amp_plan(equal_layers(8), system_of({{.nodes = 2, .devices = 4}}),
                             in_rank_order(4, 2, 1, 3), 60, {2, 4, 6, 8});
  // 10 micro-batches of 3 samples, 4 stages of 2 layers, 3 s each forward and backward.
  EXPECT_NEAR(measure(plan).iteration_time_s, (10 + 4 - 1) * 3 * 2 * 3, 1e-9);
  // The first stage keeps four micro-batches.
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  EXPECT_DOUBLE_EQ(memory[0].device_total(), 2 * 100 * 20 + 4 * 3 * 2 * 27);
  EXPECT_DOUBLE_EQ(memory[3].device_total(), 2 * 100 * 20 + 1 * 3 * 2 * 27);
}

TEST(AmpProfile, IssuingOperatorsDoesNotGrowWithTheMicroBatch) {
  AmpModel model = equal_layers(1);
  model.layers[0].operators = 10;
  System system = system_of({{}});
  const auto of = [&](int micro_batch, double operator_s) {
    system.groups[0].chip.efficiency.host_operator_s = operator_s;
    return time_s(model, system, in_rank_order(1, 1, 1, micro_batch), micro_batch, {1});
  };
  EXPECT_NEAR(of(1, 0.025), 2 * 0.25 + 3 * 0.75, 1e-12);
  EXPECT_NEAR(of(8, 0.025), 2 * 0.25 + 3 * 0.75 * 8, 1e-12);
  EXPECT_NEAR(of(8, 0.5), 2, 1e-12);  // At most the whole layer.
}

TEST(AmpProfile, ShardsDivideWorkAndCommunicateOnceEachWay) {
  AmpModel model = equal_layers(1);
  model.layers[0].operators = 10;
  // Of the 1 s of a single device 0.2 are issued; of the 0.9 s of two, 0.4 are work: 0.3 s to
  // communicate 10 elements of two bytes, half a message of each shard.
  model.forward_s[0] = {{1.0}, {0.9}};
  System system = system_of({{.devices = 2}});
  system.groups[0].chip.efficiency.host_operator_s = 0.02;
  const auto of = [&](int micro_batch) {
    return time_s(model, system, in_rank_order(1, 1, 2, micro_batch), micro_batch, {1});
  };
  EXPECT_NEAR(of(1), 2 * 0.2 + 3 * 0.4 + 2 * 0.3, 1e-12);
  EXPECT_NEAR(of(4), 2 * 0.2 + 4 * (3 * 0.4 + 2 * 0.3), 1e-12);
  // Messages of 10 and 40 bytes: twice as long, not four times.
  system.groups[0].intra_node.half_bytes = 20;
  EXPECT_NEAR(of(4), 2 * 0.2 + 4 * 3 * 0.4 + 2 * 2 * 0.3, 1e-12);
  // Without times of a single device all is work but issuing.
  model.degrees = {2};
  model.forward_s = {{{0.9}}};
  EXPECT_NEAR(of(4), 2 * 0.2 + 3 * 4 * 0.7, 1e-12);
}

TEST(AmpProfile, GradientsShareANodesCard) {
  const AmpModel model = equal_layers(1);
  // Two nodes of two devices, 100 bytes/s out of each node.
  const System system = system_of({{.nodes = 2, .devices = 2, .card_bytes_per_s = 100}});
  // tp 2: two groups of two devices in different nodes, 50 parameters of 4 bytes each; both leave
  // each node, at 50 bytes/s.
  EXPECT_NEAR(time_s(model, system, in_rank_order(1, 2, 2, 1), 4, {1}),
              2 * 3 * 0.5 + 2 * 0.5 * 200 / 50, 1e-9);
  // dp 4: each device sums half of the 400 bytes with its counterpart; both leave each node.
  EXPECT_NEAR(time_s(model, system, in_rank_order(1, 4, 1, 1), 4, {1}), 3 + 2 * 0.5 * 200 / 50,
              1e-9);
}

TEST(AmpProfile, TheSharedTableIsSummedInHalfPrecision) {
  AmpModel model = equal_layers(2);
  for (AmpLayer& layer : model.layers) {
    layer.output_elements = 0;
    layer.embedding_parameters = 300;
  }
  const System system = system_of({{.nodes = 2, .devices = 1, .card_bytes_per_s = 100}});
  EXPECT_NEAR(time_s(model, system, in_rank_order(2, 1, 1, 1), 1, {1, 2}), 6 + 300.0 * 2 / 100,
              1e-9);
  // A single stage has one table.
  const Plan plan = amp_plan(model, system, in_rank_order(1, 1, 1, 1), 1, {2});
  EXPECT_DOUBLE_EQ(memory_of_stages(plan)[0].device_total(), (2 * 100 + 300) * 20 + 2 * 27);
}

TEST(AmpProfile, AStageIsAsFastAsItsOwnDevices) {
  const AmpModel model = equal_layers(3);
  const System system = system_of({{}, {}});
  // Two layers of 3 s on the fast device, one of 6 s on the slow one.
  EXPECT_NEAR(time_s(model, system, in_rank_order(2, 1, 1, 1), 10, {2, 3}), (10 + 1) * 6, 1e-9);
  // Replicas on both: the slow one decides.
  EXPECT_NEAR(time_s(model, system, in_rank_order(1, 2, 1, 1), 20, {3}), 10 * 18, 1e-9);
}

TEST(AmpProfile, BetterHardwareNeverHurts) {
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
        for (double& layer_s : degree) layer_s = pick(random, 0, 10);
      }
    }
    System system =
        system_of({{pick(random, 1, 2), 4, 20.0 * pick(random, 1, 9), 10.0 * pick(random, 1, 9)},
                   {1, 4, 20.0 * pick(random, 1, 9), 10.0 * pick(random, 1, 9)}});
    for (DeviceGroup& group : system.groups) {
      group.chip.efficiency.host_operator_s = 0.01 * pick(random, 0, 2);
      group.intra_node.half_bytes = 10.0 * pick(random, 0, 1);
    }
    const int tp = pick(random, 1, 2);
    const int dp = pick(random, 0, 1) == 0 ? 2 : 4;
    const auto devices = static_cast<int>(system.device_count);
    if (devices % (dp * tp) != 0 || devices / (dp * tp) > layers) continue;
    const AmpStrategy strategy = in_rank_order(devices / (dp * tp), dp, tp, 1);
    Ends ends;
    for (int i = 1; i < strategy.pp; ++i) ends.push_back(i);
    ends.push_back(layers);
    const auto of = [&](const AmpModel& of_model, const System& on) {
      return time_s(of_model, on, strategy, 8L * dp, ends);
    };
    const double before_s = of(model, system);
    const Plan plan = amp_plan(model, system, strategy, 8L * dp, ends);
    const Verification verified = verify(plan);
    ASSERT_TRUE(verified.holds()) << n;
    ASSERT_NEAR(verified.iteration_time_s, before_s, 1e-9 * before_s) << n;
    System faster = system;
    for (DeviceGroup& group : faster.groups) {
      group.intra_node.bytes_per_s *= 2;
      group.intra_node.unit_bytes_per_s *= 2;
    }
    ASSERT_LE(of(model, faster), before_s * (1 + 1e-12)) << n;
    for (DeviceGroup& group : faster.groups) group.node_bytes_per_s *= 2;
    for (NetworkLevel& network : faster.levels) {
      network.bytes_per_s *= 2;
      network.unit_bytes_per_s *= 2;
    }
    ASSERT_LE(of(model, faster), before_s * (1 + 1e-12)) << n;
    // Twice as fast in everything: half the time.
    AmpModel quick = model;
    for (auto& type : quick.forward_s) {
      for (auto& degree : type) {
        for (double& layer_s : degree) layer_s /= 2;
      }
    }
    for (DeviceGroup& group : faster.groups) group.chip.efficiency.host_operator_s /= 2;
    ASSERT_NEAR(of(quick, faster), before_s / 2, 1e-9 * before_s) << n;
  }
}

TEST(AmpProfile, SaysWhatIsMissing) {
  const AmpModel model = equal_layers(2);
  EXPECT_THROW(model.forward_at(0, 4), Error);
  EXPECT_THROW(amp_profile(model, system_of({{}, {}, {}}), 1, 1), Error);
  EXPECT_THROW(amp_plan(model, system_of({{}}), in_rank_order(2, 1, 1, 1), 1, {1, 2}), Error);
}

}  // namespace
}  // namespace braid
