#include "braid/search/amp_window.h"

#include <algorithm>

#include "braid/base/infinity.h"

namespace braid {

void StageWindow::append(const AssignmentStage& stage, double threshold_s, std::size_t first_right,
                         std::size_t last_right, const Row& row) {
  const auto [entry, cost, left] = row;  // A copy: stores would make it be read again.
  std::fill(cost.begin(), cost.end(), kInfinity);
  std::size_t head = 0, tail = 0, first = 0, entered = 0;
  for (std::size_t right = first_right; right <= last_right; ++right) {
    for (; entered < right; ++entered) {
      // Sums up to the left end are taken off once, so that entries compare whatever r is.
      entry[entered] -= stage.time_before_s[entered];
      if (!(entry[entered] < kInfinity)) continue;
      while (tail > head && entry[queue_[tail - 1]] > entry[entered]) --tail;
      queue_[tail++] = entered;
    }
    if (!stage.first_allowed.empty()) {
      first = std::max(first, static_cast<std::size_t>(stage.first_allowed[right]));
    }
    while (first < right && stage.time_s(first, right) > threshold_s) ++first;
    while (head < tail && queue_[head] < first) ++head;
    if (head == tail) continue;
    left[right] = static_cast<std::int32_t>(queue_[head]);
    cost[right] = entry[queue_[head]] + stage.time_before_s[right];
  }
}

double next_stage_time_s(std::span<const double> time_before_s, double above_s) {
  double next_s = kInfinity;
  std::size_t left = 0;
  for (std::size_t right = 1; right < time_before_s.size(); ++right) {
    while (left < right && time_before_s[right] - time_before_s[left] > above_s) ++left;
    // Times fall as the left end moves right: the last one above is the least above.
    if (left > 0) next_s = std::min(next_s, time_before_s[right] - time_before_s[left - 1]);
  }
  return next_s;
}

std::vector<std::int32_t> first_fitting(std::span<const double> layer_bytes,
                                        double available_bytes) {
  const std::vector<double> before_bytes = running_sums(layer_bytes);
  std::vector<std::int32_t> first(layer_bytes.size() + 1, 0);
  std::size_t left = 0;
  for (std::size_t right = 1; right < first.size(); ++right) {
    while (left < right && before_bytes[right] - before_bytes[left] > available_bytes) ++left;
    first[right] = static_cast<std::int32_t>(left);
  }
  return first;
}

std::vector<double> running_sums(std::span<const double> values) {
  std::vector<double> sums(values.size() + 1, 0);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  return sums;
}

}  // namespace braid
