#include "braid/frontend/dlrm.h"

#include <gtest/gtest.h>

#include "frontend/zoo_figures.h"

namespace braid {
namespace {

const char* const kSmallDlrm =
    R"({"model_type": "dlrm", "dense_features": 13, "bottom_mlp": [512, 16],
    "num_tables": 3, "embedding_rows": 1000, "embedding_dim": 16, "lookups": 1,
    "interaction": "dot", "top_mlp": [512, 256, 1]})";

TEST(Dlrm, ThesisConfiguration) {
  // Jeon 2024, §3.10.3: seven dense branches of four layers of 4096, seven tables of 10⁶ × 64 with
  // bags of 100 side by side, then (four, as here assumed) layers of 4096 and a logit.
  const Graph graph = load_model("dlrm-thesis", {});
  const std::int64_t square = 4096 * 4096 + 4096;
  const std::int64_t joined = 7 * 4096 + 7 * 100 * 64;
  const std::int64_t top = joined * 4096 + 4096 + 3 * square + 4096 + 1;
  EXPECT_EQ(parameter_count(graph), 7 * 4 * square + 7 * 1000000 * std::int64_t{64} + top);
  EXPECT_EQ(graph.seq_len, 0);

  const Branching branching = branching_of(graph);
  EXPECT_EQ(branching.sources, 14);
  EXPECT_EQ(branching.sinks, 1);
  EXPECT_EQ(branching.widest_join, 14);
  EXPECT_TRUE(branching.series_parallel);
}

TEST(Dlrm, DfmodelConfiguration) {
  // Ko et al. 2024 (DFModel): "793B DLRM", 600 tables × 14,211,469 × 93 and 20 layers of 3375
  // without biases, 15 of them behind the exchange of the embeddings.
  const Graph graph = load_model("dlrm-dfmodel", {});
  const std::int64_t tables = 600 * std::int64_t{14211469} * 93;
  EXPECT_EQ(parameter_count(graph), tables + 20 * 3375 * 3375);
  EXPECT_NEAR(static_cast<double>(parameter_count(graph)), 793e9, 0.5e9);
  EXPECT_DOUBLE_EQ(forward_flops(graph), 2.0 * 20 * 3375 * 3375);

  const Branching branching = branching_of(graph);
  EXPECT_EQ(branching.sources, 601);
  EXPECT_EQ(branching.widest_join, 601);
  EXPECT_TRUE(branching.series_parallel);
}

TEST(Dlrm, DfmodelLooksUpWhatItExchanges) {
  // DFModel's trace of 512 samples moves 857,088,000 bytes of looked-up rows in fp16 and exchanges
  // 600 pooled vectors of 93 for each sample.
  const Graph graph = load_model("dlrm-dfmodel", {});
  double looked_up = 0;
  double pooled = 0;
  for (const Operator& op : graph.operators) {
    if (!std::holds_alternative<Embedding>(op.kind)) continue;
    const OpWork work = forward_work(graph, op);
    looked_up += work.weight_bytes;
    pooled += work.output_bytes;
  }
  EXPECT_DOUBLE_EQ(512 * looked_up, 857088000);
  EXPECT_DOUBLE_EQ(pooled, 600.0 * 93 * 2);
}

TEST(Dlrm, PublishedSizeForTheCriteoKaggleData) {
  // Naumov et al. 2019 (§5, "approximately 540M parameters"): the 26 tables of the data set, 16
  // wide; bottom 512-256-64-16, top 512-256-1.
  const Graph graph = graph_of(R"({"model_type": "dlrm", "dense_features": 13,
      "bottom_mlp": [512, 256, 64, 16], "embedding_dim": 16, "lookups": 1,
      "embedding_rows": [1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593,
                         3194, 27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105,
                         142572],
      "interaction": "dot", "top_mlp": [512, 256, 1]})");
  EXPECT_NEAR(static_cast<double>(parameter_count(graph)), 540e6, 2e6);
}

TEST(Dlrm, PairsOfVectorsFeedTheTop) {
  // Four vectors of 16: six pairs beside the 16 dense features.
  const Graph graph = graph_of(kSmallDlrm);
  const std::int64_t bottom = 13 * 512 + 512 + 512 * 16 + 16;
  const std::int64_t top = (16 + 6) * 512 + 512 + 512 * 256 + 256 + 256 + 1;
  EXPECT_EQ(parameter_count(graph), bottom + 3 * 1000 * 16 + top);
  EXPECT_DOUBLE_EQ(forward_flops(graph),
                   2.0 * (13 * 512 + 512 * 16 + 4 * 4 * 16 + 22 * 512 + 512 * 256 + 256));
  const Graph summed = graph_of(replaced(kSmallDlrm, R"("lookups": 1)", R"("lookups": 50)"));
  EXPECT_EQ(parameter_count(summed), parameter_count(graph));
}

TEST(Dlrm, BadConfigsAreRefusedByTheNameOfTheField) {
  EXPECT_EQ(refusal_of_config(kSmallDlrm), "");
  const auto expect_refusal = [](const std::string& from, const std::string& to,
                                 const std::string& field) {
    const std::string refusal = refusal_of_config(replaced(kSmallDlrm, from, to));
    EXPECT_NE(refusal.find(field), std::string::npos) << from << " → " << to << ": " << refusal;
  };
  expect_refusal(R"("dense_features": 13,)", "", "dense_features");
  expect_refusal("[512, 16]", "[512, 0]", "bottom_mlp");
  expect_refusal("[512, 16]", "[]", "bottom_mlp");
  expect_refusal("[512, 16]", "[512, 17]", "interaction");
  expect_refusal("[512, 16]", R"([512, 256, 128, 64, 32, 16, 16], "dense_branches": 15000)",
                 "bottom_mlp");
  expect_refusal(R"("num_tables": 3,)", "", "num_tables");
  expect_refusal(R"("num_tables": 3)", R"("num_tables": 1e9)", "num_tables");
  expect_refusal(R"("embedding_rows": 1000)", R"("embedding_rows": [10, 20])", "num_tables");
  expect_refusal(R"("embedding_rows": 1000)", R"("embedding_rows": [10, -20, 30])",
                 "embedding_rows");
  expect_refusal(R"("embedding_rows": 1000)", R"("embedding_rows": 1e300)", "embedding_rows");
  expect_refusal("dot", "dots", "interaction");
  expect_refusal(R"("interaction": "dot",)", "", "interaction");
  expect_refusal(R"("lookups": 1)", R"("lookups": 1, "bag": "mean")", "bag");
  expect_refusal(R"("lookups": 1)", R"("lookups": 1, "mlp_bias": 1)", "mlp_bias");
  // Features that add up to more than there can be.
  const std::string wide =
      replaced(replaced(replaced(kSmallDlrm, R"("embedding_dim": 16)", R"("embedding_dim": 65536)"),
                        "dot", "cat"),
               R"("lookups": 1)", R"("bag": "concat", "lookups": 65536)");
  EXPECT_NE(refusal_of_config(wide).find("embedding_dim"), std::string::npos);
  EXPECT_NE(refusal_of_config(kSmallDlrm, {.seq_len = 8, .dims = {}}).find("--seq-len"),
            std::string::npos);
}

}  // namespace
}  // namespace braid
