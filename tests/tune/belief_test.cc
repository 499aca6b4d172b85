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

TEST(Belief, DrawsHaveItsMeansAndCovariances) {
  std::mt19937 random(10);
  Belief belief = random_belief(3, random);
  observe(belief, 1, 0.1, 0);
  constexpr std::size_t count = 20000;
  const std::vector<double> drawn = draws_from(belief, count);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0, product = 0;
      for (std::size_t d = 0; d < count; ++d) {
        sum += drawn[3 * d + i] - belief.mean[i];
        product += (drawn[3 * d + i] - belief.mean[i]) * (drawn[3 * d + j] - belief.mean[j]);
      }
      EXPECT_NEAR(sum / count, 0, 5e-3);
      EXPECT_NEAR(product / count, belief.covariance[3 * i + j], 2e-3);
    }
  }
}

/// Of two numbers it is known in closed form.
TEST(Belief, ExpectedLossAgainstOneOther) {
  const Belief belief{{0.0, 0.05}, {0.01, 0.002, 0.002, 0.02}};
  const double deviation = std::sqrt(0.01 + 0.02 - 2 * 0.002);
  const double z = -0.05 / deviation;
  const double expected = -0.05 * std::erfc(-z / std::sqrt(2)) / 2 +
                          deviation * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  EXPECT_NEAR(expected_loss(belief, 0), expected, 3e-3);
  EXPECT_NEAR(expected_loss(belief, 1) - expected_loss(belief, 0), 0.05, 6e-3);
}

TEST(Belief, MeasuresWhatMayChangeTheChoice) {
  // The first two are close, and only the second is not known; the third is far behind.
  const Belief belief{{1.0, 1.01, 2.0}, {0, 0, 0, 0, 1e-3, 0, 0, 0, 1e-3}};
  EXPECT_THAT(worth_measuring(belief, 0, 1e-4, 3), ElementsAre(1));
  EXPECT_THAT(worth_measuring(belief, 0, 1, 3), ElementsAre());
}

}  // namespace
}  // namespace braid
