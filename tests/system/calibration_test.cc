#include "braid/system/calibration.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "base/error_text.h"

namespace braid {
namespace {

Calibration read_text(const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder / "c.yaml";
  write_file(file, text);
  return read_calibration(file);
}

std::string complaint(const std::string& text) {
  return error_text([&] { static_cast<void>(read_text(text)); });
}

TEST(Calibration, IsReadAsItWasWritten) {
  const Achieved h100 = {0.61, 0.4, 0.75, 3e-6, 15e-6, 0.2, 0.8, 0.7, 0.45};
  const Achieved tpu = {0.7, 0.5, 0.9, 2e-6, 0, 0, 0.9, 0};
  const Calibration read =
      read_text(calibration_text({{"h100-sxm", 12, h100}, {"tpu-v5p", 3, tpu}}));
  ASSERT_EQ(read.chips.size(), 2U);
  EXPECT_EQ(read.chips[0].chip, "h100-sxm");
  EXPECT_EQ(read.chips[0].runs, 12U);
  EXPECT_DOUBLE_EQ(read.chips[0].achieved.matmul, 0.61);
  EXPECT_DOUBLE_EQ(read.chips[0].achieved.host_operator_s, 15e-6);
  EXPECT_DOUBLE_EQ(read.chips[0].achieved.inter_node, 0.7);
  EXPECT_DOUBLE_EQ(read.chips[0].achieved.narrow_matmul, 0.45);
  EXPECT_EQ(read.chips[1].achieved.narrow_matmul, 0);
  EXPECT_EQ(read.chips[1].achieved.inter_node, 0);
  EXPECT_EQ(read.chips[1].achieved.overlap_loss, 0);
}

TEST(Calibration, KeepsAnyName) {
  for (const std::string name : {"my chip: rev 2 # b", "a\r", "\"x\"", "1e3", "- true", "é"}) {
    const Calibration read = read_text(calibration_text({{name, 1, {}}}));
    ASSERT_EQ(read.chips.size(), 1U) << name;
    EXPECT_EQ(read.chips[0].chip, name);
  }
}

TEST(Calibration, ReplacesOnlyWhatItSays) {
  System system = load_system("dgx-h100:16");
  const Achieved before = achieved_of(system);
  const Calibration calibration =
      read_text("calibration: [{chip: h100-sxm, runs: 4, matmul: 0.5, inter_node: 0.25}]\n");
  ASSERT_TRUE(apply_calibration(calibration, system));
  Achieved expected = before;
  expected.matmul = 0.5;
  expected.inter_node = 0.25;
  EXPECT_EQ(achieved_of(system), expected);
  const auto& provenance = system.groups.front().chip.provenance;
  const bool said = std::any_of(provenance.begin(), provenance.end(), [](const Provenance& p) {
    return p.key == "efficiency" && !p.assumed &&
           p.source.find("fitted to 4 measured runs") != std::string::npos;
  });
  EXPECT_TRUE(said);
}

TEST(Calibration, LeavesOtherChipsAlone) {
  System system = load_system("dgx-a100:16");
  const System before = system;
  EXPECT_FALSE(apply_calibration({"f", {{"h100-sxm", 1, {0.5, 0, 0, 0, 0, 0, 0, 0}}}}, system));
  EXPECT_EQ(system, before);
}

TEST(Calibration, ChipsThatShareANetworkTakeTheSlower) {
  System system = load_system("dgx-a100:8+dgx-h100:8");
  Achieved fast;
  fast.inter_node = 0.9;
  Achieved slow;
  slow.inter_node = 0.4;
  ASSERT_TRUE(
      apply_calibration({"f", {{"h100-sxm", 1, fast}, {"a100-sxm-80gb", 1, slow}}}, system));
  EXPECT_DOUBLE_EQ(system.levels.front().efficiency, 0.4);
}

TEST(Calibration, RefusesWhatIsNone) {
  EXPECT_NE(complaint("calibration: []\n").find("no chip is calibrated"), std::string::npos);
  EXPECT_NE(complaint("calibration: [{chip: a, matmul: 1.5}]\n"), "");
  EXPECT_NE(complaint("calibration: [{chip: a, kernel_launch: 5 s}]\n"), "");
  EXPECT_NE(complaint("calibration: [{chip: a, colour: 1}]\n"), "");
  EXPECT_NE(complaint("calibration: [{chip: a}, {chip: a}]\n").find("twice"), std::string::npos);
  EXPECT_NE(complaint("chips: 1\n"), "");
  EXPECT_NE(complaint("calibration: 3\n"), "");
}

}  // namespace
}  // namespace braid
