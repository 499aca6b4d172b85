#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// A stage of a pipeline as the assignment of layers sees it. Stages on different devices have
/// different times for the same layers.
struct AssignmentStage {
  /// Sums of the layers' times on this stage's devices, forward and backward of one micro-batch:
  /// layers [l, r) take time_before_s[r] - time_before_s[l]. One more entry than there are layers.
  std::span<const double> time_before_s;
  /// By right end r: the least left end that fits the stage's memory (see first_fitting); never
  /// falling. Empty: no limit.
  std::span<const std::int32_t> first_allowed;

  double time_s(std::size_t begin, std::size_t end) const {
    return time_before_s[end] - time_before_s[begin];
  }
};

/// The inner step of the dynamic programs that split a chain: appends one stage to all prefixes at
/// once. Scratch memory that calls share.
class StageWindow {
 public:
  explicit StageWindow(std::size_t layers) : queue_(layers + 1) {}

  /// By left or right end of the stage.
  struct Row {
    std::span<double> entry, cost;
    std::span<std::int32_t> left;
  };
  /// entry[l] is the least cost of the layers before l, infinity if there is none. For each right
  /// end r in [first_right, last_right], cost[r] becomes the least entry[l] + time of [l, r) over
  /// the left ends l < r at which the stage keeps to its memory and to the threshold, and left[r]
  /// the lowest such l; entries that no l reaches become infinity. `entry` is overwritten. Cost:
  /// O(layers), because both ends of the window of left ends only move right.
  void append(const AssignmentStage& stage, double threshold_s, std::size_t first_right,
              std::size_t last_right, const Row& row);

 private:
  std::vector<std::size_t> queue_;  ///< Left ends in the window, by rising entry.
};

/// The least stage time above `above_s`, or infinity. O(layers).
double next_stage_time_s(std::span<const double> time_before_s, double above_s);

/// For AssignmentStage::first_allowed: with `layer_bytes` what each layer needs on the stage, the
/// least l for each r such that layers [l, r) need at most `available_bytes`; r itself when not
/// even layer r - 1 fits.
std::vector<std::int32_t> first_fitting(std::span<const double> layer_bytes,
                                        double available_bytes);

/// Sums of the first 0, 1, … values.
std::vector<double> running_sums(std::span<const double> values);

}  // namespace braid
