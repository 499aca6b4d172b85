// Hybrids of state-space layers, attention and networks: parameters by a closed form held to the
// published totals, and the work of Mamba-2 by counting its products.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"

#include "frontend/zoo_figures.h"

namespace braid {
namespace {

using Count = std::int64_t;

struct Hybrid {
  const char* name;
  Count hidden, heads, kv_heads, mamba_heads, state, inner;
  Count experts = 0, expert_inner = 0, shared = 0, latent = 0;
  Count mamba = 0, attention = 0, networks = 0, moe = 0;  ///< Layers of each kind.
  double published_billions = 0;
};

Count parameters_of(const Hybrid& m) {
  const Count h = m.hidden, vocab = 131072, groups = 8, dim = 128;
  const Count width = m.mamba_heads * 64, convolved = width + 2 * groups * m.state;
  // Two projections, four taps and a bias, three figures of each head, a norm.
  const Count mamba = h * (width + convolved + m.mamba_heads) + width * h + 5 * convolved +
                      3 * m.mamba_heads + width;
  const Count attention = 2 * h * m.heads * dim + 2 * h * m.kv_heads * dim;
  const Count expert_width = m.latent > 0 ? m.latent : h;
  const Count moe = h * m.experts + 2 * m.experts * expert_width * m.expert_inner +
                    2 * h * m.shared + 2 * h * m.latent;
  return 2 * vocab * h + h + m.mamba * (mamba + h) + m.attention * (attention + h) +
         m.networks * (2 * h * m.inner + h) + m.moe * (moe + h);
}

TEST(Hybrids, HaveThePublishedParameters) {
  // Published: the model cards and reports (arXiv 2512.20848, 2604.12374, 2504.03624), rounded.
  const Hybrid models[] = {
      {.name = "nemotron-3-nano",
       .hidden = 2688,
       .heads = 32,
       .kv_heads = 2,
       .mamba_heads = 64,
       .state = 128,
       .inner = 1856,
       .experts = 128,
       .expert_inner = 1856,
       .shared = 3712,
       .mamba = 23,
       .attention = 6,
       .moe = 23,
       .published_billions = 31.6},
      {.name = "nemotron-3-super",
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 2,
       .mamba_heads = 128,
       .state = 128,
       .inner = 2688,
       .experts = 512,
       .expert_inner = 2688,
       .shared = 5376,
       .latent = 1024,
       .mamba = 40,
       .attention = 8,
       .moe = 40,
       .published_billions = 120.6},
      {.name = "nemotron-h-8b",
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .mamba_heads = 128,
       .state = 128,
       .inner = 21504,
       .mamba = 24,
       .attention = 4,
       .networks = 24,
       .published_billions = 8.1},
      {.name = "nemotron-h-56b",
       .hidden = 8192,
       .heads = 64,
       .kv_heads = 8,
       .mamba_heads = 256,
       .state = 256,
       .inner = 32768,
       .mamba = 54,
       .attention = 10,
       .networks = 54,
       .published_billions = 56.3},
  };
  for (const Hybrid& model : models) {
    const Graph graph = load_model(model.name, {.seq_len = 128, .dims = {}});
    EXPECT_EQ(parameter_count(graph), parameters_of(model)) << model.name;
    EXPECT_NEAR(static_cast<double>(parameter_count(graph)) / 1e9, model.published_billions, 0.1);
  }
}

TEST(Hybrids, PredictMtpByOneLayer) {
  const Graph plain = load_model("nemotron-3-super", {.seq_len = 128, .dims = {}});
  const Graph graph = load_model("nemotron-3-super-mtp", {.seq_len = 128, .dims = {}});
  // Attention, experts, the projection of two rows and their norms, once for both predictions.
  const Count h = 4096, latent = 1024, inner = 2688;
  const Count attention = 2 * h * 32 * 128 + 2 * h * 2 * 128;
  const Count moe = h * 512 + 2 * 512 * latent * inner + 2 * h * 5376 + 2 * h * latent;
  EXPECT_EQ(parameter_count(graph) - parameter_count(plain),
            2 * h * h + 2 * h + attention + h + moe + h);
  ASSERT_EQ(graph.layers.size(), plain.layers.size() + 1);
  const Layer& further = graph.layers[graph.layers.size() - 2];
  int attentions = 0, experts = 0;
  for (OperatorId id = further.first; id < further.last; ++id) {
    const OperatorKind& kind = graph.operators[static_cast<std::size_t>(id)].kind;
    attentions += std::holds_alternative<Attention>(kind) ? 1 : 0;
    experts += std::holds_alternative<MoeExperts>(kind) ? 1 : 0;
  }
  EXPECT_EQ(attentions, 2);
  EXPECT_EQ(experts, 2);
  EXPECT_EQ(std::get<Loss>(graph.operators.back().kind).rows, 3 * 128);
}

TEST(Hybrids, LayersStandWhereThePatternPutsThem) {
  const Graph graph = load_model("nemotron-3-nano", {.seq_len = 128, .dims = {}});
  ASSERT_EQ(graph.layers.size(), 54U);
  const std::string pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";
  for (std::size_t l = 0; l < pattern.size(); ++l) {
    const auto same = pattern.find(pattern[l]);
    EXPECT_EQ(graph.layers[l + 1].kind, graph.layers[same + 1].kind) << l;
  }
  EXPECT_NE(graph.layers[1].kind, graph.layers[2].kind);
  EXPECT_NE(graph.layers[1].kind, graph.layers[6].kind);
}

constexpr const char* kTiny = R"({"model_type": "nemotron_h", "hidden_size": 16,
    "intermediate_size": 24, "num_attention_heads": 2, "head_dim": 8, "vocab_size": 10,
    "mamba_num_heads": 4, "mamba_head_dim": 8, "ssm_state_size": 6, "n_groups": 2,
    "chunk_size": 16, "max_position_embeddings": 64, "hybrid_override_pattern": "M"})";

double mamba_flops(Count tokens) {
  const Graph graph = graph_of(kTiny, {.seq_len = tokens, .dims = {}});
  double flops = 0;
  for (const Operator& op : graph.operators) {
    if (op.layer == 1) flops += forward_model_flops(graph, op);
  }
  return flops;
}

/// Dao and Gu 2024, section 6: with chunks of Q tokens, scores take Q·N for each token and group,
/// states and outputs N·P each and Q·P for each token and head.
TEST(StateSpace, DoesTheWorkOfTheChunkedAlgorithm) {
  const Count h = 16, heads = 4, p = 8, n = 6, groups = 2, q = 16, width = heads * p;
  const Count in = h * (2 * width + 2 * groups * n + heads), out = width * h;
  const Count token = in + out + groups * q * n + heads * (n * p + n * p + q * p);
  for (const Count tokens : {16, 32, 64}) {
    EXPECT_DOUBLE_EQ(mamba_flops(tokens), 2.0 * static_cast<double>(token * tokens)) << tokens;
  }
  // One short chunk.
  const Count short_token = in + out + groups * 8 * n + heads * (2 * n * p + 8 * p);
  EXPECT_DOUBLE_EQ(mamba_flops(8), 2.0 * 8 * static_cast<double>(short_token));
}

TEST(StateSpace, BackwardIsTwiceTheForwardWork) {
  const Graph graph = graph_of(kTiny, {.seq_len = 64, .dims = {}});
  for (const Operator& op : graph.operators) {
    if (op.layer != 1) continue;
    EXPECT_DOUBLE_EQ(backward_model_flops(graph, op), 2 * forward_model_flops(graph, op))
        << op.name;
  }
}

TEST(Hybrids, RefuseUnknownLayersAndGroups) {
  const std::string tiny = kTiny;
  EXPECT_EQ(refusal_of_config(tiny), "");
  EXPECT_EQ(refusal_of_config(replaced(tiny, R"("M")", R"("M*-")")), "");
  EXPECT_NE(refusal_of_config(replaced(tiny, R"("M")", R"("MX")")).find("'X'"), std::string::npos);
  EXPECT_NE(refusal_of_config(replaced(tiny, R"("M")", R"("")")).find("no layers"),
            std::string::npos);
  EXPECT_NE(
      refusal_of_config(replaced(tiny, R"("n_groups": 2)", R"("n_groups": 3)")).find("n_groups"),
      std::string::npos);
  EXPECT_NE(refusal_of_config(replaced(tiny, R"("M")", R"("E")")).find("n_routed_experts"),
            std::string::npos);
}

}  // namespace
}  // namespace braid
