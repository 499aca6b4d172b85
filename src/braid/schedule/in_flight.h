#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/schedule/order_timing.h"
#include "braid/schedule/stage_graph.h"
#include "braid/schedule/work_order.h"

namespace braid {

/// A stage's micro-batch size and how many passes of a kind it runs in a row under kFkB.
struct PassGroup {
  std::int64_t micro_batch = 1;
  std::int64_t k = 1;
  friend bool operator==(const PassGroup&, const PassGroup&) = default;
};

/// Samples that a stage must have in flight ahead of one successor that has `successor_in_flight`,
/// so that no time is lost when all take equally long per sample, forward as backward (Jeon 2024,
/// Table 3.2). A sink has k·micro_batch in flight.
std::int64_t table_in_flight(PassGroup stage, PassGroup successor,
                             std::int64_t successor_in_flight);

/// For each stage the table's samples in flight, the most over its successors; `k` has an entry of
/// at least 1 for each stage. Not bounded by the batch.
std::vector<std::int64_t> table_in_flight(const StageGraph& graph, std::span<const std::int64_t> k);

/// Forward passes with which each stage starts to have so many samples in flight: ⌈i/b⌉, at least
/// k, at most all.
std::vector<std::int64_t> warm_ups_of(const StageGraph& graph, std::span<const std::int64_t> k,
                                      std::span<const std::int64_t> in_flight);

/// The fewest warm-up passes that lose no time for the actual times: stage by stage from the sinks,
/// the fewest with which it finishes as early as any order of its passes could, given the
/// schedules of the stages after it and all its inputs at time 0. `k` as above; one stage per
/// device, one round. kFkB with them never waits for ever: each stage on its own lets those after
/// it finish. Cost: for each stage, log m timings of the stages after it.
std::vector<std::int64_t> least_warm_ups(const TimedGraph& timed, std::span<const std::int64_t> k);

/// The same, one stage at a time.
class LeastWarmUps {
 public:
  explicit LeastWarmUps(const TimedGraph& timed);

  /// Chooses the stage's warm-up for k passes in a row, given what was chosen last for all the
  /// stages that its activations reach; the time when it has run its passes.
  double choose(std::size_t stage, std::int64_t k);

  /// [stage]: as chosen last; 0 for none.
  const std::vector<std::int64_t>& warm_ups() const { return warm_ups_; }

  /// Passes timed so far, each again in every timing.
  std::int64_t work() const { return work_; }

 private:
  const TimedGraph& timed_;
  std::vector<std::int64_t> warm_ups_;
  std::vector<std::vector<Work>> chosen_;
  std::int64_t work_ = 0;
};

}  // namespace braid
