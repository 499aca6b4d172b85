#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// A stage of a pipeline whose stages form a directed acyclic graph.
struct GraphStage {
  std::int32_t device = 0;       ///< Which runs it. Several stages of one device are its chunks.
  std::int64_t micro_batch = 1;  ///< Samples of a micro-batch: divides the batch.
  friend bool operator==(const GraphStage&, const GraphStage&) = default;
};

/// Activations that one stage hands to another, whose gradients come back the other way. They go
/// in parts of as many samples as the smaller of the two micro-batches: a consumer with larger
/// micro-batches waits for several parts, one with smaller micro-batches for its own part alone.
struct StageEdge {
  std::int32_t source = 0, target = 0;
  friend bool operator==(const StageEdge&, const StageEdge&) = default;
};

/// What a schedule of a pipeline is made for.
struct StageGraph {
  std::int64_t batch = 1;   ///< Samples of an iteration.
  std::int64_t rounds = 1;  ///< Iterations that follow each other without a flush.
  std::vector<GraphStage> stages;
  std::vector<StageEdge> edges;

  /// Micro-batches of a stage in one round, and in all of them.
  std::int64_t round_micro_batches(std::size_t stage) const {
    return batch / stages[stage].micro_batch;
  }
  std::int64_t micro_batches(std::size_t stage) const {
    return round_micro_batches(stage) * rounds;
  }
  friend bool operator==(const StageGraph&, const StageGraph&) = default;
};

/// Most passes of all stages together, forward and backward each counted once.
inline constexpr std::int64_t kMostGraphPasses = std::int64_t{1} << 24;

/// Throws Error naming the stage when `graph` is none that a pipeline can have: no stages, a
/// device number beyond the number of stages, a micro-batch size that does not divide the batch or
/// that neither divides nor is a multiple of a neighbour's, an edge to nowhere or to its own
/// stage, a circle of stages, more than kMostGraphPasses passes.
void check_stage_graph(const StageGraph& graph);

/// Devices: one more than the highest number in use.
std::size_t device_count(const StageGraph& graph);

/// Stages on the longest path from each stage to a sink, itself included; 1 for a sink. They fall
/// along every edge. Throws Error naming a stage when the edges form a circle.
std::vector<int> depths_of(const StageGraph& graph);

/// The stages, each before its successors; of stages of equal depth the lower number first.
std::vector<std::size_t> topological_stages(std::span<const int> depths);

/// Edges grouped by their source or by their target: `edges` holds indices into the graph's edges,
/// those of stage s from first[s] up to first[s + 1], ascending.
struct EdgeGroups {
  std::vector<std::size_t> first;
  std::vector<std::size_t> edges;
  std::span<const std::size_t> of(std::size_t stage) const {
    return std::span(edges).subspan(first[stage], first[stage + 1] - first[stage]);
  }
};
EdgeGroups edges_by_source(const StageGraph& graph);
EdgeGroups edges_by_target(const StageGraph& graph);

}  // namespace braid
