#include "braid/profile/least_mapped_times.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/profile/estimated_layers.h"
#include "braid/profile/layer_profile.h"
#include "braid/system/catalogue.h"

#include "profile/groups_of.h"

namespace braid {
namespace {

/// No mapping takes less, pass by pass, with any degree, micro-batch and size of the on-chip
/// memory.
TEST(LeastMappedTimes, AreNotAboveThoseOfMappings) {
  double closest = 0;
  for (const char* model : {"gpt2", "deepseek-v2"}) {
    const Graph graph = load_model(model, {.seq_len = 256, .dims = {}});
    const auto layer = static_cast<LayerId>(graph.layers.size() / 2);
    const std::vector<OperatorWork> works = layer_work(graph, layer);
    const std::vector<TensorId> leaving = leaving_tensors(graph)[static_cast<std::size_t>(layer)];
    for (const double sram_bytes : {1e6, 512e6}) {
      Chip chip = load_chip("sn40l");
      chip.on_chip->bytes = sram_bytes;
      LeastMappedTimes all_least(graph, {}, chip);
      for (const int tp : {1, 4}) {
        for (const int micro_batch : {1, 3}) {
          Execution how;
          how.tp = tp;
          how.micro_batch = micro_batch;
          how.sequence_parallel = tp > 1;
          const MappedTimes& least = all_least.times(layer, works, how);
          const MappedTimes mapped = mapped_times(graph, layer, works, how, leaving, {{}, chip});
          SCOPED_TRACE(std::string(model) + " tp " + std::to_string(tp));
          EXPECT_GT(least.forward_s, 0);
          EXPECT_LE(least.forward_s, mapped.forward_s);
          EXPECT_LE(least.forward_unkept_s, mapped.forward_unkept_s);
          EXPECT_LE(least.recomputed_s, mapped.recomputed_s);
          EXPECT_LE(least.backward_s, mapped.backward_s);
          EXPECT_LE(least.least_s, mapped.forward_s + mapped.backward_s);
          closest = std::max(closest, least.least_s / (mapped.forward_s + mapped.backward_s));
        }
      }
    }
  }
  EXPECT_GT(closest, 0.5);
}

/// Nor are costs with all that hides behind these times, whatever trades time for memory.
TEST(LeastMappedTimes, MakeLayersCostNoMore) {
  const Graph graph = load_model("deepseek-v2", {.seq_len = 256, .dims = {}});
  const System system = load_system("sn40l-16");
  const EstimatedLayers layers(graph);
  const auto rough = layers.with_rough_times(system);
  ASSERT_NE(rough, nullptr);
  const auto costs = layers.on(system, {}), rough_costs = rough->on(system, {});
  const auto kind = static_cast<std::size_t>(graph.layers[graph.layers.size() / 2].kind);
  for (const int tp : {1, 4}) {
    for (const int cp : {1, 2}) {
      for (const int trades : {0, 1, 2, 3, 4, 5}) {
        Execution how;
        how.tp = tp;
        how.cp = cp;
        how.ep = 2;
        how.sequence_parallel = tp > 1;
        how.recompute = static_cast<Recompute>(trades % 3);
        how.offload_activations = how.offload_weights = trades > 2;
        const LayerGroups groups = test::groups_of(system, how);
        const LayerCost least = rough_costs->cost(kind, {}, how, groups);
        const LayerCost cost = costs->cost(kind, {}, how, groups);
        SCOPED_TRACE(name_of(how));
        EXPECT_GT(least.forward.total_s(), 0);
        EXPECT_LE(least.forward.total_s(), cost.forward.total_s() * (1 + 1e-12));
        EXPECT_LE(least.backward_s(), cost.backward_s() * (1 + 1e-12));
        EXPECT_EQ(least.stash_bytes, cost.stash_bytes);
        EXPECT_EQ(least.offloaded_bytes, cost.offloaded_bytes);
        EXPECT_EQ(least.working_bytes, cost.working_bytes);
        EXPECT_EQ(least.dense_parameters, cost.dense_parameters);
        EXPECT_EQ(least.expert_parameters, cost.expert_parameters);
      }
    }
  }
}

}  // namespace
}  // namespace braid
