#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/plan/outcome.h"

namespace braid {
namespace {

Candidate candidate(int tp, double time_s, double memory_bytes) {
  Candidate made;
  made.plan.parallel.tp = tp;
  made.metrics.iteration_time_s = time_s;
  made.metrics.peak_memory_bytes = memory_bytes;
  return made;
}

TEST(IdleTrades, AreLeftOutAndNothingElse) {
  Outcome outcome;
  outcome.candidates = {candidate(1, 1.0, 100),      // The plan.
                        candidate(1, 1.1, 99.99),    // Slower, and frees a ten-thousandth.
                        candidate(1, 1.2, 90),       // Frees something.
                        candidate(2, 1.3, 100),      // Other degrees.
                        candidate(2, 1.4, 100.001),  // Those, slower.
                        candidate(1, 1.5, 90)};      // As the third, slower.
  leave_out_idle_trades(outcome);
  ASSERT_EQ(outcome.candidates.size(), 3U);
  EXPECT_EQ(outcome.candidates[0].metrics.iteration_time_s, 1.0);
  EXPECT_EQ(outcome.candidates[1].metrics.iteration_time_s, 1.2);
  EXPECT_EQ(outcome.candidates[2].metrics.iteration_time_s, 1.3);
}

// A recommended plan comes first though another of its degrees and memory is faster.
TEST(IdleTrades, TheFirstAndTheFastestStay) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 300; ++trial) {
    Outcome outcome;
    double least_s = 1e9;
    for (int i = 0; i < 6; ++i) {
      const double time_s = 1 + 0.01 * static_cast<double>(random() % 50);
      outcome.candidates.push_back(
          candidate(1 + static_cast<int>(random() % 2), time_s, 50.0 + 10 * (random() % 2)));
      least_s = std::min(least_s, time_s);
    }
    const double first_s = outcome.candidates.front().metrics.iteration_time_s;
    leave_out_idle_trades(outcome);
    EXPECT_EQ(outcome.candidates.front().metrics.iteration_time_s, first_s);
    EXPECT_TRUE(std::any_of(
        outcome.candidates.begin(), outcome.candidates.end(),
        [&](const Candidate& each) { return each.metrics.iteration_time_s == least_s; }));
    // What is left of the same degrees and memory is of one time, but for the first.
    for (std::size_t i = 1; i < outcome.candidates.size(); ++i) {
      for (std::size_t j = i + 1; j < outcome.candidates.size(); ++j) {
        const Candidate &a = outcome.candidates[i], &b = outcome.candidates[j];
        EXPECT_FALSE(a.plan.parallel.tp == b.plan.parallel.tp &&
                     a.metrics.peak_memory_bytes == b.metrics.peak_memory_bytes &&
                     a.metrics.iteration_time_s != b.metrics.iteration_time_s);
      }
    }
  }
}

}  // namespace
}  // namespace braid
