#include "braid/kernels/attention.h"

#include <cmath>

#include <gtest/gtest.h>

#include "braid/system/system.h"

namespace braid {
namespace {

AttentionSetting machine() { return {{100, 5e7, 3e12, 1e15}, 2}; }

PrefillFigures prefill_figures() {
  PrefillFigures f;
  f.peak = 0.5;
  f.pair = 1e-15;
  f.step = 1e-12;
  f.epilogue = 1e-9;
  f.block = 1e-12;
  f.whole_waves = 0.05;
  f.memory = 0.8;
  f.l2_gain = 2;
  f.cache = 0.5;
  f.clock_loss = 1e-9;
  f.overlap = 12;
  f.slow = 1;
  f.append = 1e18;
  f.floor = 5e-6;
  return f;
}

DecodeFigures decode_figures() {
  DecodeFigures f;
  f.peak = 0.5;
  f.feed = 1e15;
  f.step = f.head_step = 1e-13;
  f.epilogue = 1e-9;
  f.block = f.head_block = 1e-12;
  f.whole_waves = 0.05;
  f.memory = 0.8;
  f.l2_gain = 2;
  f.cache = 0.5;
  f.overlap = 12;
  f.reduce = 1e-9;
  f.sequence = 1e-13;
  f.floor = 5e-6;
  return f;
}

TEST(Prefill, LongSequencesTakeHalfTheSquareOfTheirPairs) {
  const AttentionShape shape = attention_shape(32, 8, 128, 4, 16384);
  const double work_s = 4 * 32 * (16384.0 * 16385 / 2) * 4 * 128 / (0.5 * 1e15);
  EXPECT_NEAR(PrefillForm::time(prefill_figures(), machine(), shape).time_s / work_s, 1, 0.03);
}

TEST(Prefill, WindowsLeaveOutWhatIsBeforeThem) {
  AttentionShape shape = attention_shape(32, 8, 128, 4, 16384);
  PrefillFigures f = prefill_figures();
  const double all = PrefillForm::time(f, machine(), shape).time_s;
  shape.window = 1024;
  const double windowed = PrefillForm::time(f, machine(), shape).time_s;
  EXPECT_NEAR(windowed / all, 2 * 1024.0 / 16384, 0.02);
  f.whole_window = 1;
  EXPECT_EQ(PrefillForm::time(f, machine(), shape).time_s, all);
}

TEST(Prefill, ShortSequencesOfManyHeadsAreFasterWhereTheyShareKeys) {
  const AttentionShape shape = attention_shape(64, 1, 128, 64, 4);
  PrefillFigures f = prefill_figures();
  f.block = 1e-6;
  const double apart = PrefillForm::time(f, machine(), shape).time_s;
  f.shares_keys = 1;
  EXPECT_LT(PrefillForm::time(f, machine(), shape).time_s, 0.5 * apart);
  f.shares_keys = 2;  // Of single tokens only.
  EXPECT_EQ(PrefillForm::time(f, machine(), shape).time_s, apart);
}

TEST(Decode, LongCachesAreReadOnceFromMemory) {
  const AttentionShape shape = attention_shape(32, 8, 128, 64, 8192);
  const double bytes = 64.0 * 8 * 8192 * 256 * 2 + 64.0 * 32 * 256 * 2;
  EXPECT_NEAR(DecodeForm::time(decode_figures(), machine(), shape).time_s,
              5e-6 + bytes / (0.8 * 3e12), 0.05 * bytes / 3e12);
}

TEST(Decode, HalfAsWideACacheTakesHalfAsLong) {
  const AttentionShape shape = attention_shape(32, 8, 128, 64, 8192);
  AttentionSetting narrow = machine();
  narrow.cache_bytes = 1;
  const DecodeFigures f = decode_figures();
  EXPECT_NEAR((DecodeForm::time(f, narrow, shape).time_s - 5e-6) /
                  (DecodeForm::time(f, machine(), shape).time_s - 5e-6),
              0.5, 0.02);
}

TEST(Decode, OneSequenceIsFasterInParts) {
  const AttentionShape shape = attention_shape(8, 1, 128, 1, 65536);
  DecodeFigures f = decode_figures();
  f.step = 1e-8;
  const double parts = DecodeForm::time(f, machine(), shape).time_s;
  f.whole_keys = 1;
  EXPECT_GT(DecodeForm::time(f, machine(), shape).time_s, 20 * parts);
}

TEST(Attention, LatentCachesAreSharedByAllHeads) {
  const AttentionShape shape = mla_decode_shape(128, 2, 1000);
  EXPECT_EQ(shape.kv_heads, 1);
  EXPECT_EQ(shape.cached_elements, 512 + 64);
  EXPECT_EQ(mla_prefill_shape(128, 2, 1000).key_dim, 128 + 64);
}

TEST(Attention, FormatsAreOfProductsAndCache) {
  const Chip chip = load_chip("h100-sxm");
  const auto setting = attention_setting(chip, "bf16/fp8");
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->cache_bytes, 1);
  EXPECT_EQ(setting->machine.flops_per_s, 989.4e12);
  EXPECT_EQ(attention_setting(chip, "fp8/fp8")->machine.flops_per_s, 1978.9e12);
  EXPECT_FALSE(attention_setting(chip, "bf16"));
  EXPECT_FALSE(attention_setting(load_chip("a100-sxm-80gb"), "fp8/fp8"));
}

}  // namespace
}  // namespace braid
