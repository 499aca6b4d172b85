#include "braid/profile/layer_work.h"

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/profile/trainer_behaviour.h"

namespace braid {
namespace {

constexpr SelectiveParts kCoreAlone = {
    .attention_output = false, .norms = false, .expert_norms = false, .activations = false};

struct KeptBytes {
  double without = 0, selective = 0;
};

KeptBytes kept_bytes(const Graph& graph, LayerId layer) {
  KeptBytes sum;
  for (const OperatorWork& work : layer_work(graph, layer)) {
    for (const LayerKept& each : work.kept) {
      if (!each.is_first) continue;
      sum.without += each.tensor.bytes;
      if (each.is_selective) sum.selective += each.tensor.bytes;
    }
  }
  return sum;
}

// Widths of what a token leaves, by hand: the block's input, Q, K and V, the sum before the second
// norm and both factors of the product; without recomputation also two norms' outputs, attention's
// (with a figure in f32 for each head) and the product's.
TEST(LayerWork, SelectiveRecomputationOfALlamaKeepsWhatItStartsFrom) {
  const Graph graph = load_model("llama-3-70b", {.seq_len = 1024, .dims = {}});
  const double hidden = 8192, keys = 1024, inner = 28672, heads = 64;
  const double from = 2 * hidden + (hidden + 2 * keys) + 2 * inner;
  const KeptBytes kept = kept_bytes(graph, 5);
  EXPECT_EQ(kept.selective, 1024 * 2 * from);
  EXPECT_EQ(kept.without, 1024 * (2 * (from + 3 * hidden + inner) + 4 * heads));
}

// Korthikanti et al. 2022, equations 1 and 3: s·b·h·(34 + 5·a·s/h) bytes, and 34·s·b·h where
// attention's core is computed again.
TEST(LayerWork, RecomputingAttentionsCoreLeavesThirtyFourBytes) {
  Graph graph = load_model("gpt3-175b", {.seq_len = 2048, .dims = {}});
  adapt_graph({.flash_attention = false}, graph);
  graph.selective = kCoreAlone;
  const double s = 2048, h = 12288, a = 96;
  const KeptBytes kept = kept_bytes(graph, 5);
  EXPECT_EQ(kept.selective, 34 * s * h);
  EXPECT_EQ(kept.without, s * h * (34 + 5 * a * s / h));
}

/// Tensors that are at hand in a layer's backward pass when selective recomputation has done what
/// it marks, starting from what it keeps.
std::set<TensorId> at_hand(const Graph& graph, const Layer& layer,
                           const std::vector<OperatorWork>& works) {
  std::set<TensorId> found;
  for (const OperatorWork& work : works) {
    for (const LayerKept& each : work.kept) {
      if (each.is_selective) found.insert(each.tensor.tensor);
    }
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!works[i].is_recomputed) continue;
    const Operator& op = graph.operators[static_cast<std::size_t>(layer.first) + i];
    if (std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
          return graph.tensors[static_cast<std::size_t>(input)].is_parameter ||
                 found.contains(input);
        })) {
      found.insert(op.outputs.begin(), op.outputs.end());
    }
  }
  return found;
}

void expect_all_at_hand(const Graph& graph, const std::string& what) {
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const std::vector<OperatorWork> works = layer_work(graph, static_cast<LayerId>(l));
    const std::set<TensorId> found = at_hand(graph, graph.layers[l], works);
    for (const OperatorWork& work : works) {
      for (const LayerKept& each : work.kept) {
        if (each.tensor.tensor < 0) continue;
        EXPECT_TRUE(found.contains(each.tensor.tensor))
            << what << ", layer " << l << ": "
            << graph.tensors[static_cast<std::size_t>(each.tensor.tensor)].name;
      }
    }
  }
}

/// Parts by the bits of a number below 32.
SelectiveParts parts_of(int bits) {
  return {.attention = (bits & 1) != 0,
          .attention_output = (bits & 2) != 0,
          .norms = (bits & 4) != 0,
          .expert_norms = (bits & 8) != 0,
          .activations = (bits & 16) != 0};
}

TEST(LayerWork, SelectiveRecomputationHasAllThatBackwardPassesRead) {
  for (const char* model : {"gpt2", "llama-3-8b", "t5-large", "bert-large", "mixtral-8x7b",
                            "deepseek-v3", "gpt-oss-120b", "nemotron-3-nano", "resnet-50",
                            "vit-base", "transgan", "gnmt", "dlrm-thesis", "candle-uno"}) {
    for (const bool flash : {false, true}) {
      Graph graph = load_model(model, {.seq_len = 0, .dims = {}});
      adapt_graph({.flash_attention = flash}, graph);
      for (int bits = 0; bits < 32; ++bits) {
        graph.selective = parts_of(bits);
        expect_all_at_hand(graph, model + std::string(" ") + std::to_string(bits));
      }
    }
  }
}

// What more is repeated, less is kept of; where nothing is, all.
TEST(LayerWork, MorePartsKeepNoMore) {
  for (const char* model : {"gpt2", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "resnet-50"}) {
    Graph graph = load_model(model, {.seq_len = 0, .dims = {}});
    const LayerId layer = 2;
    std::vector<double> kept;
    for (int bits = 0; bits < 32; ++bits) {
      graph.selective = parts_of(bits);
      const KeptBytes bytes = kept_bytes(graph, layer);
      kept.push_back(bytes.selective);
      EXPECT_LE(bytes.selective, bytes.without);
      for (int bit = 1; bit < 32; bit *= 2) {
        if ((bits & bit) == 0) continue;
        EXPECT_LE(kept.back(), kept[static_cast<std::size_t>(bits - bit)]) << model << " " << bits;
      }
      if (bits == 0) {
        EXPECT_EQ(bytes.selective, bytes.without);
      }
    }
  }
}

TEST(LayerWork, NormsBeforeExpertsAreAPartOfTheirOwn) {
  Graph graph = load_model("mixtral-8x7b", {.seq_len = 128, .dims = {}});
  graph.selective = kCoreAlone;
  const auto repeated_norms = [&] {
    std::vector<std::string> names;
    const Layer& layer = graph.layers[2];
    const std::vector<OperatorWork> works = layer_work(graph, 2);
    for (std::size_t i = 0; i < works.size(); ++i) {
      const Operator& op = graph.operators[static_cast<std::size_t>(layer.first) + i];
      if (works[i].is_recomputed && std::holds_alternative<Normalization>(op.kind)) {
        names.push_back(op.name);
      }
    }
    return names.size();
  };
  EXPECT_EQ(repeated_norms(), 0);
  graph.selective.expert_norms = true;
  EXPECT_EQ(repeated_norms(), 1);
  graph.selective.norms = true;
  EXPECT_EQ(repeated_norms(), 2);
}

}  // namespace
}  // namespace braid
