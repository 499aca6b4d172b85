#include "braid/plan/pass_runs.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/heterogeneous_plan.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using RunList = std::vector<PassRun>;

/// One letter a pass.
std::string letters(const RunList& runs) {
  std::string text;
  for (const PassRun& run : runs) {
    for (std::int64_t i = 0; i < run.times; ++i) {
      text.append(static_cast<std::size_t>(run.forwards), 'F');
      text.append(static_cast<std::size_t>(run.backwards), 'B');
    }
  }
  return text;
}

/// Pass by pass; most micro-batches held, -1 for what is no order of m.
std::int64_t most_held(const std::string& passes, std::int64_t m) {
  std::int64_t held = 0, most = 0;
  for (const char pass : passes) {
    held += pass == 'F' ? 1 : -1;
    if (held < 0) return -1;
    most = std::max(most, held);
  }
  const bool complete = std::count(passes.begin(), passes.end(), 'F') == m && held == 0;
  return complete ? most : -1;
}

TEST(PassRuns, AreAnOrderWhereGoingThroughThePassesSaysSo) {
  std::mt19937_64 random(1);
  int orders = 0, others = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    RunList runs;
    for (int i = test::draw(random, 1, 4); i > 0; --i) {
      runs.push_back(
          {test::draw(random, 1, 3), test::draw(random, 1, 3), test::draw(random, 1, 3)});
    }
    std::int64_t m = test::draw(random, 1, 20);
    if (trial % 2 == 0) {
      const std::string passes = letters(runs);
      m = std::count(passes.begin(), passes.end(), 'F');
      const std::int64_t left = m - std::count(passes.begin(), passes.end(), 'B');
      if (left > 0 && runs.back().times == 1) runs.back().backwards += left;
    }
    const std::int64_t most = most_held(letters(runs), m);
    const std::string fault = passes_fault(runs, m);
    EXPECT_EQ(fault.empty(), most >= 0) << letters(runs) << ' ' << m << ' ' << fault;
    (fault.empty() ? orders : others)++;
    if (!fault.empty()) continue;
    EXPECT_EQ(most_in_flight(runs), most) << letters(runs);
  }
  EXPECT_GT(orders, 1000);
  EXPECT_GT(others, 1000);
}

TEST(PassRuns, NameTheFirstBackwardPassThatComesTooEarly) {
  EXPECT_EQ(passes_fault(RunList{{2, 1, 1}, {1, 2, 1}, {1, 2, 1}, {3, 2, 1}}, 7),
            "runs the backward pass of micro-batch 4 before its forward pass");
  EXPECT_EQ(passes_fault(RunList{{3, 1, 1}, {1, 2, 6}}, 9),
            "runs the backward pass of micro-batch 6 before its forward pass");
}

TEST(PassRuns, CountsOfAnySizeAreRefusedAtOnce) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_THAT(passes_fault(RunList{{kHuge, 1, kHuge}}, 8), HasSubstr("more than 8 forward passes"));
  EXPECT_THAT(passes_fault(RunList{{1, kHuge, kHuge}}, kHuge),
              HasSubstr("before its forward pass"));
  EXPECT_THAT(passes_fault(RunList{{1, 1, kHuge}, {1, 1, 1}}, kHuge), HasSubstr("more than"));
  EXPECT_EQ(passes_fault(RunList{{1, 1, kHuge}}, kHuge), "");
  EXPECT_THAT(passes_fault(RunList{{1, 1, 3}}, 4),
              HasSubstr("3 forward and 3 backward passes, not 4"));
  for (const std::int64_t count : {std::int64_t{0}, -kHuge}) {
    EXPECT_THAT(passes_fault(RunList{{count, 1, 1}}, 1), HasSubstr("a count below 1"));
    EXPECT_THAT(passes_fault(RunList{{1, count, 1}}, 1), HasSubstr("a count below 1"));
    EXPECT_THAT(passes_fault(RunList{{1, 1, count}}, 1), HasSubstr("a count below 1"));
  }
}

TEST(PassRuns, AppendedPassesAreJoinedAndReadWell) {
  RunList runs;
  append_passes(runs, 3, 1);
  for (int i = 0; i < 11; ++i) append_passes(runs, 1, 1);
  append_passes(runs, 1, 3);
  EXPECT_EQ(runs, (RunList{{3, 1, 1}, {1, 1, 11}, {1, 3, 1}}));
  EXPECT_EQ(passes_text(runs), "3F 1B, 11 x 1F 1B, 1F 3B");
  EXPECT_EQ(most_in_flight(runs), 3);
  for (int i = 1; i < 9; ++i) append_passes(runs, i, i + 1);
  EXPECT_THAT(passes_text(runs), HasSubstr(", …"));
}

}  // namespace
}  // namespace braid
