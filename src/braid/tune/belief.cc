#include "braid/tune/belief.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "braid/base/infinity.h"

namespace braid {
namespace {

double normal_density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double normal_share_below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

/// What is expected of the positive part of a normal number with this mean and deviation.
double expected_positive(double mean, double deviation) {
  if (deviation <= 0) return std::max(mean, 0.0);
  const double z = mean / deviation;
  return mean * normal_share_below(z) + deviation * normal_density(z);
}

/// A line a + b·z, z a standard normal number.
struct Line {
  double at_zero = 0, slope = 0;
};

/// What is expected of the greatest of lines, less the greatest at zero: the sum over the corners
/// of their upper envelope of the change of slope there times what is expected beyond.
double expected_gain(std::vector<Line> lines) {
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.slope != b.slope ? a.slope < b.slope : a.at_zero > b.at_zero;
  });
  std::vector<Line> envelope;
  std::vector<double> corners;  // Where a line of the envelope begins; of the first, nowhere.
  for (const Line& line : lines) {
    if (!envelope.empty() && envelope.back().slope == line.slope) continue;
    double corner = -kInfinity;
    while (!envelope.empty()) {
      const Line& last = envelope.back();
      corner = (last.at_zero - line.at_zero) / (line.slope - last.slope);
      if (corner > corners.back()) break;
      envelope.pop_back();
      corners.pop_back();
      corner = -kInfinity;
    }
    envelope.push_back(line);
    corners.push_back(corner);
  }
  double gain = 0;
  for (std::size_t i = 1; i < envelope.size(); ++i) {
    const double change = envelope[i].slope - envelope[i - 1].slope;
    gain += change * expected_positive(-std::abs(corners[i]), 1);
  }
  return gain;
}

}  // namespace

void observe(Belief& belief, std::size_t i, double value, double noise_variance) {
  const std::size_t n = belief.size();
  const double variance = belief.variance(i) + noise_variance;
  if (variance <= 0) return;
  const std::vector<double> row(belief.covariance.begin() + static_cast<std::ptrdiff_t>(i * n),
                                belief.covariance.begin() + static_cast<std::ptrdiff_t>(i * n + n));
  const double surprise = (value - belief.mean[i]) / variance;
  for (std::size_t a = 0; a < n; ++a) {
    belief.mean[a] += row[a] * surprise;
    for (std::size_t b = 0; b < n; ++b) belief.covariance[a * n + b] -= row[a] * row[b] / variance;
  }
}

std::size_t least_expected(const Belief& belief) {
  return static_cast<std::size_t>(std::min_element(belief.mean.begin(), belief.mean.end()) -
                                  belief.mean.begin());
}

std::vector<double> knowledge_gradients(const Belief& belief, double noise_variance) {
  const std::size_t n = belief.size();
  std::vector<double> gains(n, 0);
  std::vector<Line> lines(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double deviation = std::sqrt(std::max(0.0, belief.variance(i) + noise_variance));
    if (deviation <= 0) continue;
    for (std::size_t j = 0; j < n; ++j) {
      lines[j] = {-belief.mean[j], -belief.covariance[i * n + j] / deviation};
    }
    gains[i] = expected_gain(lines);
  }
  return gains;
}

std::vector<double> draws_from(const Belief& belief, std::size_t draws) {
  const std::size_t n = belief.size();
  constexpr double least_variance = 1e-12;
  std::vector<double> factor(n * n, 0);  // Cholesky's, lower triangle.
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      double left = belief.covariance[i * n + j] + (i == j ? least_variance : 0);
      for (std::size_t k = 0; k < j; ++k) left -= factor[i * n + k] * factor[j * n + k];
      factor[i * n + j] =
          i == j ? std::sqrt(std::max(left, least_variance)) : left / factor[j * n + j];
    }
  }
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> drawn;
  drawn.reserve(draws * n);
  std::vector<double> independent(n);
  for (std::size_t d = 0; d < draws; ++d) {
    for (double& each : independent) each = normal(random);
    for (std::size_t i = 0; i < n; ++i) {
      double sum = belief.mean[i];
      for (std::size_t k = 0; k <= i; ++k) sum += factor[i * n + k] * independent[k];
      drawn.push_back(sum);
    }
  }
  return drawn;
}

double expected_loss(const Belief& belief, std::size_t i) {
  constexpr std::size_t draws = 4096;
  const std::vector<double> drawn = draws_from(belief, draws);
  double sum = 0;
  for (auto each = drawn.begin(); each != drawn.end();
       each += static_cast<std::ptrdiff_t>(belief.size())) {
    const auto end = each + static_cast<std::ptrdiff_t>(belief.size());
    sum += each[static_cast<std::ptrdiff_t>(i)] - *std::min_element(each, end);
  }
  return sum / static_cast<double>(draws);
}

std::vector<std::size_t> worth_measuring(Belief belief, double noise_variance, double least_gain,
                                         std::size_t count) {
  std::vector<std::size_t> chosen;
  while (chosen.size() < count) {
    const std::vector<double> gains = knowledge_gradients(belief, noise_variance);
    const auto best = std::max_element(gains.begin(), gains.end());
    if (best == gains.end() || *best <= least_gain) break;
    const auto i = static_cast<std::size_t>(best - gains.begin());
    chosen.push_back(i);
    observe(belief, i, belief.mean[i], noise_variance);
  }
  return chosen;
}

}  // namespace braid
