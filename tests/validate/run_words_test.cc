#include "braid/validate/run_words.h"

#include <optional>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(RunWords, Sharding) {
  const auto read = [](const std::string& text) -> std::optional<std::pair<Zero, bool>> {
    Zero zero = Zero::optimizer;
    bool offload = false;
    if (!read_sharding(text, zero, offload)) return std::nullopt;
    return std::pair(zero, offload);
  };
  using Result = std::pair<Zero, bool>;
  EXPECT_EQ(read(""), Result(Zero::optimizer, false));  // As the trainer has it.
  EXPECT_EQ(read("FSDP=0"), Result(Zero::optimizer, false));
  EXPECT_EQ(read("DDP"), Result(Zero::none, false));
  EXPECT_EQ(read("no"), Result(Zero::none, false));
  EXPECT_EQ(read("zero_stage 1"), Result(Zero::optimizer, false));
  EXPECT_EQ(read("distributed optimizer"), Result(Zero::optimizer, false));
  EXPECT_EQ(read("FSDP (ZeRO-2-like)"), Result(Zero::optimizer, false));
  EXPECT_EQ(read("ZeRO2"), Result(Zero::gradients, false));
  EXPECT_EQ(read("SHARD_GRAD_OP"), Result(Zero::gradients, false));
  EXPECT_EQ(read("ZeRO-Offload"), Result(Zero::gradients, true));
  EXPECT_EQ(read("ZeRO stage 3 + offload"), Result(Zero::parameters, true));
  EXPECT_EQ(read("HSDP"), Result(Zero::parameters, false));
  EXPECT_EQ(read("ZeRO-Infinity"), std::nullopt);
  EXPECT_EQ(read("ZeRO++"), std::nullopt);
  EXPECT_EQ(read("half"), std::nullopt);
}

TEST(RunWords, Recomputation) {
  const auto read = [](const std::string& text) -> std::optional<Recompute> {
    Recompute recompute = Recompute::none;
    return read_recompute(text, recompute) ? std::optional(recompute) : std::nullopt;
  };
  EXPECT_EQ(read("full (config use_checkpoint=true)"), Recompute::full);
  EXPECT_EQ(read("Activation checkpointing"), Recompute::full);
  EXPECT_EQ(read("True"), Recompute::full);
  EXPECT_EQ(read("selective + sequence parallel"), Recompute::selective);
  EXPECT_EQ(read("core_attn"), Recompute::selective);
  EXPECT_EQ(read("none (mostly)"), Recompute::none);
  EXPECT_EQ(read("off"), Recompute::none);
  // Of some layers or operators alone.
  EXPECT_EQ(read("block (10 layers)"), std::nullopt);
  EXPECT_EQ(read("per-op (plan)"), std::nullopt);
  EXPECT_EQ(read("mlp"), std::nullopt);
}

TEST(RunWords, EverySecondOperatorIsNeitherFullNorSelective) {
  EXPECT_TRUE(recomputes_every_second("selective per-op"));
  EXPECT_TRUE(recomputes_every_second("Selective (per op)"));
  EXPECT_FALSE(recomputes_every_second("selective"));
  EXPECT_FALSE(recomputes_every_second("per-op (plan)"));
}

TEST(RunWords, Precisions) {
  const auto read = [](const std::string& text) -> std::optional<Dtype> {
    Precision precision;
    return read_precision(text, precision) ? std::optional(precision.matmul) : std::nullopt;
  };
  EXPECT_EQ(read(""), Dtype::bf16);
  EXPECT_EQ(read("bfloat16"), Dtype::bf16);
  EXPECT_EQ(read("amp_bf16"), Dtype::bf16);
  EXPECT_EQ(read("float16"), Dtype::f16);
  EXPECT_EQ(read("mixed precision"), Dtype::f16);
  EXPECT_EQ(read("FP8-CS"), Dtype::f8);
  EXPECT_EQ(read("NVFP4"), Dtype::f4);
  EXPECT_EQ(read("TF32"), Dtype::tf32);
  EXPECT_EQ(read("fp8/bf16"), Dtype::f8);
  EXPECT_EQ(read("float8 tensorwise"), Dtype::f8);
  EXPECT_EQ(read("float8_rowwise"), Dtype::f8);
  EXPECT_EQ(read("int8"), std::nullopt);
}

TEST(RunWords, SchedulesAreNeverTakenForOthers) {
  const auto read = [](const std::string& text) -> std::optional<ScheduleKind> {
    ScheduleKind schedule = ScheduleKind::one_f_one_b;
    return read_schedule(text, schedule) ? std::optional(schedule) : std::nullopt;
  };
  EXPECT_EQ(read(""), ScheduleKind::one_f_one_b);
  EXPECT_EQ(read("1F1B (config pipeline_scheduling)"), ScheduleKind::one_f_one_b);
  EXPECT_EQ(read("PipeDream-Flush"), ScheduleKind::one_f_one_b);
  EXPECT_EQ(read("1F1B-I"), ScheduleKind::interleaved);
  EXPECT_EQ(read("modified interleaved 1F1B"), ScheduleKind::interleaved);
  EXPECT_EQ(read("GPipe"), ScheduleKind::gpipe);
  for (const char* other : {"ZB-1p", "zero bubble", "DualPipe", "V-Half", "Chimera", "magic"}) {
    EXPECT_EQ(read(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace braid
