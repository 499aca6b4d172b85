#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/stage_load.h"
#include "braid/plan/stage_rounds.h"

namespace braid {

/// Data that passes from one chunk to another for each micro-batch of the source, and back as a
/// gradient for each of the target. Chunks are numbered stage · vp + chunk.
struct Transfer {
  std::int32_t source = 0, target = 0;
  double time_s = 0;  ///< Each way. Not used between chunks of one stage: that is no transfer.
  double backward_time_s = -1;  ///< Of the way back; negative: time_s.
  /// What the sender's pass ends with in place of time_s and backward_time_s, see hold_for_sends.
  double held_s = 0, backward_held_s = 0;

  double back_s() const { return backward_time_s < 0 ? time_s : backward_time_s; }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// A pipeline as its timing sees it: flat arrays, made once and changed in place by searches.
struct Pipeline {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int pp = 1, vp = 1;
  std::int64_t num_micro_batches = 1;  ///< Of every stage, unless rounds says otherwise.
  std::vector<StageRounds> rounds;     ///< [stage], vp = 1, of the same samples; empty: all alike.
  /// [stage], vp = 1, 1F1B: forward passes before the first backward pass, 1 to all of them; empty:
  /// as forwards_first has them.
  std::vector<std::int64_t> warm_ups;
  /// [stage], vp = 1, 1F1B: all passes of a stage in order; of a stage or for all empty: as
  /// warm_ups and the schedule have them.
  std::vector<std::vector<PassRun>> passes;
  std::vector<double> forward_s, backward_s;  ///< [stage · vp + chunk], whole passes.
  std::vector<Transfer> transfers;
  std::vector<StageSync> sync;  ///< [stage]

  std::int64_t micro_batches_of(std::size_t stage) const {
    return rounds.empty() ? num_micro_batches : rounds[stage].count;
  }
};

/// Pipeline of stages that all have as many chunks as the first and as many micro-batches.
Pipeline make_pipeline(ScheduleKind schedule, std::span<const StageLoad> loads,
                       std::span<const EdgeLoad> edges, std::int64_t num_micro_batches);
void fill_pipeline(ScheduleKind schedule, std::span<const StageLoad> loads,
                   std::span<const EdgeLoad> edges, std::int64_t num_micro_batches,
                   Pipeline& pipeline);

/// Makes every transfer part of the pass that sends it (TrainerBehaviour::blocking_sends): a stage
/// begins nothing else before its counterpart has what it sends. Buckets of gradients may go on
/// beside the send of the last pass. A stage of several chunks waits for nothing.
void hold_for_sends(Pipeline& pipeline);

/// How the iteration went for one stage.
struct StageTiming {
  double passes_end_s = 0;      ///< End of its last pass.
  double end_s = 0;             ///< End of its iteration, after gradients and optimizer.
  double parameter_wait_s = 0;  ///< By which the gathering of parameters delayed its first pass.
};

/// Earliest end of a stage's first forward pass as far as its parameters go: bucket i of n arrives
/// at (i + 1)/n of the gathering, which starts at 0, and the i-th part of the pass waits for it.
/// Zero when nothing is gathered.
double parameters_ready_s(const StageSync& sync, double forward_s);

/// Time from the end of a stage's last pass, a backward pass of `backward_s`, to the end of its
/// iteration: what is left of the gradients' synchronisation, that of shared parameters, then the
/// optimizer.
double tail_s(const StageSync& sync, double backward_s);

}  // namespace braid
