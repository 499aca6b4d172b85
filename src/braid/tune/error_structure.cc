#include "braid/tune/error_structure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "braid/base/least_squares.h"

namespace braid {
namespace {

/// The runs of each job.
using Jobs =
    std::map<decltype(job_key(std::declval<const RunError&>())), std::vector<const RunError*>>;

/// Differences of errors at one distance.
struct Differences {
  double squares = 0;  ///< Sum of half squares.
  double pairs = 0;
};

/// By whole doublings.
std::map<int, Differences> variogram(const Jobs& jobs) {
  std::map<int, Differences> by_distance;
  for (const auto& [key, runs] : jobs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double difference = runs[i]->left_out - runs[j]->left_out;
        const double distance = plan_distance(runs[i]->traits, runs[j]->traits);
        Differences& at = by_distance[static_cast<int>(std::lround(distance))];
        at.squares += difference * difference / 2;
        at.pairs += 1;
      }
    }
  }
  return by_distance;
}

/// Mean square of the jobs' mean errors.
double common_variance(const Jobs& jobs) {
  double squares = 0;
  for (const auto& [key, runs] : jobs) {
    double sum = 0;
    for (const RunError* run : runs) sum += run->left_out;
    const double mean = sum / static_cast<double>(runs.size());
    squares += mean * mean;
  }
  return jobs.empty() ? 0 : squares / static_cast<double>(jobs.size());
}

/// Gives each number the variance of its interval: by an error that all share, in proportion to
/// what each lacks, or by shrinking what has too much.
void widen_to(std::span<const ErrorInterval> intervals, Belief& belief) {
  struct Change {
    double shrunk = 1, shared = 0;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < belief.size(); ++i) {
    const double deviation = std::log(intervals[i].high) / kIntervalDeviations;
    const double lacks = deviation * deviation - belief.variance(i);
    changes.push_back(lacks >= 0 ? Change{1, std::sqrt(lacks)}
                                 : Change{deviation / std::sqrt(belief.variance(i)), 0});
  }
  for (std::size_t i = 0; i < belief.size(); ++i) {
    for (std::size_t j = 0; j < belief.size(); ++j) {
      double& covariance = belief.covariance[i * belief.size() + j];
      covariance = covariance * changes[i].shrunk * changes[j].shrunk +
                   changes[i].shared * changes[j].shared;
    }
  }
}

}  // namespace

double plan_distance(const JobTraits& a, const JobTraits& b) {
  double doublings = 0;
  for (double JobTraits::*const each : kSplitTraits) {
    doublings += std::abs(std::log2(a.*each / b.*each));
  }
  return doublings;
}

ErrorStructure error_structure(const Evidence& runs) {
  Jobs jobs;
  for (const RunError& run : runs) jobs[job_key(run)].push_back(&run);
  const std::map<int, Differences> measured = variogram(jobs);
  // What lies farther apart than any two runs nobody has seen.
  const double farthest = measured.empty() ? 1 : std::max(1, measured.rbegin()->first);
  LeastSquares problem;
  problem.figures = {{1e-6, 1}, {1e-6, 1}, {0.1, farthest}};
  problem.loss = huber_loss(10);
  for (const auto& [distance, at] : measured) problem.weights.push_back(at.pairs);
  problem.residuals = [&](const std::vector<double>& figures) {
    std::vector<double> residuals;
    residuals.reserve(measured.size());
    for (const auto& [distance, at] : measured) {
      const double fitted = figures[0] + figures[1] * (1 - std::exp(-distance / figures[2]));
      residuals.push_back(std::log(fitted / std::max(1e-9, at.squares / at.pairs)));
    }
    return residuals;
  };
  ErrorStructure errors;
  errors.common = common_variance(jobs);
  if (measured.empty()) return errors;
  constexpr int steps = 100;
  const Descent fit = descend(problem, {1e-3, 1e-2, std::min(3.0, farthest)}, {steps, 1e-9, true});
  errors.own = fit.figures[0];
  errors.spread = fit.figures[1];
  errors.reach = fit.figures[2];
  return errors;
}

Belief belief_of(std::span<const JobTraits> plans, std::span<const double> predicted_s,
                 const ErrorStructure& errors, std::span<const ErrorInterval> intervals) {
  const double common = intervals.empty() ? errors.common : 0;
  Belief belief;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    belief.mean.push_back(std::log(predicted_s[i]));
    for (std::size_t j = 0; j < plans.size(); ++j) {
      belief.covariance.push_back(
          common + errors.spread * std::exp(-plan_distance(plans[i], plans[j]) / errors.reach) +
          (i == j ? errors.own : 0));
    }
  }
  if (!intervals.empty()) widen_to(intervals, belief);
  return belief;
}

}  // namespace braid
