// Decoder-only families: parameters by closed forms written from the architectures' papers, held to
// the totals of the published checkpoints, and forward FLOPs by counting active weights.

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "braid/frontend/hugging_face.h"
#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"

#include "support/source_path.h"

namespace braid {
namespace {

using Count = std::int64_t;

/// What a family's closed form gives: all parameters, those that a token is multiplied by, and the
/// multiply-adds of attention for each pair of positions that attend (summed over blocks).
struct Counts {
  Count parameters = 0;
  Count active = 0;
  Count per_score = 0;
};

/// Grouped-query attention without biases: weights and multiply-adds per score.
Count attention_weights(Count hidden, Count heads, Count kv_heads, Count dim) {
  return hidden * heads * dim * 2 + hidden * kv_heads * dim * 2;
}

Counts gpt_neox_20b() {
  const Count h = 6144, layers = 44, vocab = 50432;
  const Count weights = 12 * h * h;                     // 4 h² attention, 8 h² feed-forward
  const Count vectors = 3 * h + h + 4 * h + h + 4 * h;  // biases, two layer norms
  return {2 * vocab * h + layers * (weights + vectors) + 2 * h, layers * weights + vocab * h,
          layers * 2 * h};
}

Counts opt_350m() {
  const Count h = 1024, embed = 512, layers = 24, vocab = 50272, positions = 2048 + 2;
  const Count weights = 12 * h * h;
  const Count vectors = 4 * h + 4 * h + h + 4 * h;
  const Count projections = 2 * embed * h;
  return {vocab * embed + positions * h + projections + layers * (weights + vectors),
          layers * weights + projections + vocab * embed, layers * 2 * h};
}

Counts gemma_7b() {
  const Count h = 3072, layers = 28, vocab = 256000, heads = 16, dim = 256, inner = 24576;
  const Count weights = attention_weights(h, heads, heads, dim) + 3 * h * inner;
  return {vocab * h + layers * (weights + 2 * h) + h, layers * weights + vocab * h,
          layers * 2 * heads * dim};
}

Counts gemma_2_9b() {
  const Count h = 3584, layers = 42, vocab = 256000, heads = 16, dim = 256, inner = 14336;
  const Count weights = attention_weights(h, heads, 8, dim) + 3 * h * inner;
  return {vocab * h + layers * (weights + 4 * h) + h, layers * weights + vocab * h,
          layers * 2 * heads * dim};
}

Counts gemma_3_1b() {
  const Count h = 1152, layers = 26, vocab = 262144, heads = 4, dim = 256, inner = 6912;
  const Count weights = attention_weights(h, heads, 1, dim) + 3 * h * inner;
  return {vocab * h + layers * (weights + 4 * h + 2 * dim) + h, layers * weights + vocab * h,
          layers * 2 * heads * dim};
}

Counts phi_3_mini() {
  const Count h = 3072, layers = 32, vocab = 32064, inner = 8192;
  const Count weights = 4 * h * h + 3 * h * inner;
  return {2 * vocab * h + layers * (weights + 2 * h) + h, layers * weights + vocab * h,
          layers * 2 * h};
}

Counts qwen2_57b() {
  const Count h = 3584, layers = 28, vocab = 151936, heads = 28, kv_heads = 4, dim = 128;
  const Count expert = 3 * h * 2560, shared = 3 * h * 20480 + h, router = h * 64;
  const Count attention = attention_weights(h, heads, kv_heads, dim);
  const Count bias = (heads + 2 * kv_heads) * dim;
  return {2 * vocab * h + layers * (attention + bias + 64 * expert + shared + router + 2 * h) + h,
          layers * (attention + 8 * expert + shared + router) + vocab * h,
          layers * 2 * heads * dim};
}

Counts qwen3_moe(Count h, Count layers, Count heads, Count expert_inner) {
  const Count vocab = 151936, dim = 128;
  const Count expert = 3 * h * expert_inner, router = h * 128;
  const Count attention = attention_weights(h, heads, 4, dim);
  return {2 * vocab * h + layers * (attention + 2 * dim + 128 * expert + router + 2 * h) + h,
          layers * (attention + 8 * expert + router) + vocab * h, layers * 2 * heads * dim};
}

struct DeepseekSizes {
  Count h, layers, dense, vocab, inner, expert_inner, routed, shared, top_k;
};

Counts deepseek(const DeepseekSizes& sizes) {
  const auto [h, layers, dense, vocab, inner, expert_inner, routed, shared, top_k] = sizes;
  const Count heads = 128, q_rank = 1536, kv_rank = 512, rope = 64, nope = 128, v = 128;
  const Count attention = h * q_rank + q_rank * heads * (nope + rope) + h * (kv_rank + rope) +
                          kv_rank * heads * (nope + v) + heads * v * h;
  const Count norms = 2 * h + q_rank + kv_rank;
  const Count expert = 3 * h * expert_inner, router = h * routed, moe = layers - dense;
  return {2 * vocab * h + layers * (attention + norms) + dense * 3 * h * inner +
              moe * ((routed + shared) * expert + router) + h,
          layers * attention + dense * 3 * h * inner + moe * ((top_k + shared) * expert + router) +
              vocab * h,
          layers * heads * (nope + rope + v)};
}

struct PublishedFamily {
  const char* name;
  Counts counts;
  Count published;
};

class DecoderFamily : public ::testing::TestWithParam<PublishedFamily> {};

TEST_P(DecoderFamily, HasThePublishedParameters) {
  const Graph graph = load_model(GetParam().name, {.seq_len = 8, .dims = {}});
  EXPECT_EQ(parameter_count(graph), GetParam().counts.parameters);
  EXPECT_EQ(GetParam().counts.parameters, GetParam().published);
}

TEST_P(DecoderFamily, MultipliesEachTokenByTheActiveWeightsAndEachPairByItsHeads) {
  for (const Count tokens : {1, 8, 512}) {
    const Graph graph = load_model(GetParam().name, {.seq_len = tokens, .dims = {}});
    double flops = 0;
    for (const Operator& op : graph.operators) flops += forward_model_flops(graph, op);
    const Count pairs = tokens * (tokens + 1) / 2;
    const Counts& counts = GetParam().counts;
    const auto products = static_cast<double>(counts.active * tokens + counts.per_score * pairs);
    EXPECT_DOUBLE_EQ(flops, 2 * products) << tokens;
  }
}

TEST_P(DecoderFamily, TrainsWithTwiceTheForwardWork) {
  const Graph graph = load_model(GetParam().name, {.seq_len = 64, .dims = {}});
  double forward = 0;
  double backward = 0;
  for (const Operator& op : graph.operators) {
    forward += forward_model_flops(graph, op);
    backward += backward_model_flops(graph, op);
  }
  EXPECT_NEAR(backward / forward, 2, 1e-9);
}

// Published: the elements of the checkpoints' tensors. DeepSeek-V3's 671,026,419,200 include 58
// blocks' 256 correction biases, which no gradient trains; its report says 671 B.
INSTANTIATE_TEST_SUITE_P(
    Zoo, DecoderFamily,
    ::testing::Values(
        PublishedFamily{"gpt-neox-20b", gpt_neox_20b(), 20554567680},
        PublishedFamily{"opt-350m", opt_350m(), 331196416},
        PublishedFamily{"gemma-7b", gemma_7b(), 8537680896},
        PublishedFamily{"gemma-2-9b", gemma_2_9b(), 9241705984},
        PublishedFamily{"gemma-3-1b", gemma_3_1b(), 999885952},
        PublishedFamily{"phi-3-mini", phi_3_mini(), 3821079552},
        PublishedFamily{"qwen2-57b-a14b", qwen2_57b(), 57408658944},
        PublishedFamily{"qwen3-30b-a3b", qwen3_moe(2048, 48, 32, 768), 30532122624},
        PublishedFamily{"qwen3-235b-a22b", qwen3_moe(4096, 94, 64, 1536), 235093634560},
        PublishedFamily{"deepseek-v2", deepseek({5120, 60, 1, 102400, 12288, 1536, 160, 2, 6}),
                        235741434880},
        PublishedFamily{"deepseek-v3", deepseek({7168, 61, 3, 129280, 18432, 2048, 256, 1, 8}),
                        671026419200 - Count{58} * 256}),
    [](const ::testing::TestParamInfo<PublishedFamily>& model) {
      std::string name = model.param.name;
      for (char& c : name) {
        if (c == '-') c = '_';
      }
      return name;
    });

Count billions_active(const char* name) {
  const Graph graph = load_model(name, {.seq_len = 1, .dims = {}});
  double flops = 0;
  for (const Operator& op : graph.operators) flops += forward_model_flops(graph, op);
  return std::lround(flops / 2e9);
}

TEST(ExpertFamilies, ActivateWhatTheirNamesSay) {
  // 37 B and 21 B are stated with the embedding table, which multiplies nothing.
  EXPECT_EQ(billions_active("deepseek-v3"), 37);
  EXPECT_EQ(billions_active("deepseek-v2"), 21);
  EXPECT_EQ(billions_active("qwen3-30b-a3b"), 3);
  EXPECT_EQ(billions_active("qwen3-235b-a22b"), 22);
  EXPECT_EQ(billions_active("qwen2-57b-a14b"), 14);
}

TEST(Examples, DeepSeekV3IsTheOneOfTheZoo) {
  const ModelOptions options{.seq_len = 4096, .dims = {}};
  EXPECT_EQ(load_model(test::source_path("examples/deepseek-v3"), options),
            load_model("deepseek-v3", options));
}

TEST(DecoderFamilies, MtpTakesABlockAndAProjection) {
  const auto parameters = [](const char* model, std::int64_t layers) {
    return parameter_count(load_model(model, {.seq_len = 16, .layers = layers, .dims = {}}));
  };
  const std::int64_t block = parameters("deepseek-v3", 61) - parameters("deepseek-v3", 60);
  const std::int64_t further = 2 * 7168 * 7168 + 2 * 7168;
  for (const std::int64_t layers : {4, 61}) {
    EXPECT_EQ(parameters("deepseek-v3-mtp", layers),
              parameters("deepseek-v3", layers) + block + further);
  }
}

TEST(Kinds, LeadingDenseBlocksDifferFromThoseWithExperts) {
  const Graph graph = load_model("deepseek-v3", {.seq_len = 16, .dims = {}});
  ASSERT_EQ(graph.layers.size(), 63u);
  EXPECT_EQ(layer_kind_count(graph), 4);
  for (std::size_t l = 1; l <= 61; ++l) EXPECT_EQ(graph.layers[l].kind, l <= 3 ? 1 : 2) << l;
}

/// Blocks of a small MoE of those that have experts, from the first: 'x' experts, '-' dense.
std::string places_of_experts(const std::string& fields) {
  const std::string text = R"({"hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2,
      "num_hidden_layers": 6, "vocab_size": 10, "num_experts_per_tok": 1,
      "moe_intermediate_size": 4, "max_position_embeddings": 4, )" +
                           fields + "}";
  const Document document = Document::parse(text, Document::Syntax::json, "config.json");
  const Graph graph = graph_from_config(document.root(), "model", {});
  std::string places(6, '-');
  for (const Operator& op : graph.operators) {
    if (std::holds_alternative<MoeExperts>(op.kind)) {
      places[static_cast<std::size_t>(op.layer) - 1] = 'x';
    }
  }
  return places;
}

TEST(Kinds, ExpertsStandWhereTheConfigPutsThem) {
  const std::string qwen = R"("model_type": "qwen3_moe", "num_experts": 2)";
  EXPECT_EQ(places_of_experts(qwen), "xxxxxx");
  EXPECT_EQ(places_of_experts(qwen + R"(, "decoder_sparse_step": 2)"), "-x-x-x");
  EXPECT_EQ(places_of_experts(qwen + R"(, "mlp_only_layers": [0, 4])"), "-xxx-x");
  EXPECT_EQ(places_of_experts(qwen + R"(, "decoder_sparse_step": 7)"), "------");
  const std::string deepseek = R"("model_type": "deepseek_v3", "kv_lora_rank": 4,
      "qk_rope_head_dim": 2, "qk_nope_head_dim": 2, "v_head_dim": 4, "n_routed_experts": )";
  EXPECT_EQ(places_of_experts(deepseek + "2"), "xxxxxx");
  EXPECT_EQ(places_of_experts(deepseek + R"(2, "first_k_dense_replace": 2)"), "--xxxx");
  EXPECT_EQ(places_of_experts(deepseek + R"(2, "first_k_dense_replace": 1, "moe_layer_freq": 2)"),
            "--x-x-");
  EXPECT_EQ(places_of_experts(deepseek + R"(2, "first_k_dense_replace": 9)"), "------");
  EXPECT_EQ(places_of_experts(deepseek + "null"), "------");
}

TEST(Kinds, LocalBlocksDifferFromGlobalOnes) {
  const Graph gemma2 = load_model("gemma-2-9b", {});
  for (std::size_t l = 1; l <= 42; ++l) EXPECT_EQ(gemma2.layers[l].kind, l % 2 == 1 ? 1 : 2) << l;
  const Graph gemma3 = load_model("gemma-3-1b", {});
  for (std::size_t l = 1; l <= 26; ++l) EXPECT_EQ(gemma3.layers[l].kind, l % 6 != 0 ? 1 : 2) << l;
}

TEST(Windows, SaveWorkOnlyInLocalBlocks) {
  // Gemma 2 on 8192 tokens: half of the blocks see 4096 of them.
  const Graph graph = load_model("gemma-2-9b", {.seq_len = 8192, .dims = {}});
  double flops = 0;
  for (const Operator& op : graph.operators) {
    if (std::holds_alternative<Attention>(op.kind)) flops += forward_model_flops(graph, op);
  }
  const double global = 8192.0 * 8193 / 2;
  const double local = 4096.0 * 4097 / 2 + 4096.0 * 4096;
  EXPECT_DOUBLE_EQ(flops, 21 * (global + local) * 2 * 2 * 16 * 256);
}

}  // namespace
}  // namespace braid
