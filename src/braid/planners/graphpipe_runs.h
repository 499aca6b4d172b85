#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "braid/planners/graphpipe_problem.h"
#include "braid/planners/graphpipe_shapes.h"

namespace braid {

/// What a stage of a shape is with one group and number of samples per device.
struct GraphPipeRun {
  double time_s = std::numeric_limits<double>::infinity();  ///< Infinite: it does not fit at all.
  std::int32_t devices = 0;
};

/// The runs of all shapes with all of `groups`, priced from the definition (GraphPipeProblem). A
/// stage fits that fits with what a sink has in flight.
class GraphPipeRuns {
 public:
  GraphPipeRuns(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                const std::vector<PassGroup>& groups);

  const std::vector<GraphPipeRun>& all() const { return runs_; }
  const GraphPipeRun& of(std::size_t shape, std::size_t group, std::size_t samples) const {
    return runs_[(shape * groups_ + group) * samples_ + samples];
  }

  /// [shape · groups + group]: how many numbers of samples per device there are up to the largest
  /// that keeps a time per sample.
  std::vector<std::size_t> keeping(double time_s) const;

 private:
  std::size_t groups_, samples_;
  std::vector<GraphPipeRun> runs_;  ///< [shape][group][index in device_samples]
};

/// Memory on a device of a stage of that shape with so many samples in flight.
double graphpipe_memory_bytes(const GraphPipeShape& shape, const PassGroup& group,
                              std::int64_t devices, std::int64_t in_flight);

}  // namespace braid
