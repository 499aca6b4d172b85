#include "braid/frontend/gnmt.h"

#include <gtest/gtest.h>

#include "base/reference_files.h"
#include "frontend/zoo_figures.h"

namespace braid {
namespace {

const char* const kSmallGnmt = R"({"model_type": "gnmt", "hidden_size": 8, "encoder_layers": 3,
    "decoder_layers": 2, "vocab_size": 100, "max_position_embeddings": 10})";

/// Weights of an LSTM with a bias for each of its two products.
std::int64_t lstm(std::int64_t in, std::int64_t hidden) { return 4 * hidden * (in + hidden + 2); }

TEST(Gnmt, PublishedProfilesSizes) {
  // Wu et al. 2016, figure 1: eight layers on each side, the first of the encoder in both
  // directions, later decoder layers reading state and context.
  const std::int64_t h = 1024;
  const std::int64_t tables = 2 * 32320 * h;
  const std::int64_t encoder = 2 * lstm(h, h) + lstm(2 * h, h) + 6 * lstm(h, h);
  const std::int64_t attention = 2 * h * h + h;
  const std::int64_t decoder = lstm(h, h) + attention + 7 * lstm(2 * h, h);
  const Graph graph = load_model("gnmt", {});
  EXPECT_EQ(parameter_count(graph), tables + encoder + decoder + 32320 * (h + 1));
}

TEST(Gnmt, EqualsThePublishedProfile) {
  // The profile that PipeDream took and Piper plans lists each node's parameters in f32.
  const std::string path = reference_file("reference/piper/gnmt.json");
  if (path.empty()) GTEST_SKIP() << "reference data not present";
  const Document document = Document::parse_file(path);
  double bytes = 0;
  for (const Value& node : document.root()["nodes"].elements()) {
    bytes += node["TMPCs"]["1"][0]["parameterSize"].as_double();
  }
  EXPECT_DOUBLE_EQ(static_cast<double>(parameter_count(load_model("gnmt", {}))), bytes / 4);
}

TEST(Gnmt, MlperfVariantSharesItsEmbedding) {
  // MLPerf training v0.5 (NVIDIA's GNMT v2): four layers on each side and one table for both
  // languages make about 160 M parameters.
  const Graph graph = graph_of(R"({"model_type": "gnmt", "hidden_size": 1024, "encoder_layers": 4,
      "decoder_layers": 4, "vocab_size": 32320, "share_embedding": true,
      "max_position_embeddings": 50})");
  EXPECT_NEAR(static_cast<double>(parameter_count(graph)), 160e6, 1e6);
}

TEST(Gnmt, WorkOfATokenAndItsPairs) {
  const auto flops = [](int tokens) {
    return forward_flops(graph_of(kSmallGnmt, {.seq_len = tokens, .dims = {}}));
  };
  // Every LSTM, both attention products, the classifier; scores and context for all pairs.
  const double per_token = 2.0 * (4 * 8 * (2 * 16 + 24 + 16 + 16 + 24) + 2 * 8 * 8 + 8 * 100);
  const double per_pair = 2.0 * (8 + 8);
  for (const int tokens : {1, 7, 40}) {
    EXPECT_DOUBLE_EQ(flops(tokens), per_token * tokens + per_pair * tokens * tokens);
  }
}

TEST(Gnmt, TwoSidesMeetInTheAttention) {
  const Graph graph = load_model("gnmt", {});
  EXPECT_EQ(graph.seq_len, 50);
  EXPECT_EQ(graph.layers.size(), 2u + 8 + 8 + 1);
  const Branching branching = branching_of(graph);
  EXPECT_EQ(branching.sources, 2);
  EXPECT_EQ(branching.sinks, 1);
  EXPECT_EQ(branching.widest_join, 2);
  EXPECT_TRUE(branching.series_parallel);
}

TEST(Gnmt, BadConfigsAreRefusedByTheNameOfTheField) {
  EXPECT_EQ(refusal_of_config(kSmallGnmt), "");
  const auto expect_refusal = [](const std::string& from, const std::string& to,
                                 const std::string& field) {
    const std::string refusal = refusal_of_config(replaced(kSmallGnmt, from, to));
    EXPECT_NE(refusal.find(field), std::string::npos) << from << " → " << to << ": " << refusal;
  };
  expect_refusal(R"("hidden_size": 8,)", "", "hidden_size");
  expect_refusal(R"("hidden_size": 8)", R"("hidden_size": 0)", "hidden_size");
  expect_refusal(R"("encoder_layers": 3)", R"("encoder_layers": 1)", "encoder_layers");
  expect_refusal(R"("decoder_layers": 2)", R"("decoder_layers": 1e7)", "decoder_layers");
  expect_refusal(R"("vocab_size": 100)", R"("vocab_size": "many")", "vocab_size");
  expect_refusal(R"("vocab_size": 100)", R"("vocab_size": 100, "dropout": 2)", "dropout");
  expect_refusal(R"("max_position_embeddings": 10)", R"("max_position_embeddings": -1)",
                 "max_position_embeddings");
  EXPECT_NE(refusal_of_config(kSmallGnmt, {.seq_len = 100000, .dims = {}}).find("--seq-len"),
            std::string::npos);
}

}  // namespace
}  // namespace braid
