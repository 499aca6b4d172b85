// Encoders and encoder-decoders: parameters by closed forms written from the papers, held to the
// totals of the published checkpoints, forward FLOPs by counting weights, and the shape of the
// layer graph.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/hugging_face.h"
#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"

#include "frontend/zoo_figures.h"

namespace braid {
namespace {

using Count = std::int64_t;

/// Weights and vectors of a block with biases, a fourfold feed-forward network and two layer norms.
Count block_weights(Count h) { return 12 * h * h; }
Count block_parameters(Count h) { return block_weights(h) + 9 * h + 4 * h; }

struct BertSize {
  const char* name;
  Count h, layers, encoder;
};

class Bert : public ::testing::TestWithParam<BertSize> {};

TEST_P(Bert, HasThePublishedEncoderAndThePreTrainingHeads) {
  const auto [name, h, layers, published] = GetParam();
  const Count vocab = 30522;
  const Count embedding = (vocab + 512 + 2) * h + 2 * h;
  const Count pooler = h * h + h;
  // BertModel, the encoder with its pooler.
  EXPECT_EQ(embedding + layers * block_parameters(h) + pooler, published);
  const Count masked_language = h * h + h + 2 * h + vocab;
  const Count next_sentence = 2 * h + 2;
  EXPECT_EQ(parameter_count(load_model(name, {})), published + masked_language + next_sentence);
}

TEST_P(Bert, MultipliesEachTokenByTheWeightsAndEachPairInBothDirections) {
  const auto [name, h, layers, published] = GetParam();
  for (const Count tokens : {1, 128, 512}) {
    const Count per_token = layers * block_weights(h) + h * h + 30522 * h;
    const Count per_pair = layers * 2 * h;
    const Count once = h * h + 2 * h;  // Pooler and next sentence, on the first token.
    const Graph graph = load_model(name, {.seq_len = tokens, .dims = {}});
    EXPECT_DOUBLE_EQ(
        forward_flops(graph),
        2.0 * static_cast<double>(per_token * tokens + per_pair * tokens * tokens + once));
  }
}

// Published: Hugging Face checkpoints of BertModel. Devlin et al. round to 110 M and 340 M.
INSTANTIATE_TEST_SUITE_P(Zoo, Bert,
                         ::testing::Values(BertSize{"bert-base", 768, 12, 109482240},
                                           BertSize{"bert-large", 1024, 24, 335141888}),
                         [](const auto& model) { return std::string(model.param.name).substr(5); });

struct T5Size {
  const char* name;
  Count inner, heads, head_dim, published;
};

class T5 : public ::testing::TestWithParam<T5Size> {};

TEST_P(T5, HasThePublishedParameters) {
  const auto [name, inner, heads, head_dim, published] = GetParam();
  const Count h = 1024, layers = 24, vocab = 32128;
  const Count attention = 4 * h * heads * head_dim;
  const Count mlp = 2 * h * inner;
  const Count encoder = layers * (attention + mlp + 2 * h) + h + 32 * heads;
  const Count decoder = layers * (2 * attention + mlp + 3 * h) + h + 32 * heads;
  const Count total = vocab * h + encoder + decoder;
  EXPECT_EQ(total, published);
  EXPECT_EQ(parameter_count(load_model(name, {})), total);
}

TEST_P(T5, MultipliesTokensByTheWeightsOfTheirSide) {
  const auto [name, inner, heads, head_dim, published] = GetParam();
  const Count h = 1024, layers = 24, vocab = 32128, tokens = 256;
  const Count attention = 4 * h * heads * head_dim;
  const Count per_token = layers * (3 * attention + 4 * h * inner) + vocab * h;
  const Count full = tokens * tokens;
  const Count causal = tokens * (tokens + 1) / 2;
  // The encoder's and the cross attention see all pairs.
  const Count scores = layers * 2 * heads * head_dim * (full + causal + full);
  EXPECT_DOUBLE_EQ(forward_flops(load_model(name, {.seq_len = tokens, .dims = {}})),
                   2.0 * static_cast<double>(per_token * tokens + scores));
}

// Published: Hugging Face checkpoints; Raffel et al. round to 770 M and 11 B.
INSTANTIATE_TEST_SUITE_P(Zoo, T5,
                         ::testing::Values(T5Size{"t5-large", 4096, 16, 64, 737668096},
                                           T5Size{"t5-11b", 65536, 128, 128, 11307321344}),
                         [](const auto& model) { return std::string(model.param.name).substr(3); });

TEST(T5Layers, EveryDecoderBlockReadsTheEncodersOutput) {
  const Graph graph = load_model("t5-large", {});
  check_graph(graph, "t5-large");
  ASSERT_EQ(graph.layers.size(), 51u);
  EXPECT_EQ(layer_kind_count(graph), 5);
  const LayerId bridge = 25;  // After the encoder's embedding and 24 blocks.
  EXPECT_EQ(graph.layers[bridge].name, "decoder.embedding");
  const double bytes = 512.0 * 1024 * 2;
  std::vector<LayerEdge> expected;
  for (LayerId l = 0; l < 50; ++l) {
    expected.push_back({l, l + 1, l == bridge ? 2 * bytes : bytes});
    if (l != bridge) continue;
    for (LayerId block = bridge + 2; block < 50; ++block) expected.push_back({l, block, bytes});
  }
  EXPECT_EQ(layer_edges(graph), expected);
}

TEST(T5Layers, GatedVersionHasAThirdMatrixAndMayHaveItsOwnHead) {
  const auto build = [](const char* projection, bool tied) {
    const std::string text = std::string(R"({"model_type": "t5", "d_model": 8, "d_kv": 4,
        "d_ff": 32, "num_heads": 2, "num_layers": 3, "num_decoder_layers": 2, "vocab_size": 10,
        "relative_attention_num_buckets": 5, "feed_forward_proj": ")") +
                             projection + R"(", "tie_word_embeddings": )" +
                             (tied ? "true}" : "false}");
    const Document document = Document::parse(text, Document::Syntax::json, "config.json");
    return graph_from_config(document.root(), "t5", {.seq_len = 4, .dims = {}});
  };
  const Count plain = parameter_count(build("relu", true));
  EXPECT_EQ(plain, 80 + 2 * 5 * 2 + 3 * (4 * 64 + 2 * 256 + 16) + 2 * (8 * 64 + 2 * 256 + 24) + 16);
  EXPECT_EQ(parameter_count(build("gated-gelu", true)), plain + Count{5} * 256);
  EXPECT_EQ(parameter_count(build("gated-silu", false)), plain + Count{5} * 256 + 80);
  EXPECT_THROW(build("gated-maxout", true), Error);
}

struct VitSize {
  const char* name;
  Count h, layers, published;
};

class Vit : public ::testing::TestWithParam<VitSize> {};

TEST_P(Vit, HasThePublishedParameters) {
  const auto [name, h, layers, published] = GetParam();
  const Count patches = 196;
  const Count embedding = h * 3 * 16 * 16 + h + h + (patches + 1) * h;
  const Count head = 2 * h + 1000 * h + 1000;
  EXPECT_EQ(embedding + layers * block_parameters(h) + head, published);
  EXPECT_EQ(parameter_count(load_model(name, {})), published);
}

TEST_P(Vit, MultipliesPatchesAndTheClassToken) {
  const auto [name, h, layers, published] = GetParam();
  const Count tokens = 197;
  const Count products = h * 196 * 3 * 16 * 16 + layers * block_weights(h) * tokens +
                         layers * 2 * h * tokens * tokens + 1000 * h;
  EXPECT_DOUBLE_EQ(forward_flops(load_model(name, {})), 2.0 * static_cast<double>(products));
}

TEST_P(Vit, TakesItsSequenceFromTheImage) {
  const Graph graph = load_model(GetParam().name, {});
  EXPECT_EQ(graph.seq_len, 197);
  EXPECT_EQ(layer_kind_count(graph), 3);
  EXPECT_EQ(load_model(GetParam().name, {.seq_len = 197, .dims = {}}), graph);
  try {
    load_model(GetParam().name, {.seq_len = 128, .dims = {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--seq-len"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("patch"), std::string::npos);
  }
}

// Published: Hugging Face checkpoints google/vit-*-patch16-224; Dosovitskiy et al. round to 86 M
// and 307 M.
INSTANTIATE_TEST_SUITE_P(Zoo, Vit,
                         ::testing::Values(VitSize{"vit-base", 768, 12, 86567656},
                                           VitSize{"vit-large", 1024, 24, 304326632}),
                         [](const auto& model) { return std::string(model.param.name).substr(4); });

TEST(VitClasses, AreCountedByTheirNames) {
  const auto classes = [](const std::string& fields) {
    const std::string text = R"({"model_type": "vit", "hidden_size": 8, "num_attention_heads": 2,
        "intermediate_size": 16, "num_hidden_layers": 1, "image_size": 32, "patch_size": 16)" +
                             fields + "}";
    const Document document = Document::parse(text, Document::Syntax::json, "config.json");
    const Graph graph = graph_from_config(document.root(), "vit", {});
    const auto head = std::find_if(graph.operators.begin(), graph.operators.end(),
                                   [](const Operator& op) { return op.name == "classifier"; });
    return std::get<MatMul>(head->kind).n;
  };
  EXPECT_EQ(classes(""), 2);
  EXPECT_EQ(classes(R"(, "num_labels": 7)"), 7);
  EXPECT_EQ(classes(R"(, "id2label": {"0": "cat", "1": "dog", "2": "bird"})"), 3);
  EXPECT_THROW(classes(R"(, "id2label": {})"), Error);
  EXPECT_THROW(classes(R"(, "id2label": 3)"), Error);
}

}  // namespace
}  // namespace braid
