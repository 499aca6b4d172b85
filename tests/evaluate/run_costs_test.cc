#include "braid/evaluate/run_costs.h"

#include <cmath>

#include <gtest/gtest.h>

namespace braid {
namespace {

/// Share of time that makes progress with any interval, by Daly's model of the run.
double goodput(double interval_s, double save_s, double recover_s, double mtbf_s) {
  return interval_s /
         (mtbf_s * std::exp(recover_s / mtbf_s) * std::expm1((interval_s + save_s) / mtbf_s));
}

TEST(RunCosts, NoIntervalBetweenCheckpointsBeatsDalysByMuch) {
  for (const double mtbf_s : {1e3, 1e4, 1e6, 1e8}) {
    for (const double save_s : {1.0, 30.0, 300.0}) {
      const CheckpointSchedule schedule = daly_schedule(save_s, 600, mtbf_s);
      EXPECT_DOUBLE_EQ(schedule.goodput, goodput(schedule.interval_s, save_s, 600, mtbf_s));
      for (double interval_s = save_s / 100; interval_s < 100 * mtbf_s; interval_s *= 1.05) {
        // The optimum is a series; its error is far below a thousandth (Daly 2006, section 4).
        EXPECT_LE(goodput(interval_s, save_s, 600, mtbf_s), schedule.goodput * 1.001)
            << mtbf_s << " " << save_s << " " << interval_s;
      }
    }
  }
}

TEST(RunCosts, WithoutFailuresNothingIsLost) {
  EXPECT_NEAR(daly_schedule(1e-9, 1, 1e15).goodput, 1, 1e-6);
}

TEST(RunCosts, OfLlama3sTrainingAreAsItsReportSays) {
  // "More than 90 % effective training time" on 16,384 GPUs (arXiv:2407.21783, section 3.3.4).
  const FailureModel failures;
  const double save_s = 405e9 * 14 / (16384 * failures.checkpoint_bytes_per_s);
  const double share =
      daly_schedule(save_s, failures.restart_s + save_s, failures.device_mtbf_s / 16384).goodput;
  EXPECT_GT(share, 0.9);
  EXPECT_LT(share, 0.97);
}

}  // namespace
}  // namespace braid
