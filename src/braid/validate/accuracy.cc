#include "braid/validate/accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantile.h"
#include "braid/base/rank_statistics.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Runs of one family do the same work on the same machine.
std::string family_key(const MeasuredRun& run) {
  std::string key;
  for (const char* column : {"dataset", "framework", "hardware", "model", "precision"}) {
    key += group_value(run, column) + '\n';
  }
  for (const char* column : {"n_accel", "layers", "hidden", "seq_len", "gbs_seqs"}) {
    key += group_value(run, column) + '\n';
  }
  return key;
}

void rank_families(const std::vector<MeasuredRun>& runs, const std::vector<Prediction>& predictions,
                   const std::vector<std::size_t>& predicted, Accuracy& accuracy) {
  constexpr std::size_t kLeastRuns = 4;
  std::map<std::string, std::vector<std::size_t>> families;
  for (const std::size_t i : predicted) families[family_key(runs[i])].push_back(i);
  double sum = 0;
  double regret = 0;
  for (const auto& [key, members] : families) {
    if (members.size() < kLeastRuns) continue;
    std::vector<double> predicted_s;
    std::vector<double> measured_s;
    for (const std::size_t i : members) {
      predicted_s.push_back(predictions[i].metrics.iteration_time_s);
      measured_s.push_back(predictions[i].measured_s);
    }
    const auto count = static_cast<double>(members.size());
    sum += rank_correlation(predicted_s, measured_s) * count;
    regret += top_regret(predicted_s, measured_s, 1) * count;
    accuracy.ranked += members.size();
  }
  if (accuracy.ranked == 0) return;
  accuracy.spearman = sum / static_cast<double>(accuracy.ranked);
  accuracy.regret = regret / static_cast<double>(accuracy.ranked);
}

}  // namespace

std::pair<double, double> best_constant_efficiency(std::span<const double> bounds,
                                                   std::span<const double> measured) {
  // Σ |r/e - 1| with r = bound / measured is Σ r |1/e - 1/r|: least at the median of 1/r, each
  // weighted by r.
  std::vector<double> ratios(bounds.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) ratios[i] = bounds[i] / measured[i];
  std::sort(ratios.begin(), ratios.end());
  const double half = std::accumulate(ratios.begin(), ratios.end(), 0.0) / 2;
  double below = 0;
  std::size_t median = 0;
  while (median + 1 < ratios.size() && below + ratios[median] < half) below += ratios[median++];
  const double efficiency = ratios[median];
  double error = 0;
  for (const double ratio : ratios) error += std::abs(ratio / efficiency - 1);
  return {efficiency, error / static_cast<double>(ratios.size())};
}

Accuracy accuracy_of(const std::vector<MeasuredRun>& runs,
                     const std::vector<Prediction>& predictions,
                     std::span<const std::size_t> indices) {
  Accuracy accuracy;
  accuracy.runs = indices.size();
  std::vector<std::size_t> predicted;
  std::vector<double> absolute;
  std::vector<double> bounds;
  std::vector<double> measured;
  for (const std::size_t i : indices) {
    const Prediction& prediction = predictions[i];
    if (!prediction.predicted()) continue;
    const double error = prediction.ratio() - 1;
    if (predicted.empty() || std::abs(error) > std::abs(accuracy.worst)) {
      accuracy.worst = error;
      accuracy.worst_run = i;
    }
    predicted.push_back(i);
    absolute.push_back(std::abs(error));
    bounds.push_back(prediction.bound_s);
    measured.push_back(prediction.measured_s);
    accuracy.bias += error;
    accuracy.bound_mape += std::abs(prediction.bound_s / prediction.measured_s - 1);
    if (prediction.metrics.iteration_time_s < prediction.bound_s * kBelowTolerance) {
      ++accuracy.predicted_below_bound;
    }
    if (prediction.measured_s < prediction.bound_s) accuracy.measured_below_bound.push_back(i);
    if (prediction.interval) {
      ++accuracy.intervals;
      accuracy.covered += prediction.is_inside() ? 1 : 0;
      accuracy.width += prediction.interval->width();
    }
    if (prediction.measured_memory_bytes > 0) {
      if (prediction.memory_interval) ++accuracy.memory_intervals;
      if (prediction.is_memory_inside()) ++accuracy.memory_covered;
      const double off =
          prediction.metrics.peak_memory_bytes / prediction.measured_memory_bytes - 1;
      ++accuracy.memory_runs;
      accuracy.memory_mape += std::abs(off);
      accuracy.memory_bias += off;
    }
  }
  accuracy.predicted = predicted.size();
  if (accuracy.intervals > 0) {
    accuracy.covered /= static_cast<double>(accuracy.intervals);
    accuracy.width /= static_cast<double>(accuracy.intervals);
  }
  if (accuracy.memory_intervals > 0) {
    accuracy.memory_covered /= static_cast<double>(accuracy.memory_intervals);
  }
  if (accuracy.memory_runs > 0) {
    accuracy.memory_mape /= static_cast<double>(accuracy.memory_runs);
    accuracy.memory_bias /= static_cast<double>(accuracy.memory_runs);
  }
  if (predicted.empty()) return accuracy;
  const auto count = static_cast<double>(predicted.size());
  accuracy.mape = std::accumulate(absolute.begin(), absolute.end(), 0.0) / count;
  accuracy.bias /= count;
  accuracy.bound_mape /= count;
  std::sort(absolute.begin(), absolute.end());
  accuracy.median_ape = quantile(absolute, 0.5);
  accuracy.p90_ape = quantile(absolute, 0.9);
  std::tie(accuracy.constant_efficiency, accuracy.constant_efficiency_mape) =
      best_constant_efficiency(bounds, measured);
  rank_families(runs, predictions, predicted, accuracy);
  return accuracy;
}

std::vector<AccuracyGroup> accuracy_by(const std::vector<MeasuredRun>& runs,
                                       const std::vector<Prediction>& predictions,
                                       const std::vector<std::string>& columns) {
  std::vector<AccuracyGroup> groups;
  std::map<std::vector<std::string>, std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> values;
    values.reserve(columns.size());
    for (const std::string& column : columns) values.push_back(group_value(runs[i], column));
    const auto [place, is_new] = places.try_emplace(values, groups.size());
    if (is_new) groups.push_back({std::move(values), {}, {}});
    groups[place->second].runs.push_back(i);
  }
  for (AccuracyGroup& group : groups) {
    group.accuracy = accuracy_of(runs, predictions, group.runs);
  }
  return groups;
}

std::vector<std::size_t> furthest_off(const std::vector<Prediction>& predictions,
                                      std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i].predicted()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(predictions[a].ratio() - 1) > std::abs(predictions[b].ratio() - 1);
  });
  order.resize(std::min(order.size(), count));
  return order;
}

std::map<std::string, std::vector<int>> unpredicted_lines(
    const std::vector<MeasuredRun>& runs, const std::vector<Prediction>& predictions) {
  std::map<std::string, std::vector<int>> lines;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!predictions[i].predicted()) lines[predictions[i].reason].push_back(runs[i].line);
  }
  return lines;
}

std::string line_ranges(const std::vector<int>& lines) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i;
    while (end + 1 < lines.size() && lines[end + 1] == lines[end] + 1) ++end;
    ranges.push_back(end > i ? fmt::format("{}-{}", lines[i], lines[end])
                             : fmt::format("{}", lines[i]));
    i = end + 1;
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

}  // namespace braid
