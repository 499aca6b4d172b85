#include "braid/planners/job/tried_layouts.h"

#include <algorithm>
#include <array>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/index.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/job/outcomes.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

constexpr std::array kDealings = {Dealing::by_time, Dealing::by_number, Dealing::as_trainers,
                                  Dealing::by_stage};

/// Layers of the last chunks of all stages.
std::int32_t last_layers(const Ends& ends, int pp) {
  return ends.back() - (ends.size() > at(pp) ? ends[ends.size() - at(pp) - 1] : 0);
}

// What memory_floor() rests on for ranges of vp.
TEST(TriedLayouts, GiveLastChunksNoMoreForMoreChunks) {
  std::mt19937_64 random(12);
  for (int trial = 0; trial < 40; ++trial) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 4, 90));
    const System system = test::tiny_system(random, 8, 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = 8;
    const ChainJob chain = chain_job(job, system);
    LayerTables tables(job, system);
    const LayerTable& table = tables.at({});
    const auto layers = static_cast<int>(graph.layers.size());
    for (const Dealing how : kDealings) {
      for (int pp = 1; pp <= std::min(8, layers / 2); ++pp) {
        std::int32_t before = layers;
        for (int vp = 2; pp * vp <= layers; ++vp) {
          Ends ends;
          deal(chain, table, {pp, vp, job.global_batch}, how, ends);
          ASSERT_EQ(std::ssize(ends), pp * vp);
          ASSERT_EQ(ends.back(), layers);
          const std::int32_t now = last_layers(ends, pp);
          ASSERT_LE(now, before) << layers << " layers, pp " << pp << ", vp " << vp << ", "
                                 << static_cast<int>(how);
          before = now;
        }
      }
    }
  }
}

// Shapes are shared by tables whose layers cost something else, and stash peaks by configurations
// of other numbers of micro-batches.
TEST(TriedLayouts, CostWhatTheirLayersDealtOutAfreshCost) {
  std::mt19937_64 random(14);
  int compared = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 2, 30));
    const System system = test::tiny_system(random, 8, 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = 32;
    const ChainJob chain = chain_job(job, system);
    LayerTables tables(job, system);
    AssessmentScratch scratch(chain);
    const SpaceLimits limits = space_limits(job, system);
    for (const Configuration& one : base_configurations(limits, {})) {
      if (test::pick(random, 0, 9) > 0) continue;
      const LayerTable& table = tables.at(one);
      double least_bytes = 0;
      std::vector<Ends> dealt;
      for (const Dealing how : kDealings) {
        Ends ends;
        deal(chain, table, {one.pp, one.vp, one.num_micro_batches}, how, ends);
        Layout layout;
        fill_layout(chain.kind_of_layer, table.kinds, one.pp, one.vp, ends, layout);
        const double bytes = scratch.evaluator.memory(one, layout).needed_bytes;
        least_bytes = dealt.empty() ? bytes : std::min(least_bytes, bytes);
        if (std::find(dealt.begin(), dealt.end(), ends) != dealt.end()) continue;
        dealt.push_back(ends);
        const std::span<const TriedLayout> tried = tried_layouts(chain, tables, one);
        ASSERT_LE(dealt.size(), tried.size());
        ASSERT_EQ(tried[dealt.size() - 1].shape->ends, ends);
        const double time_s = scratch.evaluator.time_s(one, layout);
        ASSERT_LE(tried[dealt.size() - 1].least_s(one.num_micro_batches), time_s);
        ++compared;
      }
      ASSERT_EQ(tried_layouts(chain, tables, one).size(), dealt.size());
      ASSERT_EQ(tried_memory(chain, tables, one, scratch).needed_bytes, least_bytes);
    }
  }
  EXPECT_GT(compared, 1000);
}

// A range that memory_floor() rules out holds no assignment that fits; nor does one that is ruled
// out whatever times layers take.
TEST(TriedLayouts, NeedNoLessThanTheLeastOfTheirRange) {
  std::mt19937_64 random(13);
  int compared = 0;
  double closest = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 2, 40));
    const System system = test::tiny_system(random, 8, 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = 16;
    ChainJob chain = chain_job(job, system);
    chain.heavy_end = trial % 2 == 0;
    LayerTables tables(job, system);
    AssessmentScratch scratch(chain);
    const SpaceLimits limits = space_limits(job, system);
    for (Configuration first : base_configurations(limits, {})) {
      if (first.vp < 2 || test::pick(random, 0, 9) > 0) continue;
      first.offload_activations = test::pick(random, 0, 1) > 0;
      const ConfigurationRange range{first, limits.layers / first.pp};
      const MemoryFloor least = memory_floor(chain, tables, range, scratch);
      const MemoryFloor at_any_times = memory_floor_at_any_times(chain, tables, range, scratch);
      ASSERT_LE(at_any_times.device_bytes, least.device_bytes * (1 + 1e-9)) << "trial " << trial;
      ASSERT_LE(at_any_times.without_optimizer_bytes, least.without_optimizer_bytes * (1 + 1e-9));
      for (Configuration one = first; one.vp <= range.most_vp; ++one.vp) {
        const Evaluator::Memory memory = tried_memory(chain, tables, one, scratch);
        ASSERT_LE(least.device_bytes, memory.needed_bytes * (1 + 1e-9)) << "trial " << trial;
        ASSERT_LE(least.without_optimizer_bytes,
                  memory.needed_without_optimizer_bytes * (1 + 1e-9));
        closest = std::max(closest, least.device_bytes / memory.needed_bytes);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(closest, 0.9);
}

}  // namespace
}  // namespace braid
