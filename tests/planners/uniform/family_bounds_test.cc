#include "braid/planners/uniform/family_bounds.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/assignment_bound.h"
#include "braid/planners/job/outcomes.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// A configuration with and without what takes less memory.
std::vector<Configuration> variants(const Configuration& configuration) {
  std::vector<Configuration> variants = {configuration};
  for (const Zero zero : {Zero::gradients, Zero::parameters}) {
    variants.push_back(configuration);
    variants.back().recompute = Recompute::full;
    variants.back().zero = zero;
  }
  return variants;
}

/// Every configuration against the bounds of its family and its split, and those against times.
/// `decided` counts those of which the fullest stage's load is more than half of the time.
void expect_bounds_hold(const Job& job, const System& system, const SpaceOptions& space,
                        int& decided) {
  const SpaceLimits limits = space_limits(job, system);
  const ChainJob chain = chain_job(job, system);
  LayerTables tables(job, system);
  AssessmentScratch scratch(chain);
  int seen = 0;
  const std::vector<int> sizes = micro_batches_of(limits.global_batch, space);
  for (const Configuration& configuration : base_configurations(limits, space)) {
    Configuration family;
    family.tp = configuration.tp;
    family.cp = configuration.cp;
    family.ep = configuration.ep;
    family.whole_experts = configuration.whole_experts;
    const std::int64_t replicas = std::int64_t{configuration.pp} * configuration.dp;
    const FamilyBounds bounds = family_bounds(chain, tables, family, sizes, limits, space);
    const double family_bound_s = bounds.time_s(replicas, job.global_batch);
    Configuration split = configuration;
    split = with_form(split, {});
    split.order = AxisOrder::pipeline_outermost;
    const double bound_s = configuration_bound_s(chain, tables, configuration);
    ASSERT_GT(family_bound_s, 0);
    ASSERT_LE(family_bound_s, bound_s * (1 + 1e-9))
        << "tp " << configuration.tp << " cp " << configuration.cp << " ep " << configuration.ep
        << " pp " << configuration.pp << " dp " << configuration.dp << " on "
        << system.groups.front().devices_per_node << " a node";
    const double split_s =
        split_bound_s(chain, tables, split, job.global_batch, micro_batches(split, limits, space),
                      tensor_shardings(split, limits, space));
    for (const Configuration& held : variants(configuration)) {
      const double needed_bytes = tried_memory(chain, tables, held, scratch).needed_bytes;
      ASSERT_LE(bounds.device_bytes(replicas, limits.layers), needed_bytes * (1 + 1e-9));
      const LayerTable& table = tables.at(held);
      fill_fullest_syncs(table, held.pp, scratch.evaluator.context(held, zero_around(held.zero)),
                         scratch.syncs);
      const double load_s = fullest_load_s(table, held, scratch.syncs);
      const double range_s = std::max(configuration_bound_s(chain, tables, held), load_s);
      ASSERT_LE(split_s, range_s * (1 + 1e-9));
      const double infinity = std::numeric_limits<double>::infinity();
      const double time_s = assess(chain, tables, held, infinity, scratch).iteration_time_s;
      if (time_s == 0) continue;  // It does not fit.
      ASSERT_LE(range_s, time_s * (1 + 1e-9)) << "zero " << static_cast<int>(held.zero);
      decided += load_s > time_s / 2 ? 1 : 0;
    }
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

TEST(FamilyBounds, HoldForExpertsOnNodesOfAnySize) {
  std::mt19937_64 random(8);
  ModelOptions options;
  options.seq_len = 64;
  options.layers = 4;
  const Graph graph = load_model("mixtral-8x7b", options);
  int decided = 0;
  for (int trial = 0; trial < 25; ++trial) {
    const int devices = pick(random, 2, 16);
    System system = test::tiny_system(random, devices, 1e12);
    DeviceGroup& group = system.groups[0];
    group.devices_per_node = pick(random, 1, 6);
    group.intra_node.size = group.devices_per_node;
    group.nodes = (devices + group.devices_per_node - 1) / group.devices_per_node;
    if (group.nodes > 1 && system.levels.empty()) system.levels = {group.intra_node};
    if (group.nodes == 1) system.levels.clear();
    if (group.nodes > 1) system.levels[0].size = group.nodes;
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 12);
    SpaceOptions space;
    space.vp = 1;
    space.allow_offload = false;
    ASSERT_NO_FATAL_FAILURE(expect_bounds_hold(job, system, space, decided)) << "trial " << trial;
  }
}

TEST(FamilyBounds, HoldForAutoShardings) {
  std::mt19937_64 random(31);
  int decided = 0;
  for (int trial = 0; trial < 30; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 1, 4));
    if (pick(random, 0, 1) == 0) test::leave_unsharded(graph);
    if (pick(random, 0, 3) == 0) test::tie_layers(graph, 0, graph.layers.size() - 1);
    const System system = test::tiny_system(random, pick(random, 2, 6), 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 6);
    job.sharding = ShardingSource::automatic;
    ASSERT_NO_FATAL_FAILURE(expect_bounds_hold(job, system, {}, decided)) << "trial " << trial;
  }
}

TEST(FamilyBounds, HoldForLayersWithManyParametersAndTiedOnes) {
  std::mt19937_64 random(23);
  int decided = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 2, 7));
    if (pick(random, 0, 3) == 0) test::tie_layers(graph, 0, graph.layers.size() - 1);
    System system = test::tiny_system(random, pick(random, 1, 8), 1e12);
    system.groups[0].chip.efficiency.overlap_loss = 0.15 * pick(random, 0, 1);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 12);
    ASSERT_NO_FATAL_FAILURE(expect_bounds_hold(job, system, {}, decided)) << "trial " << trial;
  }
  EXPECT_GT(decided, 1000);
}

}  // namespace
}  // namespace braid
