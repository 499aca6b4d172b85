#include "braid/profile/mapped_layer.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/graph/tensor_size.h"
#include "braid/profile/estimator.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/rank_graph.h"
#include "braid/system/catalogue.h"

#include "profile/groups_of.h"

namespace braid {
namespace {

Execution sharded(int tp, int micro_batch, bool sequence_parallel = false) {
  Execution how;
  how.tp = tp;
  how.micro_batch = micro_batch;
  how.sequence_parallel = sequence_parallel;
  return how;
}

double matmul_flops(const Graph& graph, const Layer& layer) {
  double flops = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    flops += forward_work(graph, graph.operators[static_cast<std::size_t>(id)]).matmul_flops;
  }
  return flops;
}

TEST(MappedLayer, RanksShareTheProductsOfALayer) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const LayerId block = 1;
  const std::vector<TensorId> leaving = leaving_tensors(graph)[1];
  const double whole = matmul_flops(graph, graph.layers[1]);
  for (const int tp : {1, 2, 4}) {
    for (const int micro_batch : {1, 3}) {
      const Graph rank = rank_layer(graph, block, sharded(tp, micro_batch, tp > 1), leaving);
      EXPECT_DOUBLE_EQ(matmul_flops(rank, rank.layers[kRankLayer]) * tp, whole * micro_batch)
          << tp << " " << micro_batch;
      ASSERT_EQ(rank.outputs.size(), 1U);
      const Tensor& output = rank.tensors[static_cast<std::size_t>(rank.outputs[0])];
      EXPECT_EQ(element_count(output).value_or(0), 512 * 768 * micro_batch / tp);
    }
  }
}

Chip small_sn40l(double sram_bytes, double bytes_per_s) {
  Chip chip = load_chip("sn40l");
  chip.on_chip->bytes = sram_bytes;
  chip.memory.bytes_per_s = bytes_per_s;
  return chip;
}

MappedTimes block_times(const Graph& graph, const Execution& how, const Chip& chip) {
  return mapped_times(graph, 1, layer_work(graph, 1), how, leaving_tensors(graph)[1], {{}, chip});
}

TEST(MappedLayer, MoreSramOrBandwidthIsNeverSlower) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const Execution how = sharded(2, 4);
  double last_s = std::numeric_limits<double>::infinity();
  for (const double sram_bytes : {1e6, 16e6, 512e6}) {
    double slower_s = std::numeric_limits<double>::infinity();
    for (const double bytes_per_s : {2e11, 3e12}) {
      const MappedTimes times = block_times(graph, how, small_sn40l(sram_bytes, bytes_per_s));
      const double time_s = times.forward_s + times.backward_s;
      EXPECT_LE(times.least_s, time_s * (1 + 1e-9));
      EXPECT_LE(time_s, slower_s * (1 + 1e-9)) << sram_bytes << " " << bytes_per_s;
      EXPECT_LE(times.forward_unkept_s, times.forward_s * (1 + 1e-9));
      EXPECT_GT(times.recomputed_s, 0);
      EXPECT_LE(times.recomputed_s, times.forward_s);
      slower_s = time_s;
    }
    EXPECT_LE(slower_s, last_s * (1 + 1e-9)) << sram_bytes;
    last_s = slower_s;
  }
}

/// Kernels of one block, alone and together: what stays on chip is not moved.
TEST(MappedLayer, SramThatHoldsTheLayerSavesTraffic) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const double small_s = block_times(graph, sharded(1, 8), small_sn40l(1e4, 2e11)).forward_unkept_s;
  const double large_s = block_times(graph, sharded(1, 8), small_sn40l(1e9, 2e11)).forward_unkept_s;
  EXPECT_LT(large_s, 0.7 * small_s);
}

TEST(MappedLayer, TimesOfAnEstimateAreTheMapping) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const System system = load_system("sn40l-16");
  const std::vector<OperatorWork> works = layer_work(graph, 1);
  MappedLayers mapped(graph, {}, system.groups.front().chip);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const bool sequence_parallel : {false, true}) {
      Execution how = sharded(4, 2, sequence_parallel);
      how.recompute = recompute;
      const MappedTimes times = block_times(graph, how, system.groups.front().chip);
      EXPECT_EQ(mapped.times(graph, 1, works, how), times);
      const LayerCost cost = estimate_layer({graph, 1, works, {}, &mapped}, how,
                                            {{}, test::groups_of(system, how), system});
      EXPECT_EQ(cost, estimate_layer(graph, 1, how, {}, test::groups_of(system, how), system));
      EXPECT_DOUBLE_EQ(cost.forward.compute_s,
                       recompute == Recompute::full ? times.forward_unkept_s : times.forward_s);
      EXPECT_DOUBLE_EQ(cost.backward_input.compute_s + cost.backward_weight.compute_s,
                       times.backward_s);
      EXPECT_GT(cost.backward_weight.compute_s, 0);
      EXPECT_DOUBLE_EQ(cost.recompute.compute_s, recompute == Recompute::none ? 0
                                                 : recompute == Recompute::full
                                                     ? times.forward_s
                                                     : times.recomputed_s);
    }
  }
}

/// Layers that leave a device the same work are mapped once.
TEST(MappedLayer, TheSameWorkIsMappedOnce) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const System system = load_system("sn40l-16");
  const std::vector<OperatorWork> works = layer_work(graph, 1);
  MappedLayers mapped(graph, {}, system.groups.front().chip);
  const MappedTimes first = mapped.times(graph, 1, works, sharded(4, 2));
  const std::size_t before = mapped.mapped();
  EXPECT_GT(before, 0U);
  EXPECT_EQ(mapped.times(graph, 2, layer_work(graph, 2), sharded(4, 2)), first);
  EXPECT_EQ(mapped.mapped(), before);
  EXPECT_NE(mapped.times(graph, 1, works, sharded(2, 2)), first);
  EXPECT_GT(mapped.mapped(), before);
}

}  // namespace
}  // namespace braid
