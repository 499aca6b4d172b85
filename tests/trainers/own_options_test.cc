#include "braid/trainers/exchange/own_options.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr OwnOption kOwn[] = {{"--tp", "--tensor-model-parallel-size"},
                              {"--pp", "--pipeline-model-parallel-size"},
                              {"--micro-batch", "--micro-batch-size"},
                              {"--seq-len", "--seq-length"}};
constexpr std::string_view kScript =
    "# --tensor-model-parallel-size 9\nTP=4\nrun --tensor_model_parallel_size $TP \\\n"
    "  --expert-tensor-model-parallel-size-of 3\n  --seq-length 8\n";

TEST(OwnOptions, NamesTheLineAndTheTrainersOwnName) {
  const auto tp = where_said(kScript, "train.sh", kOwn, "--tp");
  ASSERT_TRUE(tp.has_value());
  EXPECT_EQ(tp->file, "train.sh");
  EXPECT_EQ(tp->line, 3);
  EXPECT_EQ(tp->key, "--tensor_model_parallel_size");
  EXPECT_EQ(where_said(kScript, "train.sh", kOwn, "--seq-len")->line, 5);
}

TEST(OwnOptions, OfALineAloneThereIsNoNumber) {
  const auto batch =
      where_said("pretrain_gpt.py --micro-batch-size 3", "--from", kOwn, "--micro-batch");
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->line, 0);
}

TEST(OwnOptions, WhatIsNotThereHasNoPlace) {
  EXPECT_FALSE(where_said(kScript, "train.sh", kOwn, "--pp").has_value());
  EXPECT_FALSE(where_said(kScript, "train.sh", {}, "--tp").has_value());
  EXPECT_FALSE(where_said("", "train.sh", kOwn, "--tp").has_value());
}

}  // namespace
}  // namespace braid
