#include "braid/profile/precision.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

System system_of(const std::vector<std::string>& chips) {
  System system;
  for (const std::string& chip : chips) {
    system.groups.emplace_back();
    system.groups.back().chip = load_chip(chip);
  }
  return system;
}

TEST(UsualPrecision, IsTheFirstThatEveryChipLists) {
  EXPECT_EQ(name_of(usual_precision(system_of({"h100-sxm"}))), "bf16");
  EXPECT_EQ(name_of(usual_precision(system_of({"v100-sxm-16gb"}))), "fp16");
  EXPECT_EQ(name_of(usual_precision(system_of({"a100-sxm-80gb", "t4"}))), "fp16");
  Chip old;
  old.peaks.push_back({Dtype::f32, 1e13});
  System mixed = system_of({"tpu-v4"});
  mixed.groups.emplace_back();
  mixed.groups.back().chip = old;
  // Together they have nothing: what some of them have.
  EXPECT_EQ(name_of(usual_precision(mixed)), "bf16");
  mixed.groups.erase(mixed.groups.begin());
  EXPECT_EQ(name_of(usual_precision(mixed)), "fp32");
  mixed.groups[0].chip.peaks.clear();
  EXPECT_EQ(name_of(usual_precision(mixed)), "bf16");
}

TEST(MatmulPeakIn, NamesWhatTheChipLists) {
  Chip chip = load_chip("v100-sxm-16gb");
  EXPECT_EQ(matmul_peak_in(chip, parse_precision("fp16")), 125e12);
  try {
    matmul_peak_in(chip, parse_precision("fp8"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "chip v100-sxm-16gb lists no fp8 peak; choose a --precision that it has: fp16, fp32");
  }
  chip.peaks.clear();
  EXPECT_THROW(matmul_peak_in(chip, {}), Error);
}

TEST(Precision, NamesAreReadBack) {
  for (const char* name : {"bf16", "fp16", "fp8", "tf32", "fp32"}) {
    EXPECT_EQ(name_of(parse_precision(name)), name);
  }
  EXPECT_THROW(parse_precision("int3"), Error);
}

}  // namespace
}  // namespace braid
