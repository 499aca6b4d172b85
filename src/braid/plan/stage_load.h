#pragma once

#include <span>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/system/links.h"

namespace braid {

/// Work of one chunk of a stage for one micro-batch.
struct ChunkLoad {
  PassTime forward;
  PassTime recompute;
  PassTime backward_input;
  PassTime backward_weight;
  double hidden_tp_s = 0;  ///< LayerCost::hidden_tp_s: not part of the passes.
  /// Exposed wait for sharded parameters (ZeRO-3 gathers) and gradients (ZeRO-2/3 reduce-scatters)
  /// inside the passes; not part of the fields above.
  double dp_forward_s = 0;
  double dp_backward_s = 0;
  double model_flops = 0;  ///< Per device.

  double forward_s() const { return forward.total_s() + dp_forward_s; }
  double backward_s() const {
    return recompute.total_s() + backward_input.total_s() + backward_weight.total_s() +
           dp_backward_s;
  }
};

/// What a stage does before its first and after its last pass: synchronisation around the
/// iteration, as one network stream that runs beside the compute, and the optimizer.
struct StageSync {
  double gradient_sync_s = 0;   ///< Reduce (or reduce-scatter) of the stage's gradients, whole.
  double parameter_sync_s = 0;  ///< All-gather of updated parameters (ZeRO-1/2), whole.
  int buckets = 1;         ///< Equal parts into which both are cut; bucket i of the gradients can
                           ///< start when the last micro-batch's backward pass is (i+1)/n done.
  double optimizer_s = 0;  ///< Update of the device's share of the parameters.
  /// Between the two: summing the gradients of parameters that other stages hold too, whole.
  double shared_gradient_sync_s = 0;
  // Of the gradients, those of chunks whose backward passes end before the stage's last chunk's.
  double earlier_gradient_sync_s = 0;  ///< Part of gradient_sync_s.
  int earlier_buckets = 0;             ///< Of `buckets`.
  double earlier_late_s = 0;  ///< From the start of the stage's last pass until they are done.
  friend bool operator==(const StageSync&, const StageSync&) = default;
};

/// Everything about a stage that a schedule needs to be timed.
struct StageLoad {
  std::vector<ChunkLoad> chunks;
  StageSync sync;
};

/// Transfer time of one micro-batch of the source along each ChunkEdge of chunk_edges(plan), in
/// that order; and back, of one micro-batch of the target.
struct EdgeLoad {
  ChunkEdge edge;
  double transfer_s = 0;
  double backward_transfer_s = -1;  ///< Negative: as transfer_s.
};

std::vector<StageLoad> stage_loads(const Plan& plan);
std::vector<EdgeLoad> edge_loads(const Plan& plan);

/// How many stages send out of a node at the same time while passes run: 1, or 2 where two of a
/// node's stages share its network cards. Under 1F1B, interleaved or not, neighbouring stages run
/// passes of opposite directions; so where an even number of stages lies on a node, its last one's
/// activations leave together with its first one's gradients. Nodes at the ends of a pipeline have
/// one way out only, but what a node between them sends or receives arrives at, or comes from,
/// these. GPipe's stages send in one direction at a time. 1 where stages and nodes do not meet at
/// their edges.
int stages_sending(const Parallelism& parallel, const System& system);

/// Time to hand `bytes` from each device of a stage to its counterpart in another, all devices of
/// `senders` stages of a node sending at once (stages_sending, for what passes hand over); the
/// slowest of the stage's first and last device.
double transfer_time_s(const Parallelism& parallel, const System& system, int source_stage,
                       int target_stage, double bytes, int senders = 1);

/// Those of a handover between stages of any devices, max(senders, receivers) at once: the i-th
/// device of the larger side with the one as far along the smaller side.
std::vector<Flow> handover_flows(std::span<const std::int64_t> senders,
                                 std::span<const std::int64_t> receivers);

/// Time of `bytes` in each of the handover_flows(); of the slowest flow, where all share ports and
/// uplinks (flow_rates).
double handover_s(const System& system, std::span<const std::int64_t> senders,
                  std::span<const std::int64_t> receivers, double bytes);

/// Part of the gradient synchronisation that outlasts the last backward pass of `backward_s`, when
/// bucket i starts at (i + 1)/n of it and buckets go one after another:
/// max(0, max_i ...) = max(sync/n, sync - backward·(n-1)/n), zero for sync = 0.
double exposed_gradient_sync_s(double sync_s, double backward_s, int buckets);

/// The same for a stage whose last pass, of `backward_s`, is its last chunk's, with the gradients
/// of earlier chunks before.
double exposed_gradient_sync_s(const StageSync& sync, double backward_s);

/// What gathering or scattering that takes `sync_s` adds to a pass of `pass_s` behind which it
/// hides layer by layer: the exposed part, and of the hidden part the share
/// Efficiency::overlap_loss.
inline double pass_sync_s(double sync_s, double pass_s, int layers, double overlap_loss) {
  const double exposed_s = exposed_gradient_sync_s(sync_s, pass_s, layers);
  return exposed_s + overlap_loss * (sync_s - exposed_s);
}

}  // namespace braid
