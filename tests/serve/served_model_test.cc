#include "braid/serve/served_model.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"

namespace braid {
namespace {

TEST(ServedModel, HasThePublishedParameters) {
  const std::pair<const char*, double> published[] = {
      {"llama-3-8b", 8.03e9},  {"llama-3-70b", 70.6e9},  {"qwen3-32b", 32.8e9},
      {"deepseek-v3", 671e9},  {"kimi-k2", 1026e9},      {"qwen3-235b-a22b", 235e9},
      {"gpt-oss-120b", 117e9}, {"minimax-m2.5", 229e9},  {"qwen3.5-397b-a17b", 397e9},
      {"glm-5", 744e9},        {"mixtral-8x7b", 46.7e9},
  };
  for (const auto& [name, parameters] : published) {
    EXPECT_NEAR(parameter_count(load_served_model(name)) / parameters, 1, 0.015) << name;
  }
}

TEST(ServedModel, HasTheGraphsParameters) {
  for (const char* name : {"llama-3-8b", "gemma-2-9b", "mixtral-8x7b"}) {
    const auto of_graph = static_cast<double>(parameter_count(load_model(name, {})));
    EXPECT_NEAR(parameter_count(load_served_model(name)) / of_graph, 1, 0.002) << name;
  }
}

TEST(ServedModel, WindowsAndLeadingLayersAreLayersOfTheirOwn) {
  const ServedModel sliding = load_served_model("gpt-oss-120b");
  ASSERT_EQ(sliding.layers.size(), 2U);
  EXPECT_NE(sliding.layers[0].window, sliding.layers[1].window);
  const ServedModel deepseek = load_served_model("deepseek-v3");
  ASSERT_EQ(deepseek.layers.size(), 2U);
  EXPECT_EQ(deepseek.layers[0].count, 3);
  EXPECT_EQ(deepseek.layers[1].count, 58);
  EXPECT_EQ(deepseek.layer_count(), 61);
}

TEST(ServedModel, MustGenerateText) { EXPECT_THROW(load_served_model("resnet-50"), Error); }

}  // namespace
}  // namespace braid
