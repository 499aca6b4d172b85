#pragma once

#include <cstdint>
#include <vector>

#include "braid/frontend/graph_program.h"
#include "braid/schedule/plan_orders.h"

namespace braid {

/// Nodes of a part that keep what their backward pass needs, or only what they read.
struct RunSegment {
  std::vector<NodeId> nodes;    ///< In the program's order.
  bool recomputed = false;      ///< Computed again before its backward pass.
  std::vector<ValueId> reads;   ///< Results of nodes outside that its nodes read, ascending.
  std::vector<ValueId> writes;  ///< Its results that are read outside, or are losses, ascending.
};

/// What a stage's chunk does for one micro-batch, and who does it. The number of a part is that of
/// its stage in the OrderedPlan's graph.
struct StagePart {
  std::int32_t stage = 0, chunk = 0;
  std::int64_t micro_batch = 1;     ///< Samples of one replica.
  std::vector<std::int32_t> ranks;  ///< [replica]
  std::vector<RunSegment> segments;
  std::vector<ValueId> received, handed;  ///< From and to other parts, ascending.
  std::vector<ValueId> parameters;        ///< That its nodes read, ascending.
  std::vector<ValueId> losses;            ///< Its results that the loss is made of, ascending.
};

/// Results of one part that another reads; their gradients come back the other way.
struct Handover {
  std::int32_t source = 0, target = 0;  ///< Parts.
  std::vector<ValueId> values;          ///< Ascending.
};

/// A model as the parts that ranks run. A rank is a process for one device.
struct StagedModel {
  LayeredProgram model;
  std::int64_t batch = 1;                 ///< Samples of an iteration.
  std::vector<std::int64_t> rank_device;  ///< [rank]: devices of the plan, ascending.
  std::vector<StagePart> parts;
  std::vector<Handover> handovers;  ///< By source, then target.

  /// Of micro-batch k of a replica of a part: round by round, a round's samples in turn to the
  /// replicas.
  std::int64_t first_sample(std::size_t part, std::size_t replica, std::int64_t k) const {
    const StagePart& of = parts[part];
    return (k * static_cast<std::int64_t>(of.ranks.size()) + static_cast<std::int64_t>(replica)) *
           of.micro_batch;
  }
};

/// Divides the model among the ranks of a plan. Layers that are recomputed in full are segments of
/// their own, and so is the attention of those that are recomputed selectively. Throws Error,
/// naming the stage, for what cannot be run: what check_runnable() refuses, layers that are not the
/// model's, stages that compute nothing. Linear in nodes and stages.
StagedModel staged_model(const Graph& graph, const OrderedPlan& ordered);

/// Throws Error, naming the stage, for a plan with what processes cannot do yet: tensor, context
/// or expert parallelism, and offloading to the host.
void check_runnable(const Plan& plan);

}  // namespace braid
