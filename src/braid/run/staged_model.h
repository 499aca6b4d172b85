#pragma once

#include <cstdint>
#include <vector>

#include "braid/frontend/graph_program.h"
#include "braid/run/stage_sharding.h"
#include "braid/schedule/plan_orders.h"

namespace braid {

/// Nodes of a part that keep what their backward pass needs, or only what they read.
struct RunSegment {
  std::vector<NodeId> nodes;    ///< Of the programs of its stage's ranks, in their order.
  bool recomputed = false;      ///< Computed again before its backward pass.
  std::vector<ValueId> reads;   ///< Results of nodes outside that its nodes read, ascending.
  std::vector<ValueId> writes;  ///< Its results that are read outside, or are losses, ascending.
};

/// What a stage's chunk does for one micro-batch, and who does it. The number of a part is that of
/// its stage in the OrderedPlan's graph.
struct StagePart {
  std::int32_t stage = 0, chunk = 0;
  std::int64_t micro_batch = 1;     ///< Samples of one replica.
  int sharers = 1;                  ///< Ranks of a replica, which divide its work.
  std::vector<std::int32_t> ranks;  ///< [replica · sharers + rank of the replica], each ascending.
  std::vector<RunSegment> segments;
  std::vector<ValueId> received, handed;  ///< From and to other parts, ascending.
  std::vector<ValueId> parameters;        ///< That its nodes read, ascending.
  std::vector<ValueId> losses;            ///< Its results that the loss is made of, ascending.

  std::int64_t replicas() const { return std::ssize(ranks) / sharers; }
  std::int32_t rank_of(std::int64_t replica, int of_replica) const {
    return ranks[static_cast<std::size_t>(replica * sharers + of_replica)];
  }
};

/// What a rank is in its stage.
struct RankPlace {
  std::int32_t stage = 0;
  std::int32_t replica = 0;
  int of_replica = 0;  ///< Among those that divide the replica's work.
  int of_experts = 0;  ///< Among those that share experts.
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
  std::vector<Handover> handovers;       ///< By source, then target.
  std::vector<StageSharding> shardings;  ///< [stage]
  std::vector<RankPlace> places;         ///< [rank]
  /// Ranks that meet within passes, where they are several: those that divide a replica's work,
  /// and those that share experts. Each ascending.
  std::vector<std::vector<std::int32_t>> sharers, expert_sharers;

  /// Of micro-batch k of a replica of a part: round by round, a round's samples in turn to the
  /// replicas.
  std::int64_t first_sample(std::size_t part, std::int64_t replica, std::int64_t k) const {
    return (k * parts[part].replicas() + replica) * parts[part].micro_batch;
  }
  /// What a rank computes.
  const RankProgram& program_of(std::int32_t rank) const {
    const RankPlace& place = places[static_cast<std::size_t>(rank)];
    const auto stage = static_cast<std::size_t>(place.stage);
    const StageSharding& sharding = shardings[stage];
    const std::int64_t group = std::int64_t{place.of_experts} * sharding.sharers;
    return sharding.ranks[static_cast<std::size_t>(group + place.of_replica)];
  }
  /// Rows of a handed over value that rank `of_replica` of a part has.
  Interval rows_of(std::int32_t part, ValueId value, int of_replica) const {
    const auto stage = static_cast<std::size_t>(parts[static_cast<std::size_t>(part)].stage);
    return shardings[stage].rows_of(value, model.shapes[static_cast<std::size_t>(value)],
                                    of_replica);
  }
};

/// Rows that rank `from` of a replica of one part sends to rank `to` of one of another part, of a
/// value or its gradient; none where the interval is empty. Where all ranks of a replica have all
/// rows, each of the others' is served by one of them.
Interval crossing_rows(const StagedModel& staged, ValueId value, std::int32_t from_part, int from,
                       std::int32_t to_part, int to);

/// Divides the model among the ranks of a plan. Layers that are recomputed in full are segments of
/// their own, and so is the attention of those that are recomputed selectively. Throws Error,
/// naming the stage, for what cannot be run: what check_runnable() and sharded_stage() refuse,
/// layers that are not the model's, stages that compute nothing. Linear in nodes and ranks.
StagedModel staged_model(const Graph& graph, const OrderedPlan& ordered);

/// The same of a model in the form that layered_program() gave, whatever its operations.
StagedModel staged_model(const Graph& graph, const OrderedPlan& ordered, LayeredProgram model);

/// Number of the group that has the rank; -1: none.
std::int32_t group_with(const std::vector<std::vector<std::int32_t>>& groups, std::int32_t rank);

/// Throws Error, naming the stage, for a plan with what processes cannot do: tensor and context
/// parallelism together, shardings that a search found, and offloading to the host.
void check_runnable(const Plan& plan);

}  // namespace braid
