#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace braid {

struct MeasureOptions {
  std::int64_t warm_up_runs = 3;
  std::int64_t samples = 21;
  /// A sample is as many runs as take about this long together, so that the clock's grain and its
  /// call do not count.
  double sample_s = 1e-3;
  /// Runs before each sample that do not count: a task finds the caches as it has left them itself,
  /// not as its rivals have.
  std::int64_t runs_before_sample = 0;
  /// What a task may take in all: slow ones get fewer samples, but three.
  double most_s = 10;
};

/// How long one run takes.
struct Measurement {
  double median_s = 0;
  /// Bounds between which the true median lies with a probability of at least 95 %, by order
  /// statistics: no distribution is assumed (Le Boudec 2010, section 2.2).
  double low_s = 0, high_s = 0;
  double variance_s2 = 0;  ///< Of the samples that are no outliers.
  std::int64_t samples = 0;
  /// Samples further than three interquartile ranges above the upper quartile (Tukey 1977):
  /// something else ran meanwhile. The median is over all samples.
  std::int64_t outliers = 0;
  std::int64_t runs_per_sample = 0;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

/// The summary of samples, in seconds for each run; at least one.
Measurement summary_of(std::vector<double> samples_s, std::int64_t runs_per_sample);

/// Measures each task by the wall clock, one sample of each after the other, round by round, so
/// that what changes on the machine meanwhile meets all of them. Tasks run on the calling thread,
/// which is kept on the core that it is on until the end.
std::vector<Measurement> measure(std::span<const std::function<void()>> tasks,
                                 const MeasureOptions& options = {});

}  // namespace braid
