#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/decoder.h"
#include "braid/frontend/model.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"

#include "planners/tiny_decoder.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// Divides every bandwidth between devices by `times`.
void slow_down(System& system, double times) {
  for (DeviceGroup& group : system.groups) {
    group.intra_node.bytes_per_s /= times;
    group.intra_node.unit_bytes_per_s /= times;
    group.node_bytes_per_s /= times;
  }
  for (NetworkLevel& level : system.levels) {
    level.bytes_per_s /= times;
    level.unit_bytes_per_s /= times;
  }
}

/// Two racks of two nodes, where the system has four.
void add_racks(System& system) {
  if (system.groups[0].nodes < 4) return;
  NetworkLevel racks = system.levels.front();
  system.levels.front().size = 2;
  racks.name = "racks";
  racks.size = (system.groups[0].nodes + 1) / 2;
  racks.bytes_per_s /= 4;
  racks.unit_bytes_per_s = racks.bytes_per_s * 2 * 2;
  system.levels.push_back(racks);
}

TEST(PhysicalBound, NoPlanOfRandomJobsOnSlowNetworksBeatsIt) {
  std::mt19937_64 random(271);
  std::int64_t evaluated = 0;
  int bound_by_network = 0;
  std::array<int, 6> splits{};
  for (int trial = 0; trial < 60; ++trial) {
    const Graph graph = pick(random, 0, 1) == 0 ? test::tiny_graph(random, pick(random, 1, 5))
                                                : test::tiny_decoder(random);
    System system = test::tiny_system(random, pick(random, 2, 8), 1e12);
    add_racks(system);
    slow_down(system, std::pow(10.0, pick(random, -1, 4)));
    Job job;
    job.graph = &graph;
    job.global_batch = 1 << pick(random, 0, 5);
    if (trial % 3 == 0) job.sharding = ShardingSource::automatic;
    // All forms, and those that split one thing only.
    const auto devices = static_cast<int>(system.device_count);
    std::array<SpaceOptions, 6> spaces;
    spaces[1].tp = devices;
    spaces[2].cp = devices;
    spaces[3].dp = devices;
    spaces[4].pp = devices;
    spaces[5].ep = devices;
    for (std::size_t i = 0; i < spaces.size(); ++i) {
      Outcome all;
      try {
        all = plan_exhaustively(job, system, spaces[i], {}, {});
      } catch (const Error&) {
        continue;  // The model cannot be split so.
      }
      evaluated += all.evaluated;
      if (all.candidates.empty()) continue;
      const LowerBound& bound = all.physical_bound;
      ++splits[i];
      bound_by_network += bound.binding == "network" ? 1 : 0;
      ASSERT_LE(bound.time_s, all.objective * (1 + 1e-9)) << "trial " << trial << " space " << i;
    }
    const Outcome found = plan_braid(job, system, {}, {}, {});
    if (found.candidates.empty()) continue;
    ASSERT_LE(found.physical_bound.time_s, found.objective * (1 + 1e-9)) << "trial " << trial;
  }
  EXPECT_GT(evaluated, 10000);
  EXPECT_GT(bound_by_network, 20);
  for (const int split : splits) EXPECT_GT(split, 0);
}

TEST(PhysicalBound, NoPlanOfKnownModelsBeatsIt) {
  int planned = 0;
  for (const char* model : {"gpt2", "mixtral-8x7b", "t5-large", "resnet-50", "dlrm-thesis"}) {
    ModelOptions options;
    if (std::string(model) == "mixtral-8x7b") options.seq_len = 2048;
    const Graph graph = load_model(model, options);
    for (const double times : {1.0, 1e2, 1e5}) {
      System system = load_system("dgx-h200:3nodes");
      slow_down(system, times);
      Job job;
      job.graph = &graph;
      job.global_batch = 48;
      const Outcome outcome = plan_braid(job, system, {}, Budget{30}, {});
      if (outcome.candidates.empty()) continue;
      ++planned;
      EXPECT_LE(outcome.physical_bound.time_s, outcome.objective) << model << ", " << times;
      EXPECT_GT(outcome.physical_bound.network_s, 0);
    }
  }
  EXPECT_GT(planned, 8);
}

}  // namespace
}  // namespace braid
