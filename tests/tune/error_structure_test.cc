#include "braid/tune/error_structure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

JobTraits plan_of(double tp, double pp, double dp, double micro_batch) {
  JobTraits traits;
  traits.tp = tp;
  traits.pp = pp;
  traits.dp = dp;
  traits.micro_batch_tokens = 1024 * micro_batch;
  return traits;
}

std::vector<JobTraits> some_plans() {
  std::vector<JobTraits> plans;
  for (const double tp : {1, 2, 4}) {
    for (const double pp : {1, 2, 4}) {
      for (const double micro_batch : {1, 2}) {
        plans.push_back(plan_of(tp, pp, 16 / tp / pp, micro_batch));
      }
    }
  }
  return plans;
}

/// A draw from a belief, by Cholesky's factor.
std::vector<double> drawn_from(const Belief& belief, std::mt19937& random) {
  const std::size_t n = belief.size();
  std::vector<double> factor(n * n, 0), drawn = belief.mean;
  std::normal_distribution<double> normal;
  for (std::size_t j = 0; j < n; ++j) {
    const double z = normal(random);
    for (std::size_t i = j; i < n; ++i) {
      double left = belief.covariance[i * n + j];
      for (std::size_t k = 0; k < j; ++k) left -= factor[i * n + k] * factor[j * n + k];
      factor[i * n + j] = i == j ? std::sqrt(left) : left / factor[j * n + j];
      drawn[i] += factor[i * n + j] * z;
    }
  }
  return drawn;
}

TEST(PlanDistance, CountsDoublings) {
  EXPECT_EQ(plan_distance(plan_of(1, 4, 2, 1), plan_of(1, 4, 2, 1)), 0);
  EXPECT_EQ(plan_distance(plan_of(1, 4, 2, 1), plan_of(2, 1, 4, 1)), 1 + 2 + 1);
  EXPECT_EQ(plan_distance(plan_of(1, 1, 1, 8), plan_of(1, 1, 1, 1)), 3);
}

/// Errors that are drawn from a structure have it.
TEST(ErrorStructure, IsFoundInWhatWasDrawnFromIt) {
  const ErrorStructure truth{0.02, 0.012, 3, 0.002};
  const std::vector<JobTraits> plans = some_plans();
  const Belief belief = belief_of(plans, std::vector<double>(plans.size(), 1), truth);
  std::mt19937 random(11);
  Evidence runs;
  for (int job = 0; job < 400; ++job) {
    const std::vector<double> errors = drawn_from(belief, random);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      RunError run;
      run.source = std::to_string(job);
      run.traits = plans[i];
      run.left_out = errors[i];
      runs.push_back(run);
    }
  }
  const ErrorStructure found = error_structure(runs);
  EXPECT_NEAR(found.own, truth.own, 0.001);
  EXPECT_NEAR(found.spread, truth.spread, 0.003);
  EXPECT_NEAR(found.reach, truth.reach, 0.6);
  EXPECT_NEAR(found.common, truth.common + truth.spread / 3, 0.006);
}

/// Four fifths of each number lie within its interval, and where intervals are alike and wide,
/// plans differ from each other by as much as without.
TEST(ErrorStructure, BeliefsKeepToIntervals) {
  const ErrorStructure errors{0.02, 0.012, 3, 0.002};
  const std::vector<JobTraits> plans = some_plans();
  const std::vector<double> predicted_s(plans.size(), 1);
  const Belief without = belief_of(plans, predicted_s, errors);
  const std::vector<ErrorInterval> wide(plans.size(), {1 / 1.5, 1.5});
  const Belief within_wide = belief_of(plans, predicted_s, errors, wide);
  std::vector<ErrorInterval> mixed = wide;
  mixed[0] = {1 / 1.01, 1.01};
  mixed[1] = {1, 1};
  const Belief within_mixed = belief_of(plans, predicted_s, errors, mixed);
  const auto variance_between = [](const Belief& belief, std::size_t i, std::size_t j) {
    return belief.variance(i) + belief.variance(j) - 2 * belief.covariance[i * belief.size() + j];
  };
  const auto half_width = [](const Belief& belief, std::size_t i) {
    return kIntervalDeviations * std::sqrt(belief.variance(i));
  };
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_NEAR(half_width(within_wide, i), std::log(1.5), 1e-12);
    EXPECT_NEAR(half_width(within_mixed, i), std::log(mixed[i].high), 1e-12);
    EXPECT_NEAR(variance_between(within_wide, 0, i), variance_between(without, 0, i), 1e-12);
    for (std::size_t j = 0; j < plans.size(); ++j) {
      EXPECT_GE(variance_between(within_mixed, i, j), -1e-12);
    }
  }
}

TEST(ErrorStructure, OfTheEvidenceThatComesWithTheProgram) {
  const ErrorStructure errors = error_structure(evidence());
  EXPECT_GT(errors.own, 1e-4);
  EXPECT_GT(errors.spread, errors.own);
  EXPECT_GT(errors.reach, 0.5);
  EXPECT_LT(errors.common, 0.1);
  RecordProperty("own", std::to_string(errors.own));
  RecordProperty("spread", std::to_string(errors.spread));
  RecordProperty("reach", std::to_string(errors.reach));
  RecordProperty("common", std::to_string(errors.common));
}

/// How much longer than the fastest the plan takes that is predicted to be the fastest, over jobs
/// that were measured in four and more ways: what the belief expects, and what was measured.
TEST(ErrorStructure, ExpectsToLoseWhatMeasuredJobsLost) {
  std::map<decltype(job_key(std::declval<const RunError&>())), std::vector<const RunError*>> jobs;
  for (const RunError& run : evidence()) jobs[job_key(run)].push_back(&run);
  const ErrorStructure errors = error_structure(evidence());
  double expected = 0, lost = 0, counted = 0;
  for (const auto& [key, runs] : jobs) {
    if (runs.size() < 4) continue;
    std::vector<JobTraits> plans;
    std::vector<double> predicted_s, measured;
    for (const RunError* run : runs) {
      plans.push_back(run->traits);
      predicted_s.push_back(1 / run->traits.mfu);
      measured.push_back(std::log(predicted_s.back()) + run->error);
    }
    const Belief belief = belief_of(plans, predicted_s, errors);
    const std::size_t chosen = least_expected(belief);
    expected += expected_loss(belief, chosen);
    lost += measured[chosen] - *std::min_element(measured.begin(), measured.end());
    counted += 1;
  }
  EXPECT_GT(counted, 90);
  EXPECT_GT(expected, 0.8 * lost) << expected / counted;
  EXPECT_LT(expected, 1.25 * lost) << lost / counted;
  RecordProperty("expected", std::to_string(expected / counted));
  RecordProperty("lost", std::to_string(lost / counted));
}

/// What follows is how well choosing by knowledge gradients does, where the truth is drawn from the
/// structure of the evidence: less is lost than by measuring the plans that are predicted to be the
/// fastest, or any.
struct Trial {
  std::size_t chosen = 0;
  double lost = 0;
};

enum class Choice { gradients, fastest, random };

Trial run_trial(const Belief& prior, const std::vector<double>& truth, Choice choice,
                std::mt19937& random) {
  constexpr double noise = 1e-4;
  std::normal_distribution<double> normal(0, std::sqrt(noise));
  Belief belief = prior;
  for (std::size_t round = 0; round < 5; ++round) {
    std::size_t next = round;  // Predicted times ascend.
    if (choice == Choice::random) next = random() % prior.size();
    if (choice == Choice::gradients) {
      const std::vector<std::size_t> worth = worth_measuring(belief, noise, 1e-4, 1);
      if (worth.empty()) break;
      next = worth.front();
    }
    observe(belief, next, truth[next] + normal(random), noise);
  }
  Trial trial{least_expected(belief), 0};
  trial.lost = truth[trial.chosen] - *std::min_element(truth.begin(), truth.end());
  return trial;
}

TEST(ErrorStructure, MeasuringByGradientsLosesLeast) {
  const std::vector<JobTraits> plans = some_plans();
  std::vector<double> predicted_s;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    predicted_s.push_back(std::exp(0.01 * static_cast<double>(i)));
  }
  const Belief belief = belief_of(plans, predicted_s, error_structure(evidence()));
  std::mt19937 random(12);
  double by_gradients = 0, by_prediction = 0, by_chance = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const std::vector<double> truth = drawn_from(belief, random);
    by_gradients += run_trial(belief, truth, Choice::gradients, random).lost;
    by_prediction += run_trial(belief, truth, Choice::fastest, random).lost;
    by_chance += run_trial(belief, truth, Choice::random, random).lost;
  }
  EXPECT_LT(by_gradients, 0.95 * by_prediction);
  EXPECT_LT(by_gradients, 0.5 * by_chance);
}

}  // namespace
}  // namespace braid
