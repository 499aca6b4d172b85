#include "braid/search/partition.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/search/even_splits.h"
#include "braid/search/one_f_one_b_partitioner.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

struct PartitionInstance {
  std::vector<ChainLayer> layers;
  int stages = 1;
  std::vector<double> handover_s;
  std::int64_t micro_batches = 1;
  MemoryForm memory;
};

/// Random chain with few distinct layers, as models have, or all different.
PartitionInstance random_partition(std::mt19937_64& random) {
  const auto pick = [&](int least, int most) {
    return static_cast<int>(least +
                            static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
  };
  PartitionInstance instance;
  const int count = pick(1, 9);
  const bool repeated = pick(0, 1) == 1;
  ChainLayer layer;
  for (int l = 0; l < count; ++l) {
    if (l == 0 || !repeated || pick(0, 4) == 0) {
      layer = {};
      layer.forward_s = pick(0, 12);
      layer.backward_s = pick(0, 3) == 0 ? pick(0, 25) : 2 * layer.forward_s;
      layer.dense_parameters = pick(0, 6);
      layer.expert_parameters = pick(0, 2);
      layer.stash_bytes = pick(0, 6);
      layer.offloaded_bytes = std::min<double>(layer.stash_bytes, pick(0, 2));
      layer.working_bytes = pick(0, 4);
    }
    instance.layers.push_back(layer);
  }
  instance.stages = pick(1, std::min(count, 5));
  const bool handovers = pick(0, 2) == 0;
  for (int i = 0; i + 1 < instance.stages; ++i) {
    instance.handover_s.push_back(handovers ? pick(0, 5) : 0);
  }
  instance.micro_batches = pick(1, 12);
  instance.memory.per_dense_parameter = pick(0, 3);
  instance.memory.per_expert_parameter = pick(0, 3);
  instance.memory.per_largest_layer_parameter = pick(0, 2);
  instance.memory.available_bytes = pick(0, 2) == 0 ? 1e9 : pick(5, 45);
  instance.memory.host_per_dense_parameter = pick(0, 2);
  if (pick(0, 2) == 0) instance.memory.host_available_bytes = pick(3, 30);
  return instance;
}

/// Path bound of one split, or infinity when a stage does not fit.
double split_path_s(const PartitionInstance& instance, const Ends& ends) {
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    RunSums sums;
    for (std::int32_t l = begin; l < ends[i]; ++l) {
      sums.add(instance.layers[static_cast<std::size_t>(l)]);
    }
    const auto in_flight = static_cast<double>(
        std::min<std::int64_t>(instance.micro_batches, static_cast<std::int64_t>(ends.size() - i)));
    const double host = sums.dense_parameters * instance.memory.host_per_dense_parameter +
                        sums.expert_parameters * instance.memory.host_per_expert_parameter +
                        sums.offloaded_bytes * in_flight;
    if (device_bytes(sums, in_flight, instance.memory) > instance.memory.available_bytes ||
        host > instance.memory.host_available_bytes) {
      return kInfinity;
    }
    forward_s.push_back(sums.forward_s);
    backward_s.push_back(sums.backward_s);
    begin = ends[i];
  }
  return one_f_one_b_path_s(forward_s, backward_s, instance.handover_s, instance.micro_batches);
}

template <typename Visit>
void each_split(int layers, int stages, const Visit& visit, Ends prefix = {}) {
  const int begin = prefix.empty() ? 0 : prefix.back();
  if (static_cast<int>(prefix.size()) + 1 == stages) {
    prefix.push_back(layers);
    if (begin < layers) visit(prefix);
    return;
  }
  for (int end = begin + 1; end < layers; ++end) {
    Ends next = prefix;
    next.push_back(end);
    each_split(layers, stages, visit, next);
  }
}

TEST(Partition, OneFOneBEqualsExhaustiveSearch) {
  std::mt19937_64 random(20240601);
  int feasible = 0;
  int memory_bound = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const PartitionInstance instance = random_partition(random);
    double best = kInfinity;
    each_split(static_cast<int>(instance.layers.size()), instance.stages,
               [&](const Ends& ends) { best = std::min(best, split_path_s(instance, ends)); });
    const auto found = partition_one_f_one_b(instance.layers, instance.handover_s,
                                             instance.micro_batches, instance.memory);
    ASSERT_EQ(found.has_value(), best < kInfinity) << "trial " << trial;
    if (!found) continue;
    ++feasible;
    memory_bound += found->memory_bound ? 1 : 0;
    // The reported path is that of the reported split, which fits memory.
    ASSERT_DOUBLE_EQ(found->path_s, split_path_s(instance, found->ends)) << "trial " << trial;
    ASSERT_NEAR(found->path_s, best, 1e-9 * best) << "trial " << trial;
    if (!found->memory_bound) {
      PartitionInstance roomy = instance;
      roomy.memory.available_bytes = kInfinity;
      const auto free =
          partition_one_f_one_b(roomy.layers, roomy.handover_s, roomy.micro_batches, roomy.memory);
      ASSERT_NEAR(found->path_s, free->path_s, 1e-9 * best) << "trial " << trial;
    }
  }
  EXPECT_GT(feasible, 5000);
  EXPECT_GT(memory_bound, 400);
}

/// Few memories of large stashes: the last stages take what the first ones have no room for, so
/// that some stage's first layer is often too big.
PartitionInstance tight_instance(std::mt19937_64& random) {
  PartitionInstance instance = random_partition(random);
  for (ChainLayer& layer : instance.layers) {
    layer.stash_bytes = static_cast<double>(random() % 12);
    layer.offloaded_bytes = std::min(layer.offloaded_bytes, layer.stash_bytes);
    layer.working_bytes = static_cast<double>(random() % 20);
  }
  instance.memory.available_bytes = static_cast<double>(20 + random() % 40);
  return instance;
}

TEST(Partition, PartitionerKeepsNothingWrongFromOnePipelineOrMemoryToTheNext) {
  std::mt19937_64 random(31);
  int feasible = 0;
  int raised = 0;  // Splits that memory makes slower.
  for (int trial = 0; trial < 1500; ++trial) {
    PartitionInstance instance = tight_instance(random);
    OneFOneBPartitioner partitioner(instance.layers);
    for (int pipeline = 0; pipeline < 3; ++pipeline) {
      if (pipeline > 0) {
        const PartitionInstance other = random_partition(random);
        if (other.stages <= std::ssize(instance.layers) && random() % 2 == 0) {
          instance.stages = other.stages;
          instance.handover_s = other.handover_s;
        }
        if (random() % 2 == 0) instance.micro_batches = other.micro_batches;
        for (double& handover_s : instance.handover_s) {
          handover_s = static_cast<double>(random() % 6);
        }
      }
      partitioner.set_pipeline(instance.handover_s, instance.micro_batches);
      MemoryForm endless;
      endless.available_bytes = kInfinity;
      const auto free = partitioner.within(endless);
      ASSERT_TRUE(free);
      for (int memory = 0; memory < 2; ++memory) {
        instance.memory.per_dense_parameter = memory;
        double best = kInfinity;
        each_split(static_cast<int>(instance.layers.size()), instance.stages,
                   [&](const Ends& ends) { best = std::min(best, split_path_s(instance, ends)); });
        const auto found = partitioner.within(instance.memory, free->excess_s);
        ASSERT_EQ(found.has_value(), best < kInfinity) << "trial " << trial;
        const auto fresh = partition_one_f_one_b(instance.layers, instance.handover_s,
                                                 instance.micro_batches, instance.memory);
        ASSERT_EQ(fresh.has_value(), found.has_value()) << "trial " << trial;
        if (!found) continue;
        ++feasible;
        raised += found->excess_s > free->excess_s ? 1 : 0;
        ASSERT_NEAR(found->path_s, best, 1e-9 * best) << "trial " << trial;
        // The same, not only as good.
        ASSERT_EQ(found->ends, fresh->ends) << "trial " << trial;
        ASSERT_EQ(found->path_s, fresh->path_s) << "trial " << trial;
        ASSERT_EQ(found->excess_s, fresh->excess_s) << "trial " << trial;
      }
    }
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(raised, 100);
}

TEST(Partition, EnumerationVisitsExactlyTheSplitsBelowTheBound) {
  std::mt19937_64 random(2718);
  std::size_t visited = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    PartitionInstance instance = random_partition(random);
    std::vector<double> paths;
    each_split(static_cast<int>(instance.layers.size()), instance.stages, [&](const Ends& ends) {
      const double path_s = split_path_s(instance, ends);
      if (path_s < kInfinity) paths.push_back(path_s);
    });
    if (paths.empty()) continue;
    const double below_s = paths[random() % paths.size()] + 0.5;
    std::set<Ends> found;
    const bool complete =
        for_each_partition_below(instance.layers, instance.handover_s, instance.micro_batches,
                                 instance.memory, {.path_below_s = below_s}, [&](const Ends& ends) {
                                   EXPECT_TRUE(found.insert(ends).second);
                                   EXPECT_LT(split_path_s(instance, ends), below_s);
                                 });
    ASSERT_TRUE(complete);
    const auto expected =
        std::count_if(paths.begin(), paths.end(), [&](double path_s) { return path_s < below_s; });
    ASSERT_EQ(found.size(), static_cast<std::size_t>(expected)) << "trial " << trial;
    visited += found.size();
    std::int64_t some = 0;
    PartitionLimits limits{.path_below_s = below_s};
    limits.most = expected - 1;
    limits.most_of_more = expected / 2;
    EXPECT_FALSE(for_each_partition_below(instance.layers, instance.handover_s,
                                          instance.micro_batches, instance.memory, limits,
                                          [&](const Ends&) { ++some; }));
    EXPECT_EQ(some, expected / 2);
  }
  EXPECT_GT(visited, 5000u);
}

TEST(Partition, MinMaxEqualsExhaustiveSearch) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const PartitionInstance instance = random_partition(random);
    double best = kInfinity;
    const auto largest = [&](const Ends& ends) {
      double most = 0;
      std::int32_t begin = 0;
      for (const std::int32_t end : ends) {
        double sum = 0;
        for (; begin < end; ++begin)
          sum += instance.layers[static_cast<std::size_t>(begin)].time_s();
        most = std::max(most, sum);
      }
      return most;
    };
    each_split(static_cast<int>(instance.layers.size()), instance.stages,
               [&](const Ends& ends) { best = std::min(best, largest(ends)); });
    const auto ends = partition_min_max(instance.layers, instance.stages);
    ASSERT_TRUE(ends);
    EXPECT_EQ(ends->back(), static_cast<std::int32_t>(instance.layers.size()));
    EXPECT_DOUBLE_EQ(largest(*ends), best) << "trial " << trial;
    EXPECT_DOUBLE_EQ(EvenSplits(instance.layers).split(instance.stages, nullptr), best);
  }
}

/// Fills pieces from the last one backwards, layer by layer, with bounds raised to the least at
/// which a piece could take one more.
Ends plain_even_split(const std::vector<ChainLayer>& layers, int pieces) {
  double bound = 0;
  for (const ChainLayer& layer : layers) bound = std::max(bound, layer.time_s());
  for (;;) {
    Ends ends(static_cast<std::size_t>(pieces));
    double next_bound = kInfinity;
    auto left = static_cast<int>(layers.size());
    for (int i = pieces - 1; i >= 0; --i) {
      ends[static_cast<std::size_t>(i)] = left;
      double time_s = 0;
      while (left > i) {
        const double larger = time_s + layers[static_cast<std::size_t>(left - 1)].time_s();
        if (larger > bound) {
          next_bound = std::min(next_bound, larger);
          break;
        }
        time_s = larger;
        --left;
      }
    }
    if (left == 0) return ends;
    bound = next_bound;
  }
}

TEST(Partition, EvenSplitsOfLikeNeighboursAreThoseFoundLayerByLayer) {
  std::mt19937_64 random(8);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<ChainLayer> layers;
    while (layers.size() < 40) {
      ChainLayer layer;
      layer.forward_s = 0.1 * test::pick(random, 0, 4);
      layers.insert(layers.end(), static_cast<std::size_t>(test::pick(random, 1, 20)), layer);
    }
    const EvenSplits even(layers);
    for (int pieces = 1; pieces <= static_cast<int>(layers.size()); ++pieces) {
      Ends ends;
      const double slowest_s = even.split(pieces, &ends);
      ASSERT_EQ(ends, plain_even_split(layers, pieces)) << "trial " << trial;
      ASSERT_EQ(even.split(pieces, nullptr), slowest_s);
    }
  }
}

TEST(Partition, MoreMemoryNeverHurts) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 2000; ++trial) {
    PartitionInstance instance = random_partition(random);
    instance.memory.available_bytes = 40;
    const auto tight = partition_one_f_one_b(instance.layers, instance.handover_s,
                                             instance.micro_batches, instance.memory);
    instance.memory.available_bytes = 60;
    const auto roomy = partition_one_f_one_b(instance.layers, instance.handover_s,
                                             instance.micro_batches, instance.memory);
    if (!tight) continue;
    ASSERT_TRUE(roomy);
    EXPECT_LE(roomy->path_s, tight->path_s * (1 + 1e-12));
  }
}

TEST(Partition, FewerLayersThanStagesHasNoSplit) {
  const std::vector<ChainLayer> layers(3);
  EXPECT_FALSE(partition_one_f_one_b(layers, std::vector<double>(3), 8, MemoryForm{}));
  EXPECT_FALSE(partition_min_max(layers, 4));
}

TEST(Partition, EqualStagesWithoutHandoverReachTheClosedForm) {
  // (m + p - 1)·(f + b), Narayanan et al. 2021, section 2.2.
  for (int stages = 1; stages <= 8; ++stages) {
    for (std::int64_t m = stages; m <= 20; ++m) {
      const std::vector<double> f(static_cast<std::size_t>(stages), 1.0);
      const std::vector<double> b(static_cast<std::size_t>(stages), 2.0);
      const std::vector<double> handover(static_cast<std::size_t>(stages), 0.0);
      EXPECT_DOUBLE_EQ(one_f_one_b_path_s(f, b, handover, m),
                       3.0 * static_cast<double>(m + stages - 1));
    }
  }
}

}  // namespace
}  // namespace braid
