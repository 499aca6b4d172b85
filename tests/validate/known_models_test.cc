#include "braid/validate/known_models.h"

#include <cmath>

#include <gtest/gtest.h>

#include "braid/graph/op_work.h"
#include "braid/validate/run_model.h"

namespace braid {
namespace {

TEST(KnownModels, AreFoundInAnySpelling) {
  const auto layers = [](const char* name) {
    const auto model = known_model(name);
    return model ? model->layers : 0;
  };
  EXPECT_EQ(layers("GPT-3 18.4B"), 40);
  EXPECT_EQ(layers("gpt3_18b"), 40);
  EXPECT_EQ(layers("22B"), 48);
  EXPECT_EQ(layers("Megatron-22B (selective)"), 48);
  EXPECT_EQ(layers("turing-530B"), 105);
  EXPECT_EQ(layers("MT-NLG 530B"), 105);
  EXPECT_EQ(layers("GPT-1T"), 128);
  EXPECT_EQ(layers("LLaMA-65B"), 80);
  EXPECT_EQ(layers("Qwen2.5-72B-Instruct"), 80);
  EXPECT_EQ(layers("Nemotron-4 340B"), 96);
  EXPECT_EQ(layers("BLOOM-7B1"), 30);
  // Neither another family of that size nor a part of a name.
  EXPECT_EQ(layers("llama-22b"), 0);
  EXPECT_EQ(layers("gpt"), 0);
  EXPECT_EQ(layers("122B"), 0);
}

/// What the names say, counted from the dimensions.
TEST(KnownModels, HaveTheParametersOfTheirNames) {
  const auto billions = [](const char* name) {
    MeasuredRun run;
    run.model = name;
    run.seq_len = 2048;
    const RunModel model = model_of(run);
    EXPECT_EQ(model.reason, "") << name;
    return model.graph ? static_cast<double>(parameter_count(*model.graph)) / 1e9 : 0;
  };
  struct Case {
    const char* name;
    double billions;
  };
  for (const Case& c :
       {Case{"GPT-3.6B", 3.6},       Case{"GPT-18.4B", 18.4},      Case{"GPT-39.1B", 39.1},
        Case{"GPT-76.1B", 76.1},     Case{"GPT-145.6B", 145.6},    Case{"GPT-310.1B", 310.1},
        Case{"GPT-529.6B", 529.6},   Case{"GPT-1T", 1008},         Case{"GPT-22B", 22},
        Case{"OPT-66B", 66},         Case{"BLOOM-176B", 176.2},    Case{"LLaMA-7B", 6.74},
        Case{"LLaMA-13B", 13.02},    Case{"LLaMA-33B", 32.5},      Case{"LLaMA-65B", 65.3},
        Case{"CodeLlama-34B", 33.7}, Case{"Qwen2.5-32B", 32.8},    Case{"Qwen2.5-72B", 72.7},
        Case{"Falcon-180B", 179.5},  Case{"Nemotron-4 340B", 341}, Case{"Yi-34B", 34.4},
        Case{"InternLM2-20B", 19.9}}) {
    EXPECT_NEAR(billions(c.name) / c.billions, 1, 0.02) << c.name;
  }
}

TEST(KnownModels, GptHasAsManyPositionsAsItsSamples) {
  MeasuredRun run;
  run.model = "GPT3-175B";
  run.seq_len = 4096;
  EXPECT_EQ(model_of(run).reason, "");
}

}  // namespace
}  // namespace braid
