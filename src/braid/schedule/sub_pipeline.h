#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/schedule/timed_graph.h"
#include "braid/schedule/work_order.h"

namespace braid {

/// A stage and all the stages that its activations reach, as a pipeline of its own: what decides
/// when the stage can finish, if it never waits for inputs.
class SubPipeline {
 public:
  /// `orders[s]` holds the passes of each stage after `stage`; they are copied.
  SubPipeline(const TimedGraph& timed, std::size_t stage,
              std::span<const std::vector<Work>> orders);

  /// When `stage` has run these passes; infinite when they wait for ever. They are of the stage
  /// itself and complete.
  double end_s(const std::vector<Work>& passes);

  /// Of all its stages: what one timing goes through.
  std::int64_t passes() const { return passes_; }

 private:
  TimedGraph part_;
  WorkOrder order_;
  std::int64_t passes_ = 0;
};

}  // namespace braid
