#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/frontend/shaped_decoder.h"
#include "braid/graph/graph_json.h"
#include "braid/plan/direct_plan.h"
#include "braid/system/system.h"
#include "braid/trainers/megatron/import.h"
#include "braid/trainers/registry.h"

#include "round_trip.h"

namespace braid {
namespace {

TEST(MegatronRoundTrip, ReadingWhatExportWroteGivesThePlanBitForBit) {
  std::set<std::string> models;
  int written = 0;
  for (const test::RoundTripCase& one : test::round_trip_cases()) {
    const test::RoundTripOutcome outcome = test::round_trip(one, "megatron", "megatron");
    if (!outcome.refused.empty()) continue;
    EXPECT_EQ(outcome.difference, "") << name_of(one);
    models.insert(one.model);
    ++written;
  }
  // Decoders of text are all written in some configuration.
  EXPECT_GE(models.size(), 50U);
  EXPECT_GE(written, 500);
}

/// Layers of four chunks that sum up to `layers`, of which the first and the last may be alone.
std::vector<std::int32_t> some_layout(std::int32_t layers, std::mt19937& random) {
  const auto at_ends = static_cast<std::int32_t>(1 + random() % 3);
  const auto second = static_cast<std::int32_t>(1 + random() % 20);
  const auto last = static_cast<std::int32_t>(1 + random() % 3);
  return {at_ends, second, layers - at_ends - second - last, last};
}

/// A model with MTP modules in four stages of these layers.
test::RoundTripCase in_stages(const char* model, std::vector<std::int32_t> layers) {
  test::RoundTripCase one;
  one.model = model;
  one.cluster = "dgx-h100:16";
  Parallelism& p = one.stated.parallel;
  p.pp = 4;
  p.dp = 4;
  p.ep = 4;
  p.zero = Zero::optimizer;
  one.stated.layers = std::move(layers);
  return one;
}

TEST(MegatronRoundTrip, StagesOfModelsThatPredictFurtherTokens) {
  std::mt19937 random(11);
  const struct {
    const char* model;
    std::int32_t layers;  ///< As the trainers have them: a hybrid's head and predictions are one.
  } kModels[] = {{"deepseek-v3-mtp", 64}, {"nemotron-3.5-lightning-mtp", 54}};
  for (const auto& [model, layers] : kModels) {
    for (const char* trainer : {"megatron", "megatron-bridge"}) {
      for (int i = 0; i < 8; ++i) {
        const test::RoundTripCase one = in_stages(model, some_layout(layers, random));
        const test::RoundTripOutcome outcome = test::round_trip(one, trainer, trainer);
        EXPECT_EQ(outcome.refused, "") << model << " for " << trainer;
        EXPECT_EQ(outcome.difference, "") << model << " for " << trainer;
      }
    }
  }
}

/// HybridModel builds MTP modules on the last stage, whatever the pattern says.
TEST(MegatronRoundTrip, PredictionsOfHybridsApartFromTheHeadAreNotWritten) {
  for (const char* target : {"megatron", "megatron-bridge"}) {
    const auto refusal = [&](std::vector<std::int32_t> layers) {
      const auto one = in_stages("nemotron-3.5-lightning-mtp", std::move(layers));
      return test::round_trip(one, "ideal", target).refused;
    };
    EXPECT_THAT(refusal({14, 14, 26, 1}), testing::HasSubstr("on the last stage, beside the loss"));
    EXPECT_EQ(refusal({14, 14, 25, 2}), "");
  }
}

/// The sizes in a script are the model's: every operator of every layer.
TEST(MegatronRoundTrip, SizesGiveTheGraphOfTheModel) {
  for (const char* name : {"llama-3-8b", "gpt3-175b", "qwen3-30b-a3b", "mixtral-8x7b",
                           "deepseek-v2", "deepseek-v3", "deepseek-v3-mtp", "kimi-k2"}) {
    Graph known = load_model(name, {.seq_len = 2048, .dims = {}});
    Parallelism parallel;
    parallel.dp = 16;
    parallel.num_micro_batches = 4;
    Plan plan = direct_plan(known, {parallel, parse_precision("bf16"), Trainer{}, 64},
                            load_system("dgx-h100:16"), {});
    plan.model_source = name;
    const std::string script = export_plan(plan, "megatron").text;
    const Import read = import_megatron(script, "train.sh");
    ASSERT_TRUE(read.shape.has_value()) << name << read.no_shape;
    EXPECT_EQ(read.unknown, std::vector<std::string>()) << name;
    Graph shaped = graph_of_shape(*read.shape, {.file = "train.sh", .seq_len = 2048});
    known.name = shaped.name = "";
    known.shape = shaped.shape = std::nullopt;
    EXPECT_TRUE(to_json_text(shaped) == to_json_text(known)) << name;
  }
}

}  // namespace
}  // namespace braid
