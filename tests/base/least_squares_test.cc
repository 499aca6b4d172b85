#include "braid/base/least_squares.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

/// `a x^b` at some x, the logarithm of which is linear in those of a and e^b.
struct PowerLaw {
  std::vector<double> x, y;
};

PowerLaw law_of(double a, double b) {
  PowerLaw law;
  for (int i = 1; i <= 20; ++i) {
    law.x.push_back(i);
    law.y.push_back(a * std::pow(i, b));
  }
  return law;
}

LeastSquares problem_of(const PowerLaw& law) {
  LeastSquares problem;
  problem.figures = {{1e-3, 1e3, 0, 1}, {0.1, 3, 0, 1}};
  problem.weights.assign(law.x.size(), 1);
  problem.loss = smooth_loss(0.05);
  problem.residuals = [law](const std::vector<double>& f) {
    std::vector<double> residuals;
    for (std::size_t i = 0; i < law.x.size(); ++i) {
      residuals.push_back(std::log(f[0] * std::pow(law.x[i], f[1]) / law.y[i]));
    }
    return residuals;
  };
  return problem;
}

TEST(LeastSquares, FindsFiguresThatFitAll) {
  const Descent fit = descend(problem_of(law_of(3, 0.7)), {1, 1}, {100, 1e-9, true});
  EXPECT_NEAR(fit.figures[0], 3, 1e-3);
  EXPECT_NEAR(fit.figures[1], 0.7, 1e-3);
}

TEST(LeastSquares, OutliersHardlyMatter) {
  PowerLaw law = law_of(3, 0.7);
  law.y[5] *= 10;
  law.y[12] /= 4;
  const Descent fit = descend(problem_of(law), {1, 1}, {100, 1e-9, true});
  EXPECT_NEAR(fit.figures[0], 3, 0.06);
  EXPECT_NEAR(fit.figures[1], 0.7, 0.02);
}

TEST(LeastSquares, OtherFiguresAreBestForOneAtItsBound) {
  LeastSquares problem = problem_of(law_of(3, 0.7));
  problem.figures[1].most = 0.5;
  problem.loss = huber_loss(10);
  const Descent fit = descend(problem, {1, 0.4}, {100, 1e-9, true});
  EXPECT_EQ(fit.figures[1], 0.5);
  // What is left is log 3 + 0.2 log x, whose least squares are at the mean.
  double mean = 0;
  for (int i = 1; i <= 20; ++i) mean += std::log(3 * std::pow(i, 0.2)) / 20;
  EXPECT_NEAR(std::log(fit.figures[0]), mean, 1e-3);
}

TEST(LeastSquares, WhatDataSayNothingOfStaysAtItsPrior) {
  LeastSquares problem = problem_of(law_of(3, 0.7));
  problem.figures.push_back({0.1, 10, 2, 1});
  problem.prior_weight = 1e-4;
  const Descent fit = descend(problem, {1, 1, 5}, {100, 1e-12, true});
  EXPECT_NEAR(fit.figures[2], 2, 0.01);
}

TEST(LeastSquares, GivenSlopesAndZerosAreAsGoodAsDifferences) {
  const PowerLaw law = law_of(3, 0.7);
  LeastSquares problem = problem_of(law);
  problem.figures.push_back({0.1, 10, 0, 1});
  problem.slopes = [law](const std::vector<double>& f, const std::vector<double>&) {
    std::vector<SlopeColumn> slopes(3);
    for (const double x : law.x) {
      slopes[0].values.push_back(1);
      slopes[1].values.push_back(f[1] * std::log(x));
    }
    return slopes;
  };
  problem.prior_weight = 1e-9;
  const Descent fit = descend(problem, {1, 1, 0}, {100, 1e-9, true});
  EXPECT_NEAR(fit.figures[0], 3, 1e-3);
  EXPECT_NEAR(fit.figures[1], 0.7, 1e-3);
  EXPECT_EQ(fit.figures[2], 0);
}

}  // namespace
}  // namespace braid
