#pragma once

#include <cstddef>
#include <vector>

namespace braid {

/// What is believed of numbers that are not known: a normal distribution of all together. Those of
/// tune are logarithms of plans' times, so that a difference of 0.01 is a hundredth of the time.
///
///     Belief belief{{0.0, 0.02}, {1e-3, 8e-4, 8e-4, 1e-3}};
///     observe(belief, 0, 0.05, 1e-5);  // the second is now expected higher, too
struct Belief {
  std::vector<double> mean;
  std::vector<double> covariance;  ///< Row-major, symmetric, no negative eigenvalue.

  std::size_t size() const { return mean.size(); }
  double variance(std::size_t i) const { return covariance[i * size() + i]; }
};

/// Takes in that `value` was measured of number `i`, with a noise of that variance: the posterior
/// of a normal prior. A number that is known, of a measurement without noise, stays. Quadratic in
/// the numbers.
void observe(Belief& belief, std::size_t i, double value, double noise_variance);

/// The place of the least mean; the first of equal ones. At least one number.
std::size_t least_expected(const Belief& belief);

/// Knowledge gradients (Frazier, Powell and Dayanik 2009, algorithm 1, for least numbers): by how
/// much the least mean is expected to fall when each number is measured next. None is negative.
/// Exact. Cost: n² log n.
std::vector<double> knowledge_gradients(const Belief& belief, double noise_variance);

/// So many draws from the belief, one after the other, [draw · size() + i]. Deterministic. A belief
/// that measurements have made singular is drawn from as if its variances were 1e-12 greater.
std::vector<double> draws_from(const Belief& belief, std::size_t draws);

/// By how much the number `i` is expected to lie above the least of all: the mean over a few
/// thousand draws.
double expected_loss(const Belief& belief, std::size_t i);

/// What to measure next, one after the other, at most `count`: each has the greatest knowledge
/// gradient when those before it are measured and come out as they are expected; ends where that is
/// at most `least_gain`.
std::vector<std::size_t> worth_measuring(Belief belief, double noise_variance, double least_gain,
                                         std::size_t count);

}  // namespace braid
