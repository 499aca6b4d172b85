#include "braid/base/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string_view> kChips = {"a100-40gb", "a100-80gb", "h100-pcie",
                                              "h100-sxm",  "tpu-v4",    "v100"};

TEST(Suggest, FindsTypingMistakes) {
  EXPECT_EQ(nearest("h100-smx", kChips), "h100-sxm");
  EXPECT_EQ(nearest("H100-SXM", kChips), "h100-sxm");
  EXPECT_EQ(nearest("tpuv4", kChips), "tpu-v4");
  EXPECT_EQ(nearest("a100-80g", kChips), "a100-80gb");
}

TEST(Suggest, FindsPartsOfNames) {
  EXPECT_THAT(nearest_few("h100", kChips, 2), ElementsAre("h100-sxm", "h100-pcie"));
  EXPECT_THAT(nearest_few("80gb", kChips, 5), ElementsAre("a100-80gb"));
}

TEST(Suggest, FindsNamesOfWhichAWordHasAllParts) {
  const std::vector<std::string_view> models = {"gpt2", "gpt2-xl", "llama-3-70b", "llama-3-8b"};
  EXPECT_EQ(nearest("meta-llama/Llama-3.1-8B-Instruct", models), "llama-3-8b");
  EXPECT_EQ(nearest("openai-community/gpt2", models), "gpt2");
  EXPECT_EQ(nearest("openai-community/gpt2-xl", models), "gpt2-xl");
  EXPECT_EQ(nearest("meta-llama/Llama-3.1-405B", models), "");
}

TEST(Suggest, NothingNearIsNothing) {
  EXPECT_EQ(nearest("cerebras", kChips), "");
  EXPECT_EQ(nearest("", kChips), "");
  EXPECT_THAT(nearest_few(std::string(1000, 'h'), kChips, 5), IsEmpty());
  EXPECT_EQ(nearest("x", std::vector<std::string_view>{}), "");
}

TEST(Suggest, RemedyNamesTheNearestOrAll) {
  EXPECT_EQ(did_you_mean("v10", kChips), "did you mean 'v100'?");
  EXPECT_THAT(did_you_mean("cerebras", kChips), HasSubstr("known: a100-40gb, a100-80gb"));
  EXPECT_EQ(did_you_mean("x", std::vector<std::string>{}), "");
  EXPECT_EQ(did_you_mean("v10", std::vector<std::string>{"v100"}), "did you mean 'v100'?");
}

}  // namespace
}  // namespace braid
