#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/problem.h"
#include "braid/planners/graphpipe/shapes.h"

namespace braid {

/// A number of samples per replica that stages may have with a group and strategy.
struct GraphPipeShare {
  std::int32_t samples = 0;  ///< In device_samples.
  std::int32_t devices = 0;
  std::int32_t weighed = 0;  ///< Those (graphpipe_weights).
  std::int64_t replicas = 0;
  std::size_t place = 0;         ///< Of `weighed` in GraphPipeRuns::devices.
  double synced = 0;             ///< Times over which a device sends and receives gradients …
  double experts_synced = 0;     ///< … and those of experts.
  double sync_bytes_per_s = 0;   ///< Of a device.
  double stage_bytes_per_s = 0;  ///< Between stages, of all devices.
};

/// What a stage of a shape is with one group, strategy and share.
struct GraphPipeRun {
  /// Per sample, between neighbours with the fewest copies. Infinite: it does not fit at all, or an
  /// earlier strategy is always as good.
  double time_s = kInfinity;
  double compute_s = 0;
  bool roomy = false;  ///< It fits with the whole batch in flight.
};

/// The runs of all shapes with all of `groups`, priced from the definition (GraphPipeProblem). A
/// stage fits that fits with what a sink has in flight. Refers to problem and shapes.
class GraphPipeRuns {
 public:
  GraphPipeRuns(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                const std::vector<PassGroup>& groups);

  /// Kind of devices of a strategy, and its memory.
  std::size_t pool(std::size_t strategy) const { return strategies_[strategy].pool; }
  double memory_bytes(std::size_t strategy) const { return strategies_[strategy].memory_bytes; }
  /// All devices, weighed.
  std::int32_t all_devices() const { return all_devices_; }
  /// Those of a group and strategy, from few devices to many, …
  const std::vector<GraphPipeShare>& shares(std::size_t group, std::size_t strategy) const {
    return rows_[group * problem_.strategies.size() + strategy].shares;
  }
  /// … and the runs of a shape with them, kept once asked for.
  const GraphPipeRun* runs(std::size_t shape, std::size_t group, std::size_t strategy);
  /// Numbers of weighed devices that stages may have, ascending, …
  const std::vector<std::int32_t>& devices() const { return devices_; }
  /// … and the least time of a shape's runs with at most as many, for each of them, …
  const double* least_s(std::size_t shape) const {
    return least_s_.data() + shape * devices_.size();
  }
  /// … and that of their passes alone, whatever network and gradients take.
  const double* least_passes_s(std::size_t shape) const {
    return least_passes_s_.data() + shape * devices_.size();
  }
  /// Time per sample between neighbours with these copies, places in copies().
  double time_s(const GraphPipeShape& shape, double compute_s, const GraphPipeShare& share,
                std::size_t strategy, std::int32_t before, std::int32_t after) const;

  /// What strategies have, ascending, …
  const std::vector<std::int64_t>& copies() const { return levels_.copies; }
  /// … and the place of a strategy's copies in it.
  std::int32_t copies_of(std::size_t strategy) const { return levels_.place[strategy]; }

  /// Times per sample that a stage attains between some neighbours, from `least_s` on and below
  /// `limit_s`, in no order.
  std::vector<double> attained_s(double least_s, double limit_s) const;
  /// The same between neighbours with the fewest copies, and only where no run of the shape with as
  /// few devices is faster.
  std::vector<double> fastest_s(double least_s, double limit_s) const;

 private:
  /// Of a group and strategy.
  struct Row {
    PassGroup group;
    std::size_t strategy = 0;
    std::size_t first = 0;   ///< Of a shape's runs.
    std::int64_t least = 0;  ///< Samples that a sink has in flight.
    std::vector<GraphPipeShare> shares;
    /// Rows of its group's earlier strategies of its kind, which have the same shares.
    std::vector<std::size_t> earlier;
  };

  void add_row(const PassGroup& group, std::size_t strategy, std::int32_t weight);
  void find_devices();
  void find_least();
  void price(const GraphPipeShape& shape, GraphPipeRun* runs) const;
  double passes_s(const GraphPipeShape& shape, std::size_t strategy,
                  const GraphPipeShare& share) const;
  bool passes_no_longer(const GraphPipeShape& shape, std::size_t strategy, std::size_t other,
                        const GraphPipeShare& share) const;
  GraphPipeRun run_of(const GraphPipeShape& shape, const Row& row,
                      const GraphPipeShare& share) const;
  bool is_useless(const GraphPipeShape& shape, const Row& row, std::size_t index,
                  const GraphPipeRun* runs) const;

  const GraphPipeProblem& problem_;
  const GraphPipeShapes& form_;
  CopyLevels levels_;
  struct Strategy {
    std::size_t pool = 0;
    double memory_bytes = 0;
  };
  std::vector<Strategy> strategies_;
  std::int32_t all_devices_ = 0;
  std::vector<Row> rows_;  ///< [group · strategies + strategy]
  std::size_t runs_of_shape_ = 0;
  std::vector<std::vector<GraphPipeRun>> runs_;  ///< [shape][row, share]; empty until asked for.
  std::vector<std::int32_t> devices_;
  std::vector<double> least_s_, least_passes_s_;  ///< [shape · devices_ + place in devices_]
};

/// Memory on a device of a stage of that shape and strategy with so many samples in flight.
double graphpipe_memory_bytes(const GraphPipeShape& shape, std::size_t strategy,
                              const PassGroup& group, std::int64_t replicas,
                              std::int64_t in_flight);

}  // namespace braid
