#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/planners/mixed/problem.h"

namespace braid {

/// What the layers before a stage need of devices, and what devices are there: whatever a second of
/// each kind of device can do, stages that share devices out cannot do more than these together.
/// The capacity of a device is what it does of the whole model in its best config.
class MixedWork {
 public:
  explicit MixedWork(const MixedProblem& problem);

  /// Of all devices but those used.
  double capacity_left(std::span<const std::int32_t> used) const;
  /// Layers [0, left) on devices of that capacity: some stage has passes at least as long. Infinite
  /// without devices; 0 for no layers.
  double longest_stage_s(std::int32_t left, double capacity) const {
    return share(needed_, left, capacity);
  }
  /// Some stage of a chain that has these layers in no more than `most_stages` stages, in front of
  /// `depth` others whose way down and up is `below_s`, has at least this excess_s
  /// (OneFOneBTurns).
  double longest_excess_s(std::int32_t left, double capacity, std::int64_t depth,
                          std::int64_t most_stages, double below_s) const;

 private:
  static double share(const std::vector<double>& needed, std::int32_t left, double capacity);

  const MixedProblem& problem_;
  std::vector<double> speed_;                     ///< Of a device of each kind.
  std::vector<double> needed_, needed_backward_;  ///< Capacity times seconds, by `left`.
  double backward_share_ = 1;  ///< The least that backward passes have of any layer's time.
};

}  // namespace braid
