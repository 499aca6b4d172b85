#include "braid/dataflow/sharding.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/chip/elimination.h"
#include "braid/dataflow/dataflow_setup.h"
#include "braid/dataflow/shard_messages.h"

#include "dataflow/random_kernels.h"
#include "dataflow/reference_setup.h"
#include "dataflow/small_setup.h"

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

// A row of variables, against dynamic programming from its one end to the other.
TEST(Elimination, LongRows) {
  constexpr std::size_t kCount = 5000, kValues = 3;
  std::mt19937_64 dice(5);
  const auto cost = [&dice] { return RankedCost{static_cast<double>(dice() % 50), 0, 0}; };
  PairwiseProblem problem;
  std::array<double, kValues> best{};
  for (std::size_t i = 0; i < kCount; ++i) {
    problem.costs.emplace_back();
    for (std::size_t v = 0; v < kValues; ++v) problem.costs.back().push_back(cost());
    if (i > 0) {
      problem.pairs.push_back({i - 1, i, {}});
      for (std::size_t v = 0; v < kValues * kValues; ++v) {
        problem.pairs.back().costs.push_back(cost());
      }
    }
    std::array<double, kValues> next{};
    for (std::size_t v = 0; v < kValues; ++v) {
      next[v] = i == 0 ? 0 : 1e9;
      for (std::size_t u = 0; i > 0 && u < kValues; ++u) {
        next[v] = std::min(next[v], best[u] + problem.pairs.back().costs[u * kValues + v][0]);
      }
      next[v] += problem.costs.back()[v][0];
    }
    best = next;
  }
  const auto values = minimise(problem, 1000);
  ASSERT_TRUE(values);
  EXPECT_EQ(cost_of(problem, *values)[0], *std::min_element(best.begin(), best.end()));
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

/// Chips along the axes that divide something.
template <typename Divides>
double parts_along(const std::vector<FabricDimension>& axes, Divides divides) {
  double parts = 1;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (divides(a)) parts *= static_cast<double>(axes[a].size);
  }
  return parts;
}

/// What a sharding costs under a goal: kernel by kernel and tensor by tensor.
double sharding_cost(const KernelGraph& graph, const Sharding& dims, const Fabric& fabric,
                     const CollectiveRules& rules, const ShardingGoal& goal) {
  const std::vector<FabricDimension> axes = shard_axes(fabric);
  double total = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Kernel& kernel = graph.kernels[i];
    const ShardMessage sum = reduction(kernel, dims[i], graph.word_bytes, axes, fabric, rules);
    const double rate = kernel.matrix ? goal.matrix_s_per_flop : goal.elementwise_s_per_flop;
    const double parts =
        parts_along(axes, [&](std::size_t a) { return dims[i].along[a] != KernelDim::none; });
    total += goal.bytes_only ? sum.bytes : sum.seconds + rate * kernel_flops(kernel) / parts;
  }
  for (const KernelTensor& tensor : graph.tensors) {
    const auto from = static_cast<std::size_t>(tensor.from);
    const auto to = static_cast<std::size_t>(tensor.to);
    const Kernel& writer = graph.kernels[from];
    const double bytes = output_elements(writer) * graph.word_bytes;
    const TensorLayout out = output_layout(writer, dims[from]);
    const TensorLayout in = input_layout(graph.kernels[to], dims[to], writer, graph.word_bytes);
    const ShardMessage change = LayoutChanges(bytes, axes, fabric, rules).of(out, in);
    const double parts =
        parts_along(axes, [&](std::size_t a) { return out[a] != ShardLayout::whole; });
    total += goal.bytes_only ? change.bytes : change.seconds + goal.s_per_byte * bytes / parts;
  }
  return total;
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

ShardingGoal time_goal(std::mt19937_64& dice, bool by_axis) {
  ShardingGoal goal{false, 1e-9 / static_cast<double>(dice() % 100 + 1), 0};
  goal.matrix_s_per_flop = 1e-12 / static_cast<double>(dice() % 100 + 1);
  goal.by_axis = by_axis;
  return goal;
}

/// The cost of a graph's best sharding, by trying all of them.
double least_of_all(const KernelGraph& graph, const Fabric& fabric, const CollectiveRules& rules,
                    const ShardingGoal& goal) {
  std::vector<std::vector<KernelDims>> options;
  for (const Kernel& kernel : graph.kernels) options.push_back(grid_options(kernel, 2));
  std::vector<std::size_t> choice(options.size(), 0);
  Sharding dims(options.size());
  double least = kInfinity;
  for (bool more = true; more;) {
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = options[i][choice[i]];
    least = std::min(least, sharding_cost(graph, dims, fabric, rules, goal));
    more = false;
    for (std::size_t i = 0; i < choice.size() && !more; ++i) {
      more = ++choice[i] < options[i].size();
      if (!more) choice[i] = 0;
    }
  }
  return least;
}

TEST(ShardingByAxis, AgreesWithTryingAllShardings) {
  std::mt19937_64 dice(17);
  for (int round = 0; round < 40; ++round) {
    const Fabric fabric = random_fabric(dice, 2);
    const KernelGraph graph = random_kernels(dice, round % 10 == 0 ? 3 : 1 + dice() % 2);
    const ShardingGoal goal = time_goal(dice, true);
    const CollectiveRules rules{2, dice() % 2 == 0};
    const double least = least_of_all(graph, fabric, rules, goal);
    const ShardingResult found = find_sharding(graph, fabric, rules, goal);
    ASSERT_TRUE(found.optimal);
    ASSERT_NEAR(found.cost, least, 1e-12 * least) << round;
    EXPECT_NEAR(sharding_cost(graph, found.dims, fabric, rules, goal), least, 1e-12 * least);
  }
}

TEST(ShardingByAxis, IsNeverWorseThanOneDimensionForAllAxes) {
  std::mt19937_64 dice(23);
  int better = 0;
  for (int round = 0; round < 100; ++round) {
    const std::size_t axes = round % 10 == 0 ? 3 : 1 + dice() % 2;
    Fabric fabric = random_fabric(dice, axes);
    const KernelGraph graph = random_kernels(dice, axes == 3 ? 2 : 1 + dice() % 6);
    ShardingGoal goal = time_goal(dice, false);
    const double one = find_sharding(graph, fabric, kNoLatency, goal).cost;
    goal.by_axis = true;
    const double grid = find_sharding(graph, fabric, kNoLatency, goal).cost;
    ASSERT_LE(grid, one * (1 + 1e-12)) << round;
    better += grid < 0.9 * one ? 1 : 0;
    if (axes == 1) {
      ASSERT_EQ(grid, one) << round;
    }
    // Nor do faster links hurt.
    fabric.dimensions[dice() % fabric.dimensions.size()].bytes_per_s *= 2;
    ASSERT_LE(find_sharding(graph, fabric, kNoLatency, goal).cost, grid * (1 + 1e-12)) << round;
  }
  // Of a tenth or more; rounding decides none of them.
  EXPECT_GT(better, 0);
}

// The order of kernels, the place of dimensions that divide none, and which of two dimensions that
// are alike comes first.
TEST(ShardingByAxis, RelabellingChangesNothing) {
  std::mt19937_64 dice(31);
  for (int round = 0; round < 60; ++round) {
    Fabric fabric = random_fabric(dice, 2);
    const KernelGraph graph = random_kernels(dice, 1 + dice() % 5);
    const ShardingGoal goal = time_goal(dice, true);
    const double cost = find_sharding(graph, fabric, kNoLatency, goal).cost;
    KernelGraph turned = graph;
    std::reverse(turned.kernels.begin(), turned.kernels.end());
    std::reverse(turned.tensors.begin(), turned.tensors.end());
    const auto last = static_cast<std::int32_t>(graph.kernels.size()) - 1;
    for (KernelTensor& tensor : turned.tensors) tensor = {last - tensor.from, last - tensor.to};
    std::stable_partition(
        fabric.dimensions.begin(), fabric.dimensions.end(),
        [](const FabricDimension& dimension) { return dimension.role != FabricRole::tensor; });
    fabric.dimensions.push_back({FabricShape::ring, 1, 1e9, FabricRole::tensor});
    EXPECT_NEAR(find_sharding(turned, fabric, kNoLatency, goal).cost, cost, 1e-12 * cost) << round;
    // Of two dimensions that are alike, what either divides the other may divide as well.
    Fabric alike = fabric;
    alike.dimensions = {{FabricShape::ring, 2, 1e9, FabricRole::tensor},
                        {FabricShape::ring, 2, 1e9, FabricRole::tensor}};
    for (const Kernel& kernel : graph.kernels) {
      for (const KernelDims& dims : grid_options(kernel, 2)) {
        KernelDims swapped;
        swapped.along = {dims.along[1], dims.along[0], dims.along[0]};
        KernelGraph alone;
        alone.kernels = {kernel};
        const double one = sharding_cost(alone, {dims}, alike, kNoLatency, goal);
        EXPECT_NEAR(sharding_cost(alone, {swapped}, alike, kNoLatency, goal), one, 1e-12 * one);
      }
    }
  }
}

/// The part of a side, split like this, that lies on a chip: parts nested in the axes' order.
std::pair<double, double> part_of_side(const TensorLayout& layout, ShardLayout side,
                                       const std::vector<FabricDimension>& axes,
                                       std::int64_t chip) {
  double first = 0, length = 1;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::int64_t place = chip % axes[a].size;
    chip /= axes[a].size;
    if (layout[a] != side) continue;
    length /= static_cast<double>(axes[a].size);
    first += static_cast<double>(place) * length;
  }
  return {first, first + length};
}

// Nothing is sent just where each chip already has what it shall have; and no way round is shorter.
TEST(LayoutChanges, AreFreeWhereChipsHaveTheirParts) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{2, 3}, {3, 2}, {2, 3, 2}}) {
    Fabric fabric;
    std::int64_t chips = 1;
    for (const std::int64_t size : sizes) {
      fabric.dimensions.push_back({FabricShape::ring, size, 1e9, FabricRole::tensor});
      chips *= size;
    }
    const std::vector<FabricDimension> axes = shard_axes(fabric);
    LayoutChanges changes(1e6, axes, fabric, kNoLatency);
    std::vector<TensorLayout> all;
    for (const ShardLayout x : {ShardLayout::whole, ShardLayout::rows, ShardLayout::columns}) {
      for (const ShardLayout y : {ShardLayout::whole, ShardLayout::rows, ShardLayout::columns}) {
        if (sizes.size() == 2) all.push_back({x, y, y});
        for (const ShardLayout z : {ShardLayout::whole, ShardLayout::rows, ShardLayout::columns}) {
          if (sizes.size() == 3) all.push_back({x, y, z});
        }
      }
    }
    for (const TensorLayout& from : all) {
      for (const TensorLayout& to : all) {
        bool has = true;
        for (std::int64_t chip = 0; chip < chips; ++chip) {
          for (const ShardLayout side : {ShardLayout::rows, ShardLayout::columns}) {
            const auto before = part_of_side(from, side, axes, chip);
            const auto after = part_of_side(to, side, axes, chip);
            has = has && before.first <= after.first + 1e-9 && after.second <= before.second + 1e-9;
          }
        }
        const ShardMessage sent = changes.of(from, to);
        EXPECT_EQ(sent.seconds == 0, has);
        EXPECT_EQ(sent.bytes == 0, has);
        EXPECT_LE(sent.seconds, 1);
      }
    }
  }
}

// What a chip then has and sends is what the search charged.
TEST(ShardingByAxis, IsWhatChipsDo) {
  std::mt19937_64 dice(29);
  for (int round = 0; round < 40; ++round) {
    const Fabric fabric = random_fabric(dice, 2);
    const KernelGraph graph = random_kernels(dice, 1 + dice() % 6);
    ShardingGoal goal{false, 0, 0};
    goal.by_axis = true;
    const ShardingResult found = find_sharding(graph, fabric, kNoLatency, goal);
    const ChipWork work = shard_kernels(graph, found.dims, fabric, kNoLatency, 1, 0);
    double sent_s = 0;
    const std::vector<FabricDimension> axes = shard_axes(fabric);
    for (std::size_t i = 0; i < work.kernels.size(); ++i) {
      sent_s += work.kernels[i].network_s;
      double share = kernel_flops(graph.kernels[i]);
      for (std::size_t a = 0; a < axes.size(); ++a) {
        const bool divides = found.dims[i].along[a] != KernelDim::none;
        share /= divides ? static_cast<double>(axes[a].size) : 1;
      }
      EXPECT_GE(work.kernels[i].flops, share * (1 - 1e-12));
    }
    for (const ChipTensor& tensor : work.tensors) sent_s += tensor.network_s;
    EXPECT_NEAR(sent_s, found.cost, 1e-12 * found.cost);
  }
}

// M along the fast axis and K along the slow one: half as much is summed over slow links.
TEST(ShardingByAxis, SumsLessOverSlowLinks) {
  KernelGraph graph;
  Kernel kernel;
  kernel.name = "product";
  kernel.weights = true;
  kernel.m = kernel.k = kernel.n = 1024;
  graph.kernels = {kernel};
  Fabric fabric;
  fabric.dimensions = {{FabricShape::ring, 2, 100e9, FabricRole::tensor},
                       {FabricShape::ring, 4, 1e9, FabricRole::tensor}};
  const std::vector<FabricDimension> axes = shard_axes(fabric);
  KernelDims dims;
  dims.along = {KernelDim::m, KernelDim::k, KernelDim::k};
  const double bytes = 1024.0 * 1024 * 2;
  const ShardMessage sum = reduction(kernel, dims, 2, axes, fabric, kNoLatency);
  EXPECT_DOUBLE_EQ(sum.bytes, bytes / 2);
  EXPECT_DOUBLE_EQ(sum.seconds, 2 * bytes / 2 * 3 / 4 / 1e9);
  const ShardShape shape = shard_shape(kernel, dims, axes);
  EXPECT_EQ(shape.m, 512);
  EXPECT_EQ(shape.k, 256);
  EXPECT_EQ(shape.n, 1024);
  // A reader that wants rows along both axes takes its part for nothing; one that wants columns
  // along the first exchanges over the fast axis what the second leaves.
  Kernel reader = kernel;
  reader.matrix = reader.weights = false;
  reader.k = 1;
  LayoutChanges changes(bytes, axes, fabric, kNoLatency);
  const TensorLayout left = output_layout(kernel, dims);
  EXPECT_EQ(changes.of(left, input_layout(reader, KernelDims(KernelDim::m), kernel, 2)).seconds, 0);
  const ShardMessage turned =
      changes.of(left, input_layout(reader, KernelDims(KernelDim::n), kernel, 2));
  EXPECT_DOUBLE_EQ(turned.bytes, bytes);
  EXPECT_DOUBLE_EQ(turned.seconds, bytes * 4 / 8 / 100e9);
}

// One chip has all of every kernel, and sends nothing.
TEST(Sharding, AmongOneChipIsAllOfIt) {
  const DataflowSetup setup = parse_dataflow_setup(small_setup_text(), "setup.txt");
  for (const std::int64_t tile : {0, 1, 7}) {
    ChipWork sharded =
        shard_kernels(setup.graph, Sharding(setup.graph.kernels.size()), Fabric{}, {}, 1, tile);
    for (ChipKernel& kernel : sharded.kernels) kernel.network_bytes = 0;
    EXPECT_EQ(whole_work(setup.graph, tile), sharded) << tile;
  }
}

}  // namespace
}  // namespace braid
