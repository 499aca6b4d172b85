#include <gtest/gtest.h>

#include "braid/graph/repeated_layers.h"

#include "frontend/zoo_figures.h"

namespace braid {
namespace {

const char* const kTowers = R"({"model_type": "candle_uno", "features": {"a": 3, "b": 5},
    "feature_layers": [16, 16], "dense_layers": [8]})";
const char* const kModalities = R"({"model_type": "multi_modal_transformer", "num_branches": 2,
    "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 32,
    "max_position_embeddings": 10})";

/// Weights of a transformer block with biases and two layer norms.
std::int64_t block(std::int64_t h, std::int64_t inner) {
  return 4 * h * h + 4 * h + 2 * h * inner + inner + h + 4 * h;
}

TEST(CandleUno, ThesisConfiguration) {
  // Jeon 2024, §3.10.3: seven branches of four layers of 4096; inputs as in the ECP-CANDLE
  // benchmark.
  const std::int64_t inputs = 1 + 1 + 942 + 2 * (5270 + 2048);
  const std::int64_t square = 4096 * 4096 + 4096;
  const Graph graph = load_model("candle-uno", {});
  EXPECT_EQ(parameter_count(graph), inputs * 4096 + 7 * 4096 + 7 * 3 * square + 7 * 4096 + 1);
  const Branching branching = branching_of(graph);
  EXPECT_EQ(branching.sources, 7);
  EXPECT_EQ(branching.sinks, 1);
  EXPECT_EQ(branching.widest_join, 7);
  EXPECT_TRUE(branching.series_parallel);
}

TEST(CandleUno, TowersThenDenseLayers) {
  const Graph graph = graph_of(kTowers);
  EXPECT_EQ(parameter_count(graph), (3 + 5) * 16 + 2 * 16 + 2 * (16 * 16 + 16) + 32 * 8 + 8 + 9);
  const Graph unbiased = graph_of(replaced(kTowers, "{", R"({"bias": false, )"));
  EXPECT_EQ(parameter_count(unbiased), (3 + 5) * 16 + 2 * 16 * 16 + 32 * 8 + 8);
  EXPECT_DOUBLE_EQ(forward_flops(graph), 2.0 * static_cast<double>(parameter_count(unbiased)));
}

TEST(CandleUno, BadConfigsAreRefusedByTheNameOfTheField) {
  EXPECT_EQ(refusal_of_config(kTowers), "");
  const auto expect_refusal = [](const std::string& from, const std::string& to,
                                 const std::string& field) {
    const std::string refusal = refusal_of_config(replaced(kTowers, from, to));
    EXPECT_NE(refusal.find(field), std::string::npos) << from << " → " << to << ": " << refusal;
  };
  expect_refusal(R"({"a": 3, "b": 5})", "{}", "features");
  expect_refusal(R"({"a": 3, "b": 5})", "7", "features");
  expect_refusal(R"("b": 5)", R"("b": 0)", "b");
  expect_refusal("[16, 16]", "[]", "feature_layers");
  expect_refusal("[16, 16]", "[16, 1e9]", "feature_layers");
  expect_refusal(R"("dense_layers": [8])", R"("num_labels": 1)", "dense_layers");
  expect_refusal("[8]", R"([8], "num_labels": 0)", "num_labels");
  EXPECT_NE(refusal_of_config(kTowers, {.seq_len = 5, .dims = {}}).find("--seq-len"),
            std::string::npos);
}

TEST(CandleUno, ManyDeepTowersAreRefused) {
  std::string features = R"("f0": 1)";
  for (int f = 1; f < 2000; ++f) features += ", \"f" + std::to_string(f) + "\": 1";
  std::string layers = "16";
  for (int l = 1; l < 60; ++l) layers += ", 16";
  const std::string config =
      replaced(replaced(kTowers, R"("a": 3, "b": 5)", features), "16, 16", layers);
  EXPECT_NE(refusal_of_config(config).find("feature_layers"), std::string::npos);
}

TEST(MultiModal, ThesisConfiguration) {
  // Jeon 2024, §3.10.3: four branches of eight blocks, 1024 wide, 16 heads, 4096 inside.
  const Graph graph = load_model("multi-modal-transformer", {});
  EXPECT_EQ(graph.seq_len, 256);
  EXPECT_EQ(parameter_count(graph), 32 * block(1024, 4096) + 4 * 1024 + 1);
  EXPECT_EQ(graph.layers.size(), 33u);
  // The blocks that read inputs, the others, the fusion.
  EXPECT_EQ(layer_kind_count(graph), 3);
  const Branching branching = branching_of(graph);
  EXPECT_EQ(branching.sources, 4);
  EXPECT_EQ(branching.sinks, 1);
  EXPECT_EQ(branching.widest_join, 4);
  EXPECT_TRUE(branching.series_parallel);
  // Products of the blocks: two FLOPs for each weight of a matrix and token, and 4·h for each pair.
  const double matrices = 32.0 * 12 * 1024 * 1024;
  EXPECT_DOUBLE_EQ(forward_flops(graph),
                   256 * (2 * matrices + 2 * 4096) + 32.0 * 4 * 1024 * 256 * 256);
}

TEST(MultiModal, BranchesMayDiffer) {
  const Graph graph = graph_of(replaced(
      kModalities, R"("num_branches": 2)",
      R"("branches": [{"num_hidden_layers": 3}, {"hidden_size": 8, "embedding_size": 20}])"));
  EXPECT_EQ(parameter_count(graph),
            3 * block(16, 32) + 2 * block(8, 32) + 20 * 8 + 8 + (16 + 8) + 1);
  EXPECT_EQ(graph.layers.size(), 6u);
  EXPECT_EQ(graph_of(kModalities, {.seq_len = 30, .dims = {}}).seq_len, 30);
}

TEST(MultiModal, BadConfigsAreRefusedByTheNameOfTheField) {
  EXPECT_EQ(refusal_of_config(kModalities), "");
  const auto expect_refusal = [](const std::string& from, const std::string& to,
                                 const std::string& field) {
    const std::string refusal = refusal_of_config(replaced(kModalities, from, to));
    EXPECT_NE(refusal.find(field), std::string::npos) << from << " → " << to << ": " << refusal;
  };
  expect_refusal(R"("num_branches": 2,)", "", "num_branches");
  expect_refusal(R"("num_branches": 2)", R"("num_branches": 0)", "num_branches");
  expect_refusal(R"("num_branches": 2)", R"("branches": [])", "branches");
  expect_refusal(R"("num_branches": 2)", R"("branches": [3])", "branches");
  expect_refusal(R"("num_branches": 2)", R"("branches": [{"num_attention_heads": 3}])",
                 "num_attention_heads");
  expect_refusal(R"("num_attention_heads": 4)", R"("num_attention_heads": 5)",
                 "num_attention_heads");
  expect_refusal(R"("hidden_size": 16)", R"("hidden_size": -16)", "hidden_size");
  expect_refusal(R"("intermediate_size": 32,)", "", "intermediate_size");
  expect_refusal(R"("num_hidden_layers": 2)", R"("num_hidden_layers": 1e6)", "num_hidden_layers");
  expect_refusal(R"("num_hidden_layers": 2)", R"("num_hidden_layers": 60000)", "num_hidden_layers");
  expect_refusal(R"("num_branches": 2)",
                 R"("branches": [{"num_hidden_layers": 60000}, {"num_hidden_layers": 60000}])",
                 "branches");
  expect_refusal(R"("max_position_embeddings": 10)", R"("num_labels": 10)",
                 "max_position_embeddings");
}

}  // namespace
}  // namespace braid
