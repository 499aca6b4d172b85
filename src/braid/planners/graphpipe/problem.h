#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"
#include "braid/planners/graphpipe/in_flight_rule.h"
#include "braid/schedule/in_flight.h"

namespace braid {

inline constexpr std::int64_t kMostGraphPipeDevices = 65'536;
inline constexpr std::size_t kMostGraphPipePools = 4;

/// Devices of one kind.
struct GraphPipePool {
  std::int64_t devices = 1;
  double memory_bytes = 0;
  double bandwidth_bytes_per_s = 0;       ///< Of one device.
  std::int64_t devices_per_node = 1;      ///< Up to so many devices synchronise gradients …
  double node_bandwidth_bytes_per_s = 0;  ///< … at this rate; 0: as others.
  friend bool operator==(const GraphPipePool&, const GraphPipePool&) = default;
};

/// A strategy in which a stage may run all its nodes: on devices of one kind, with a degree of
/// tensor parallelism, with something recomputed or not.
struct GraphPipeStrategy {
  std::int64_t tensor = 1;  ///< Devices of a replica.
  /// How often a tensor that enters or leaves the stage is on these devices: `tensor` times where
  /// each has it whole, once where each has a part.
  std::int64_t copies = 1;
  std::int32_t pool = 0;  ///< In GraphPipeProblem::pools.
  /// Replicas that experts are spread over: a stage's number of replicas is a multiple of it.
  std::int64_t expert = 1;
  friend bool operator==(const GraphPipeStrategy&, const GraphPipeStrategy&) = default;
};

/// The numbers of copies that strategies have, each once, ascending, and each strategy's place
/// among them.
struct CopyLevels {
  std::vector<std::int64_t> copies;
  std::vector<std::int32_t> place;  ///< [strategy]
};
CopyLevels copy_levels(const std::vector<GraphPipeStrategy>& strategies);

/// What a node costs on each device of a replica that runs it in one strategy.
struct GraphPipeCost {
  /// [index in device_samples]: a pass over as many samples.
  std::vector<double> forward_s, backward_s;
  double fixed_bytes = 0;            ///< Weights, gradients and optimizer state.
  double gradient_bytes = 0;         ///< To synchronise over a stage's replicas once per batch …
  double expert_gradient_bytes = 0;  ///< … and over those that hold the same experts.
  double stash_bytes = 0;            ///< Per sample of the replica in flight.
  double working_bytes = 0;          ///< Per sample of the replica while the node runs.
  friend bool operator==(const GraphPipeCost&, const GraphPipeCost&) = default;
};

/// Nodes of a kind cost the same: [index in strategies].
using GraphPipeKind = std::vector<GraphPipeCost>;

struct GraphPipeEdge {
  std::int32_t source = 0, target = 0;
  double bytes = 0;  ///< Per sample; the gradient is as large.
  friend bool operator==(const GraphPipeEdge&, const GraphPipeEdge&) = default;
};

/// Planning a pipeline whose stages form a graph (Jeon 2024, §3.3): cut the graph of nodes into
/// convex stages that form a directed acyclic graph, give each devices, one of `strategies` to run,
/// a micro-batch size b and a k for kFkB, such that the slowest stage's time per sample is least,
/// where
///   all devices of a stage are of the kind of its strategy, and of each kind Σ devices ≤ those
///   there
///     are; memory and bandwidths are that kind's; a stage's d devices are r = d/tensor replicas,
///     which split its micro-batches, b/r samples each being one of `device_samples`; b divides the
///     batch B, and b and k are one of `groups`; `expert` e divides r;
///   compute = Σ (forward + backward)/b + 2·((r-1)·gradient bytes + (r-e)·expert gradient
///     bytes)/(r·bandwidth·B), at the node's bandwidth if d devices fit in a node;
///   network = what each direction carries in both passes/(bandwidth·d). A device receives as often
///     as its strategy has copies: copies·(in + out), in and out being the bytes of all edges that
///     cross the stage's border. It sends as often as its neighbours have copies: P·in + N·out, P
///     (N) being the most copies of any stage before (after) it. The larger counts;
///   time per sample = max(compute, network) if `overlap`, else their sum;
///   fixed + (i·stash + b·(most working bytes of a node))/r ≤ memory, i being the samples in
///     flight, at most B.
/// i by the table: k·b at a sink, else the most that table_in_flight gives over the successors.
/// Least i, for one b everywhere and k = 1: b times the fewest micro-batches with which all stages
/// can repeat their passes every t·b, t seconds per sample being the plan's rate
/// (least_in_flight in planners/graphpipe/in_flight.h). A transfer takes
/// copies·bytes·b/(bandwidth·d), for all bytes per sample that enter the receiving stage, its
/// copies, its bandwidth and its d devices, and as long back. The rate is the slowest stage's, or
/// the least that is longer at which all stages fit: a longer one never asks for more in flight.
struct GraphPipeProblem {
  std::vector<GraphPipeStrategy> strategies = {
      {}};  ///< Of data parallelism alone when there is but this.
  std::vector<GraphPipeKind> kinds;
  std::vector<std::int32_t> nodes;           ///< Kind of each, in topological order.
  std::vector<GraphPipeEdge> edges;          ///< source < target.
  std::vector<std::int64_t> device_samples;  ///< Ascending.
  std::int64_t batch = 1;                    ///< B, samples.
  std::vector<GraphPipePool> pools = {{}};   ///< One for each kind of devices.
  bool overlap = true;
  std::int64_t least_stage_devices = 1;  ///< Every stage has at least so many …
  std::int64_t most_stage_devices = kMostGraphPipeDevices;  ///< … and at most so many.
  InFlight in_flight = InFlight::least;
  /// Micro-batch sizes and k that stages may have. All stages have the same one of them, the best,
  /// unless `mixed`: then each has its own, if sizes of neighbours divide one another. Mixing needs
  /// the table.
  std::vector<PassGroup> groups;
  bool mixed = false;

  /// Of the kind that a strategy is for.
  const GraphPipePool& pool_of(const GraphPipeStrategy& strategy) const {
    return pools[static_cast<std::size_t>(strategy.pool)];
  }
  friend bool operator==(const GraphPipeProblem&, const GraphPipeProblem&) = default;
};

inline constexpr std::int64_t kMostGraphPipeNodes = 8192;
inline constexpr std::size_t kMostMixedGroups = 8;
inline constexpr std::size_t kMostGraphPipeStrategies = 256;

/// Throws Error naming the field or node when the problem is not as described.
void check_graphpipe_problem(const GraphPipeProblem& problem);

struct GraphPipeStage {
  std::vector<std::int32_t> nodes;  ///< Ascending.
  std::int64_t devices = 1;
  std::int32_t strategy = 0;  ///< In GraphPipeProblem::strategies.
  PassGroup group;
  // What price_graphpipe fills in:
  double time_s = 0;           ///< Per sample.
  std::int64_t in_flight = 0;  ///< Samples.
  double memory_bytes = 0;     ///< On one device.
  int depth = 1;               ///< Stages on the longest path to a sink.
  friend bool operator==(const GraphPipeStage&, const GraphPipeStage&) = default;
};

struct GraphPipeSolution {
  Status status = Status::infeasible;
  double time_s = 0;  ///< Per sample: the rate, at least the slowest stage's time.
  double fill_s = 0;  ///< A micro-batch's path through all stages and back, at that rate.
  std::vector<GraphPipeStage> stages;  ///< Each before its successors.
  /// Cuts that made the graph series-parallel (OrderTree::cuts): with any, there may be better
  /// plans of series-parallel stages; with other stages there may be anyway.
  std::int64_t cuts = 0;
  std::int64_t work = 0;  ///< Stages examined.

  std::int64_t devices_used() const;
  int depth() const;
};

/// How many replicas a stage's devices are.
std::int64_t graphpipe_replicas(const GraphPipeProblem& problem, const GraphPipeStage& stage);

/// Rate at which d devices of a kind synchronise gradients, each.
double graphpipe_sync_bytes_per_s(const GraphPipePool& pool, std::int64_t devices);

/// What a device of each kind counts for where devices of several kinds are summed up: 1 for one
/// kind, else 1 to 256 in proportion to how fast they run the whole graph, 0 for those that no
/// strategy is for. Whatever the weights, a bound on the weighed sum is one on what plans need.
std::vector<std::int32_t> graphpipe_weights(const GraphPipeProblem& problem);

/// All devices, weighed.
std::int32_t graphpipe_weighed_devices(const GraphPipeProblem& problem);

/// Least weighed device-seconds per sample of a node of each kind, whatever its strategy and the
/// samples that a replica has at once.
std::vector<double> graphpipe_least_work_s(const GraphPipeProblem& problem);

/// No plan's iteration is shorter: all passes of the batch, each node's at what takes it least,
/// spread over all devices, weighed.
double graphpipe_bound_s(const GraphPipeProblem& problem);

/// The same problem for a line of stages: nodes one after the other in their order, every stage
/// with the next one alone behind it, as PipeDream and Piper have it.
GraphPipeProblem linear_graphpipe(GraphPipeProblem problem);

/// Memory on one device of a stage of so many replicas.
inline double graphpipe_memory_bytes(std::int64_t in_flight, std::int64_t replicas,
                                     std::int64_t micro_batch, double fixed_bytes,
                                     double stash_bytes, double working_bytes) {
  return fixed_bytes + (static_cast<double>(in_flight) * stash_bytes +
                        static_cast<double>(micro_batch) * working_bytes) /
                           static_cast<double>(replicas);
}

}  // namespace braid
