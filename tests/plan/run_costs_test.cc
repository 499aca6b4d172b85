#include "braid/plan/run_costs.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/plan/direct_plan.h"

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

/// Llama-3-8B on 12 devices, one and a half nodes, at a time that is taken.
Candidate candidate_on(const std::string& cluster, double iteration_s) {
  const Graph graph = load_model("llama-3-8b", {.seq_len = 8192, .dims = {}});
  Parallelism form;
  form.tp = 4;
  form.dp = 3;
  form.num_micro_batches = 4;
  Candidate candidate;
  candidate.plan = direct_plan(graph, {form, Precision{}, Trainer{}, 12}, load_system(cluster), {});
  candidate.metrics.iteration_time_s = iteration_s;
  return candidate;
}

RunQuestion question_of(double tokens) {
  RunQuestion question;
  question.tokens = tokens;
  return question;
}

TEST(RunCosts, AreTheSumOfTheirParts) {
  const Candidate candidate = candidate_on("p5.48xlarge:12", 2);
  RunQuestion question;
  question.tokens = 1e9;
  question.failures.device_mtbf_s = 1e30;  // Nothing fails,
  question.failures.save_s = 1e-3;         // and nothing is lost.
  question.failures.load_s = 0;
  const RunCosts costs = run_costs(candidate, question);
  EXPECT_EQ(costs.iterations, std::ceil(1e9 / (12 * 8192)));
  EXPECT_NEAR(costs.wall_s, 2 * costs.iterations, 1e-6 * costs.wall_s);
  EXPECT_NEAR(costs.device_hours, 12 * costs.wall_s / 3600, 1e-9 * costs.device_hours);
  // Two nodes are paid for whole; twelve GPUs draw 700 W each.
  ASSERT_TRUE(costs.usd && costs.kwh);
  EXPECT_NEAR(*costs.usd, 2 * 39.33 * costs.wall_s / 3600, 1e-9 * *costs.usd);
  EXPECT_NEAR(*costs.kwh, 12 * 0.7 * costs.wall_s / 3600, 1e-9 * *costs.kwh);
  question.pue = 1.5;
  EXPECT_NEAR(*run_costs(candidate, question).kwh, 1.5 * *costs.kwh, 1e-9 * *costs.kwh);
}

TEST(RunCosts, SayWhatTheyRestOn) {
  const RunCosts costs = run_costs(candidate_on("p5.48xlarge:12", 2), question_of(1e9));
  std::string all;
  for (const std::string& line : costs.assumptions) all += line + "\n";
  for (const char* part : {"--mtbf", "--save-time", "--restart-time", "2 nodes of 8 x h100-sxm",
                           "Capacity Blocks", "12 x 700 W", "hosts, network", "Daly"}) {
    EXPECT_THAT(all, ::testing::HasSubstr(part));
  }
  // 8.03 billion parameters of 2 bytes, and 12 of Adam's state.
  EXPECT_NEAR(costs.checkpoint_bytes, 8.03e9 * 14, 0.01 * costs.checkpoint_bytes);
  EXPECT_LT(costs.goodput, 1);
  EXPECT_GT(costs.goodput, 0.95);
}

TEST(RunCosts, InventNoPriceAndNoPower) {
  const RunCosts dgx = run_costs(candidate_on("dgx-h100:12", 2), question_of(1e9));
  EXPECT_FALSE(dgx.usd);
  EXPECT_TRUE(dgx.kwh);
  EXPECT_THAT(dgx.assumptions,
              ::testing::Contains(::testing::HasSubstr("price_per_hour in the cluster's file, or "
                                                       "--price-per-hour")));
  const RunCosts tpu = run_costs(candidate_on("tpu-v5p-pod:12", 2), question_of(1e9));
  EXPECT_FALSE(tpu.kwh);
  EXPECT_THAT(tpu.assumptions, ::testing::Contains(::testing::HasSubstr("no power of tpu-v5p")));
}

TEST(RunCosts, MoreFailuresNeverCostLess) {
  const Candidate candidate = candidate_on("dgx-h100:12", 2);
  double before_s = 0;
  for (double mtbf_s = 1e9; mtbf_s > 1e5; mtbf_s /= 3) {
    RunQuestion question;
    question.tokens = 1e9;
    question.failures.device_mtbf_s = mtbf_s;
    const RunCosts costs = run_costs(candidate, question);
    EXPECT_GE(costs.wall_s, before_s);
    EXPECT_GE(costs.wall_s, costs.compute_s);
    before_s = costs.wall_s;
  }
}

}  // namespace
}  // namespace braid
