#include "braid/report/confidence_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/quantity.h"
#include "braid/system/system.h"

#include "plan_maker.h"

namespace braid {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A plan of Megatron-LM on an H100, of which a user lets plans use `limit_bytes`, that fills this
/// much.
Candidate filling(double used_bytes, double limit_bytes) {
  Parallelism parallel;
  parallel.num_micro_batches = 4;
  Candidate candidate{test::made_plan(parallel, 4), {}};
  Plan& plan = candidate.plan;
  plan.trainer.name = "megatron";
  plan.system.groups.front().chip = load_chip("h100-sxm");
  Chip& chip = plan.system.groups.front().chip;
  chip.reserved_bytes = std::max(chip.reserved_bytes, chip.memory.bytes - limit_bytes);
  candidate.metrics.iteration_time_s = 1;
  candidate.metrics.mfu = 0.4;
  candidate.metrics.peak_memory_bytes = used_bytes;
  return candidate;
}

std::string lines_of(const Candidate& candidate) {
  return fmt::format("{}", fmt::join(confidence_lines(candidate), "\n"));
}

TEST(ConfidenceText, SaysThatAPlanMayNotFitWhereTheDeviceItselfMayBeTooSmall) {
  const Chip chip = load_chip("h100-sxm");
  const double room_bytes = usable_bytes(chip);
  EXPECT_THAT(
      lines_of(filling(0.999 * room_bytes, chip.memory.bytes)),
      HasSubstr(fmt::format("; the device has {:.1f} GiB, so it may not fit: --max-memory '",
                            room_bytes / kGiB)));
  EXPECT_THAT(lines_of(filling(0.5 * room_bytes, chip.memory.bytes)), Not(HasSubstr("may not")));
  // A limit of the user's is no end of the device.
  EXPECT_THAT(lines_of(filling(0.5 * room_bytes, 0.5 * room_bytes)), Not(HasSubstr("may not")));
  EXPECT_THAT(lines_of(filling(0.999 * room_bytes, 0.999 * room_bytes)), HasSubstr("may not fit"));
}

TEST(ConfidenceText, TheLimitThatItNamesLeavesRoom) {
  const double room_bytes = usable_bytes(load_chip("h100-sxm"));
  const std::string said = lines_of(filling(0.999 * room_bytes, room_bytes));
  const std::string before = "--max-memory '";
  const std::size_t at = said.find(before);
  ASSERT_NE(at, std::string::npos) << said;
  const double limit_bytes = std::stod(said.substr(at + before.size())) * kGiB;
  EXPECT_GT(limit_bytes, 0.9 * room_bytes);
  EXPECT_THAT(lines_of(filling(limit_bytes, limit_bytes)), Not(HasSubstr("may not")));
}

TEST(ConfidenceText, SaysInWhatFormTheNearestRunsWere) {
  const Candidate candidate = filling(kGiB, 2 * kGiB);
  const auto confidence = confidence_of(candidate.plan, candidate.metrics);
  ASSERT_TRUE(confidence);
  ASSERT_FALSE(confidence->nearest.empty());
  const std::string said = lines_of(candidate);
  for (const RunError& run : confidence->nearest) {
    std::string form = " by " + run.traits.trainer + ", " + run.traits.format;
    if (run.traits.tp > 1) form += fmt::format(", TP {}", run.traits.tp);
    if (run.traits.cp > 1) form += fmt::format(", CP {}", run.traits.cp);
    if (run.traits.pp > 1) form += fmt::format(", PP {}", run.traits.pp);
    EXPECT_THAT(said, HasSubstr(form));
  }
}

TEST(ConfidenceText, SaysOfTheTimesShownHowFarOffTheirRatiosMayBe) {
  std::vector<Candidate> candidates(3, filling(kGiB, 2 * kGiB));
  candidates[1].metrics.iteration_time_s = 1.001;
  candidates[2].metrics.iteration_time_s = 100;
  EXPECT_THAT(not_told_apart_text(candidates),
              testing::MatchesRegex("Plan 2 may turn out faster than the first when measured: "
                                    "ratios of these times may be off by [0-9]+ % .80 % "
                                    "interval.; see braid tune.\n"));
}

}  // namespace
}  // namespace braid
