#include "braid/frontend/trans_gan.h"

#include <gtest/gtest.h>

#include "frontend/zoo_figures.h"

namespace braid {
namespace {

const char* const kSmallTransGan =
    R"({"model_type": "transgan", "latent_size": 5, "bottom_width": 2,
    "hidden_sizes": [16, 16, 4], "depths": [1, 0, 2], "window_sizes": [2, 1, 4],
    "num_attention_heads": 2})";

/// A block: four projections' worth of attention, 4× feed-forward, relative positions of a window,
/// the strength of the noise; pixel norms have no weights.
std::int64_t block(std::int64_t h, std::int64_t heads, std::int64_t window) {
  return 12 * h * h + 9 * h + (2 * window - 1) * (2 * window - 1) * heads + 1;
}

TEST(TransGan, AmpsConfiguration) {
  // Li et al. 2022 (AMP), §6.5.3: "12 layers with dimensions 1024, and 12 layers with dimensions
  // 16", bottom width 9; latent size 512, four heads and windows of 9 and 18 from its scripts.
  const std::int64_t latent = (512 + 1) * 81 * 1024;
  std::int64_t positions = 0;
  std::int64_t tokens = 81;
  for (const std::int64_t h : {1024, 1024, 1024, 256, 64, 16}) {
    positions += tokens * h;
    tokens *= 4;
  }
  const Graph graph = load_model("transgan", {});
  EXPECT_EQ(parameter_count(graph),
            latent + positions + 12 * block(1024, 4, 9) + 12 * block(16, 4, 18) + 3 * 16 + 3);
  // A latent layer, 24 blocks, five doublings, the image: one chain.
  EXPECT_EQ(graph.layers.size(), 31u);
  EXPECT_EQ(graph.seq_len, 0);
  const Branching branching = branching_of(graph);
  EXPECT_EQ(branching.sources, 1);
  EXPECT_EQ(branching.widest_join, 1);
}

TEST(TransGan, WindowsBoundTheScores) {
  const Graph graph = graph_of(kSmallTransGan);
  // Stage 0: 4 tokens in one window; stage 2: 64 tokens in four windows of 16.
  const double stage0 = 2.0 * 4 * 12 * 16 * 16 + 4.0 * 16 * 4 * 4;
  const double stage2 = 2.0 * 64 * 12 * 4 * 4 + 4.0 * 4 * 4 * 16 * 16;
  EXPECT_DOUBLE_EQ(forward_flops(graph), 2.0 * 5 * 4 * 16 + stage0 + 2 * stage2 + 2.0 * 64 * 4 * 3);
}

TEST(TransGan, BadConfigsAreRefusedByTheNameOfTheField) {
  EXPECT_EQ(refusal_of_config(kSmallTransGan), "");
  const auto expect_refusal = [](const std::string& from, const std::string& to,
                                 const std::string& field) {
    const std::string refusal = refusal_of_config(replaced(kSmallTransGan, from, to));
    EXPECT_NE(refusal.find(field), std::string::npos) << from << " → " << to << ": " << refusal;
  };
  expect_refusal(R"("latent_size": 5,)", "", "latent_size");
  expect_refusal(R"("bottom_width": 2)", R"("bottom_width": 0)", "bottom_width");
  expect_refusal(R"("bottom_width": 2)", R"("bottom_width": 4096)", "bottom_width");
  expect_refusal("[16, 16, 4]", "[16, 16, 8]", "hidden_sizes");
  expect_refusal("[1, 0, 2]", "[1, 2]", "depths");
  expect_refusal("[1, 0, 2]", "[1, -1, 2]", "depths");
  expect_refusal("[2, 1, 4]", "[2, 1, 3]", "window_sizes");
  expect_refusal("[2, 1, 4]", "[2, 4]", "window_sizes");
  expect_refusal(R"("num_attention_heads": 2)", R"("num_attention_heads": 3)",
                 "num_attention_heads");
  EXPECT_NE(refusal_of_config(kSmallTransGan, {.seq_len = 5, .dims = {}}).find("--seq-len"),
            std::string::npos);
}

}  // namespace
}  // namespace braid
