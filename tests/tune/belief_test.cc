#include "braid/tune/belief.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using testing::ElementsAre;

/// A belief of `n` numbers: products of a random matrix with itself.
Belief random_belief(std::size_t n, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Belief belief;
  std::vector<double> root(n * n);
  for (double& each : root) each = 0.1 * normal(random);
  for (std::size_t i = 0; i < n; ++i) belief.mean.push_back(0.1 * normal(random));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += root[i * n + k] * root[j * n + k];
      belief.covariance.push_back(sum);
    }
  }
  return belief;
}

/// By a sum over many values of what is measured.
double gain_by_quadrature(const Belief& belief, std::size_t i, double noise_variance) {
  const std::size_t n = belief.size();
  const double deviation = std::sqrt(belief.variance(i) + noise_variance);
  const double before = *std::min_element(belief.mean.begin(), belief.mean.end());
  double gain = 0;
  constexpr int steps = 20000;
  constexpr double reach = 9;
  for (int s = 0; s < steps; ++s) {
    const double z = -reach + 2 * reach * (s + 0.5) / steps;
    double least = 1e9;
    for (std::size_t j = 0; j < n; ++j) {
      least = std::min(least, belief.mean[j] + belief.covariance[i * n + j] / deviation * z);
    }
    gain += (before - least) * std::exp(-z * z / 2) / std::sqrt(2 * M_PI) * 2 * reach / steps;
  }
  return gain;
}

TEST(Belief, KnowledgeGradientsAreWhatMeasuringGains) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t n = 1 + static_cast<std::size_t>(trial) % 7;
    const Belief belief = random_belief(n, random);
    const double noise = trial % 3 == 0 ? 0 : 1e-3;
    const std::vector<double> gains = knowledge_gradients(belief, noise);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(gains[i], gain_by_quadrature(belief, i, noise), 1e-6) << trial << " " << i;
    }
  }
}

/// One measurement after the other is what both together tell, in either order.
TEST(Belief, DoesNotDependOnTheOrderOfMeasurements) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 20; ++trial) {
    const Belief prior = random_belief(5, random);
    Belief a = prior, b = prior;
    observe(a, 1, 0.3, 1e-3);
    observe(a, 4, -0.2, 1e-3);
    observe(b, 4, -0.2, 1e-3);
    observe(b, 1, 0.3, 1e-3);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(a.mean[i], b.mean[i], 1e-12);
    for (std::size_t i = 0; i < 25; ++i) EXPECT_NEAR(a.covariance[i], b.covariance[i], 1e-12);
  }
}

TEST(Belief, WhatIsMeasuredWithoutNoiseIsKnown) {
  std::mt19937 random(9);
  Belief belief = random_belief(4, random);
  observe(belief, 2, 0.125, 0);
  EXPECT_NEAR(belief.mean[2], 0.125, 1e-12);
  EXPECT_NEAR(belief.variance(2), 0, 1e-15);
  EXPECT_NEAR(knowledge_gradients(belief, 0)[2], 0, 1e-9);
}

TEST(Belief, ExpectedRegretLiesBetweenItsBounds) {
  std::mt19937 random(10);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 10; ++trial) {
    // Independent numbers can be drawn one by one.
    Belief belief = random_belief(4, random);
    for (std::size_t i = 0; i < 16; ++i) belief.covariance[i] = i % 5 == 0 ? 0.01 : 0;
    const std::size_t chosen = least_expected(belief);
    double sum = 0;
    constexpr int draws = 20000;
    for (int d = 0; d < draws; ++d) {
      std::vector<double> drawn;
      for (const double mean : belief.mean) drawn.push_back(mean + 0.1 * normal(random));
      sum += drawn[chosen] - *std::min_element(drawn.begin(), drawn.end());
    }
    const ExpectedRegret regret = expected_regret(belief, chosen);
    EXPECT_GE(sum / draws, regret.at_least - 2e-3);
    EXPECT_LE(sum / draws, regret.at_most + 2e-3);
  }
}

TEST(Belief, MeasuresWhatMayChangeTheChoice) {
  // The first two are close, and only the second is not known; the third is far behind.
  const Belief belief{{1.0, 1.01, 2.0}, {0, 0, 0, 0, 1e-3, 0, 0, 0, 1e-3}};
  EXPECT_THAT(worth_measuring(belief, 0, 1e-4, 3), ElementsAre(1));
  EXPECT_THAT(worth_measuring(belief, 0, 1, 3), ElementsAre());
}

}  // namespace
}  // namespace braid
