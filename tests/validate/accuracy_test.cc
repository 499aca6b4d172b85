#include "braid/validate/accuracy.h"

#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

struct Cases {
  std::vector<MeasuredRun> runs;
  std::vector<Prediction> predictions;

  void add(const std::string& dataset, double predicted_s, double measured_s, double bound_s) {
    MeasuredRun run;
    run.dataset = dataset;
    runs.push_back(run);
    Prediction prediction;
    prediction.measured_s = measured_s;
    prediction.bound_s = bound_s;
    prediction.metrics.iteration_time_s = predicted_s;
    predictions.push_back(prediction);
  }
};

TEST(Accuracy, SummarisesErrors) {
  Cases cases;
  cases.add("a", 1.1, 1, 0.5);
  cases.add("a", 0.8, 1, 0.5);
  cases.add("a", 2.6, 2, 1);
  cases.add("a", 4, 4, 2);
  cases.predictions.back().measured_memory_bytes = 100;
  cases.predictions.back().metrics.peak_memory_bytes = 90;
  cases.add("a", 0, 0, 0);
  cases.predictions.back().reason = "why not";
  const auto groups = accuracy_by(cases.runs, cases.predictions, {"dataset"});
  ASSERT_EQ(groups.size(), 1U);
  const Accuracy& a = groups[0].accuracy;
  EXPECT_EQ(a.runs, 5U);
  EXPECT_EQ(a.predicted, 4U);
  EXPECT_NEAR(a.mape, 0.15, 1e-12);
  EXPECT_NEAR(a.median_ape, 0.15, 1e-12);
  EXPECT_NEAR(a.bias, 0.05, 1e-12);
  EXPECT_NEAR(a.p90_ape, 0.27, 1e-12);
  EXPECT_NEAR(a.worst, 0.3, 1e-12);
  EXPECT_EQ(a.worst_run, 2U);
  EXPECT_NEAR(a.constant_efficiency, 0.5, 1e-12);
  EXPECT_NEAR(a.constant_efficiency_mape, 0, 1e-12);
  EXPECT_EQ(a.memory_runs, 1U);
  EXPECT_NEAR(a.memory_mape, 0.1, 1e-12);
  // Ranks 2, 1, 3, 4 against 1.5, 1.5, 3, 4.
  EXPECT_NEAR(a.spearman, std::sqrt(0.9), 1e-12);
  EXPECT_EQ(a.ranked, 4U);
  EXPECT_EQ(a.regret, 0);  // The two that were measured alike are the first choices.
}

TEST(Accuracy, RegretIsOfTheFirstChoiceOfEachFamily) {
  Cases cases;
  // First choices took 1.5 times as long as the best, and as long.
  for (const auto& [predicted, measured] :
       {std::pair(1.0, 3.0), {2.0, 2.0}, {3.0, 4.0}, {4., 5.}}) {
    cases.add("a", predicted, measured, 0.1);
  }
  for (const double time_s : {1.0, 2.0, 3.0, 4.0}) cases.add("b", time_s, time_s, 0.1);
  const auto groups = accuracy_by(cases.runs, cases.predictions, {"dataset"});
  EXPECT_NEAR(groups[0].accuracy.regret, 0.5, 1e-12);
  EXPECT_EQ(groups[1].accuracy.regret, 0);
  std::vector<std::size_t> every(cases.runs.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  EXPECT_NEAR(accuracy_of(cases.runs, cases.predictions, every).regret, 0.25, 1e-12);
}

TEST(Accuracy, CountsWhatBeatsTheBound) {
  Cases cases;
  cases.add("a", 1, 1, 1);
  cases.add("b", 0.9, 1.1, 1);
  cases.add("b", 1.1, 0.9, 1);
  const auto groups = accuracy_by(cases.runs, cases.predictions, {"dataset"});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].accuracy.predicted_below_bound, 0U);
  EXPECT_TRUE(groups[0].accuracy.measured_below_bound.empty());
  EXPECT_EQ(groups[1].accuracy.predicted_below_bound, 1U);
  EXPECT_EQ(groups[1].accuracy.measured_below_bound, std::vector<std::size_t>{2});
}

TEST(Accuracy, BestConstantIsNotBeatenByAnyOther) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> share(0.05, 0.95);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> bounds(1 + random() % 12);
    std::vector<double> measured(bounds.size());
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      measured[i] = 1 + share(random);
      bounds[i] = measured[i] * share(random);
    }
    const auto [best, error] = best_constant_efficiency(bounds, measured);
    for (int i = 1; i <= 200; ++i) {
      const double other = 0.005 * i;
      double sum = 0;
      for (std::size_t k = 0; k < bounds.size(); ++k) {
        sum += std::abs(bounds[k] / other / measured[k] - 1);
      }
      EXPECT_LE(error, sum / static_cast<double>(bounds.size()) + 1e-12) << best << " " << other;
    }
  }
}

}  // namespace
}  // namespace braid
