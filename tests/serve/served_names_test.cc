#include "braid/serve/served_names.h"

#include <string>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/serve/number_formats.h"
#include "braid/serve/served_model.h"
#include "braid/serve/serving_files.h"

namespace braid {
namespace {

TEST(ServedNames, OfEveryCheckpointAreAModelInAFormatOfIt) {
  const Document document = serving_file("checkpoints");
  int models = 0;
  for (const Value& value : document.root()["checkpoints"].elements()) {
    const std::string begins(value["begins"].as_string());
    const std::string model(value["is"].string_or(""));
    // No entry before it takes its names.
    EXPECT_EQ(served_name_of("someone/" + begins + "-Instruct").value_or(""), model) << begins;
    if (model.empty()) continue;
    ++models;
    const ServedModel served = load_served_model(model);
    EXPECT_NO_THROW(serving_format(served, precision_of_checkpoint(begins).precision)) << begins;
    EXPECT_GE(positions_of_checkpoint(begins), 0);
  }
  EXPECT_GT(models, 40);
}

TEST(ServedNames, SayThePrecision) {
  EXPECT_EQ(precision_of_checkpoint("deepseek-ai/DeepSeek-R1").precision, "fp8");
  EXPECT_EQ(precision_of_checkpoint("nvidia/DeepSeek-R1-NVFP4").precision, "fp4");
  EXPECT_EQ(precision_of_checkpoint("openai/gpt-oss-120b").precision, "fp4");
  EXPECT_EQ(precision_of_checkpoint("unsloth/gpt-oss-120b-BF16").precision, "bf16");
  EXPECT_EQ(precision_of_checkpoint("hugging-quants/Meta-Llama-3.1-70B-GPTQ-INT4").precision,
            "int4");
  EXPECT_EQ(precision_of_checkpoint("meta-llama/Llama-3.1-70B").precision, "bf16");
  EXPECT_EQ(precision_of_checkpoint("nobody/knows-this").precision, "bf16");
}

TEST(ServedNames, MayBeOursWithAPrecision) {
  EXPECT_EQ(served_name_of("llama-3-70b-fp4").value_or(""), "llama-3-70b");
  EXPECT_EQ(served_name_of("here/qwen3-32b-int4").value_or(""), "qwen3-32b");
  EXPECT_EQ(precision_of_checkpoint("llama-3-70b-fp4").precision, "fp4");
  EXPECT_FALSE(served_name_of("no-such-model-fp4"));
  EXPECT_FALSE(served_name_of("llama-3-70b-xyz"));
}

TEST(ServedNames, AreNotThoseOfOtherShapes) {
  for (const char* name : {"deepseek-ai/DeepSeek-V2-Lite", "mistralai/Mistral-7B-v0.3",
                           "meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-72B"}) {
    EXPECT_FALSE(served_name_of(name)) << name;
  }
}

}  // namespace
}  // namespace braid
