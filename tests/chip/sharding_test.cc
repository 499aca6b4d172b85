#include "braid/chip/sharding.h"

#include <random>

#include <gtest/gtest.h>

#include "braid/chip/dataflow_setup.h"
#include "braid/chip/elimination.h"

#include "chip/reference_setup.h"
#include "chip/small_setup.h"

namespace braid {
namespace {

constexpr CollectiveRules kNoLatency{2, false};

TEST(Elimination, AgreesWithTryingAllValues) {
  std::mt19937_64 dice(3);
  for (int round = 0; round < 400; ++round) {
    PairwiseProblem problem;
    const std::size_t variables = dice() % 6 + 1;
    const auto random_cost = [&dice] {
      return RankedCost{static_cast<double>(dice() % 4), static_cast<double>(dice() % 3), 0};
    };
    for (std::size_t i = 0; i < variables; ++i) {
      problem.costs.emplace_back(dice() % 3 + 1);
      for (RankedCost& cost : problem.costs.back()) cost = random_cost();
    }
    for (std::size_t a = 0; a < variables; ++a) {
      for (std::size_t b = 0; b < variables; ++b) {
        if (a == b || dice() % 3 != 0) continue;
        PairwiseProblem::Pair pair{a, b, {}};
        pair.costs.resize(problem.costs[a].size() * problem.costs[b].size());
        for (RankedCost& cost : pair.costs) cost = random_cost();
        problem.pairs.push_back(pair);
      }
    }
    std::vector<std::size_t> values(variables, 0);
    RankedCost best = cost_of(problem, values);
    for (bool more = true; more;) {
      best = std::min(best, cost_of(problem, values));
      more = false;
      for (std::size_t i = 0; i < variables && !more; ++i) {
        more = ++values[i] < problem.costs[i].size();
        if (!more) values[i] = 0;
      }
    }
    const auto found = minimise(problem, 1000000);
    ASSERT_TRUE(found);
    EXPECT_EQ(cost_of(problem, *found), best);
    EXPECT_GE(cost_of(problem, descend(problem)), best);
  }
}

TEST(Elimination, RefusesWideTables) {
  PairwiseProblem problem;
  problem.costs.assign(8, std::vector<RankedCost>(4));
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = a + 1; b < 8; ++b) {
      problem.pairs.push_back({a, b, std::vector<RankedCost>(16)});
    }
  }
  EXPECT_FALSE(minimise(problem, 100));
  EXPECT_TRUE(minimise(problem, 1 << 14));
}

// Column-parallel then row-parallel with one all-reduce: Megatron-LM's way with two products.
TEST(Sharding, FindsColumnThenRowParallel) {
  const DataflowSetup setup = parse_dataflow_setup(small_setup_text(), "setup.txt");
  for (const bool bytes_only : {true, false}) {
    const ShardingResult result =
        find_sharding(setup.graph, setup.fabric, kNoLatency, {bytes_only, 0, 0});
    EXPECT_TRUE(result.optimal);
    EXPECT_EQ(result.dims[0], KernelDim::m);
    EXPECT_EQ(result.dims[1], KernelDim::m);
    EXPECT_EQ(result.dims[2], KernelDim::k);
    const double bytes = 1024 * 512 * 2;
    EXPECT_DOUBLE_EQ(result.cost, bytes_only ? bytes : 2 * bytes * 3 / 4 / 50e9);
    EXPECT_DOUBLE_EQ(
        sharding_cost(setup.graph, result.dims, setup.fabric, kNoLatency, {bytes_only, 0, 0}),
        result.cost);
  }
}

TEST(Sharding, DividesWorkAndRoundsUp) {
  DataflowSetup setup = parse_dataflow_setup(small_setup_text(), "setup.txt");
  setup.graph.kernels[0].m = 4097;
  const Sharding dims = {KernelDim::m, KernelDim::m, KernelDim::k, KernelDim::none};
  const ChipWork work = shard_kernels(setup.graph, dims, setup.fabric, kNoLatency, 8, 1);
  EXPECT_EQ(work.kernels[0].rows, 1025);
  EXPECT_DOUBLE_EQ(work.kernels[0].weight_bytes, 1025.0 * 1024 * 2);
  EXPECT_DOUBLE_EQ(work.tensors[0].bytes, 1025.0 * 512 * 2);
  EXPECT_DOUBLE_EQ(work.tensors[0].tile_bytes, 1025.0 * 2);
  EXPECT_EQ(work.kernels[2].depth, 1024);
  EXPECT_DOUBLE_EQ(work.kernels[2].network_bytes, 1024.0 * 512 * 2);
  EXPECT_DOUBLE_EQ(work.kernels[3].flops, 1024.0 * 512);
  EXPECT_DOUBLE_EQ(work.tensors[2].network_s, 0);
  const Sharding other = {KernelDim::m, KernelDim::none, KernelDim::k, KernelDim::none};
  EXPECT_GT(shard_kernels(setup.graph, other, setup.fabric, kNoLatency, 8, 1).tensors[0].network_s,
            0);
}

// "DFModel's inter-chip optimization suggests … four all-reduces per iteration (forward and
// backward) per layer" (DFModel, section VI-A).
TEST(Sharding, FourAllReducesPerTransformerLayer) {
  const auto setup = reference_setup("gpt3_1t_h100_2dtorus_hbm_nvlink");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const ShardingResult result =
      find_sharding(setup->graph, setup->fabric, kNoLatency, {true, 0, 0});
  EXPECT_TRUE(result.optimal);
  std::vector<std::string> reduced;
  for (std::size_t i = 0; i < result.dims.size(); ++i) {
    if (result.dims[i] == KernelDim::k) reduced.push_back(setup->graph.kernels[i].name);
  }
  EXPECT_EQ(reduced, (std::vector<std::string>{"PROJ_GEMM", "FFN1", "FFN0_bwd", "V_bwd"}));
  EXPECT_DOUBLE_EQ(result.cost, 4.0 * 25600 * 2048 * 2);
}

}  // namespace
}  // namespace braid
