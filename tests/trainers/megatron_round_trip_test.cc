#include <set>
#include <string>

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
