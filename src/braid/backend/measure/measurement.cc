#include "braid/backend/measure/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <sched.h>

#include "braid/base/quantile.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& task, std::int64_t runs) {
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < runs; ++i) task();
  return std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(runs);
}

/// Keeps the calling thread on its core while it lives, where the system lets it.
class PinnedThread {
 public:
  PinnedThread() {
    const int core = ::sched_getcpu();
    if (core < 0 || ::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(core), &one);
    is_pinned_ = ::sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;
  ~PinnedThread() {
    if (is_pinned_) ::sched_setaffinity(0, sizeof(before_), &before_);
  }

 private:
  cpu_set_t before_{};
  bool is_pinned_ = false;
};

/// The least r, counted from 1, such that the r-th least and the r-th greatest of n samples enclose
/// the median with 95 %: P(Binomial(n, ½) < r) ≤ 2.5 %; 1 where n is too small for that.
std::size_t enclosing_rank(std::size_t n) {
  double probability = std::pow(0.5, static_cast<double>(n));
  double below = 0;
  std::size_t rank = 0;
  while (rank < n && below + probability <= 0.025) {
    below += probability;
    probability *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
    ++rank;
  }
  return std::max<std::size_t>(rank, 1);
}

}  // namespace

Measurement summary_of(std::vector<double> samples_s, std::int64_t runs_per_sample) {
  std::sort(samples_s.begin(), samples_s.end());
  const std::size_t count = samples_s.size();
  const std::size_t rank = enclosing_rank(count);
  const double lower = samples_s[count / 4];
  const double upper = samples_s[count - 1 - count / 4];
  const double limit = upper + 3 * (upper - lower);
  double sum = 0, squares = 0, kept = 0;
  for (const double each : samples_s) {
    if (each > limit) continue;
    sum += each;
    kept += 1;
  }
  const double mean = sum / kept;
  for (const double each : samples_s) {
    if (each <= limit) squares += (each - mean) * (each - mean);
  }
  return {.median_s = quantile(samples_s, 0.5),
          .low_s = samples_s[rank - 1],
          .high_s = samples_s[count - rank],
          .variance_s2 = kept > 1 ? squares / (kept - 1) : 0,
          .samples = static_cast<std::int64_t>(count),
          .outliers = static_cast<std::int64_t>(static_cast<double>(count) - kept),
          .runs_per_sample = runs_per_sample};
}

std::vector<Measurement> measure(std::span<const std::function<void()>> tasks,
                                 const MeasureOptions& options) {
  const PinnedThread pinned;
  std::vector<std::int64_t> runs, rounds;
  for (const auto& task : tasks) {
    double least_s = seconds_of(task, 1);
    for (std::int64_t i = 0; i < options.warm_up_runs; ++i) {
      least_s = std::min(least_s, seconds_of(task, 1));
    }
    constexpr double most_runs = 1e6;
    const double wanted = options.sample_s / std::max(least_s, 1e-9);
    runs.push_back(static_cast<std::int64_t>(std::clamp(wanted, 1.0, most_runs)));
    const double fitting =
        options.most_s / (std::max(least_s, 1e-9) * static_cast<double>(runs.back()));
    const std::int64_t least_rounds = std::min<std::int64_t>(3, options.samples);
    rounds.push_back(std::clamp(static_cast<std::int64_t>(std::min(fitting, 1e6)), least_rounds,
                                options.samples));
  }
  std::vector<std::vector<double>> samples_s(tasks.size());
  for (std::int64_t round = 0; round < options.samples; ++round) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (round >= rounds[i]) continue;
      if (options.runs_before_sample > 0) seconds_of(tasks[i], options.runs_before_sample);
      samples_s[i].push_back(seconds_of(tasks[i], runs[i]));
    }
  }
  std::vector<Measurement> results;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    results.push_back(summary_of(std::move(samples_s[i]), runs[i]));
  }
  return results;
}

}  // namespace braid
