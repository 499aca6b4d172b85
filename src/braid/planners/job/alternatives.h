#pragma once

#include <cstddef>
#include <map>

#include "braid/planners/job/configuration.h"

namespace braid {

// Which plans are alternatives to each other: what is shown beside the best is of other classes.

/// Whether two configurations have the same degrees, recomputation and offload, and both or neither
/// shard parameters: what people tell plans apart by. Micro-batches, chunks, schedules, the order
/// of axes and the other stages of ZeRO are settings of one such way to run a job.
bool is_same_class(const Configuration& a, const Configuration& b);

/// What the cheapest configuration of each class costs.
class ClassCosts {
 public:
  void add(const Configuration& configuration, double cost_s);
  /// Of the k-th cheapest class, counted from 1; infinity when there are fewer. What costs more is
  /// not among k alternatives.
  double kth_least_s(std::size_t k) const;

 private:
  std::map<Configuration, double> least_s_;  ///< By one configuration for all of a class.
};

}  // namespace braid
