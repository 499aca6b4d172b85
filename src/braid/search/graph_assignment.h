#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/search/graph_cuts.h"

namespace braid {

/// Layers of an acyclic graph, numbered topologically, to be split over a pipeline: AMP's model
/// (equation 5) beyond chains. Stages stand in a line and data goes from each to the next: a
/// layer's output is handed over once at every cut until no layer behind needs it.
struct AssignmentGraph {
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  ///< From lower to higher numbers.
  std::vector<double> output_bytes;                          ///< By layer, of a micro-batch.
  std::vector<std::vector<double>> layer_s;  ///< [stage][layer], forward and backward.
  std::vector<double> s_per_byte;            ///< From stage i to i + 1.
  std::vector<double> latency_s;  ///< Of any handover from stage i to i + 1; empty: none.
  /// What handing over takes from stage i to i + 1 where it is no such sum; in place of both. Never
  /// less for more bytes, 0 for none.
  std::function<double(std::size_t stage, double bytes)> handover_s;
  /// [stage][layer], what the layer holds there with all micro-batches in flight, and [stage], what
  /// there is. Both empty: no limit.
  std::vector<std::vector<double>> layer_bytes;
  std::vector<double> available_bytes;
  /// [purpose][layer]: of each, a stage also holds what the layer that needs most does. Counts only
  /// where there is a limit.
  std::vector<std::vector<double>> largest_bytes;
  /// By layer, what synchronising its gradients takes; empty: nothing.
  std::vector<double> sync_s;
  std::vector<double> sync_pace;  ///< By stage, times `sync_s`; empty: 1.
  std::int64_t micro_batches = 1;
};

struct GraphAssignment {
  std::vector<std::vector<std::int32_t>> stages;  ///< Layers, ascending.
  double pipeline_s = 0;
  double sync_s = 0;  ///< Of the stage whose gradients take longest.

  double cost_s() const { return pipeline_s + sync_s; }
};

/// To hand so many bytes over from stage `stage` to the next.
double handover_s(const AssignmentGraph& graph, std::size_t stage, double bytes);

/// Bytes of a sample that each of these stages hands on: outputs of its layers and of those before
/// it that some later stage reads; 0 for the last.
std::vector<double> handed_on_bytes(const AssignmentGraph& graph,
                                    const std::vector<std::vector<std::int32_t>>& stages);

/// (m - 1) · max stage time + sum of stage times + sum of handover times of these stages.
double amp_pipeline_s(const AssignmentGraph& graph,
                      const std::vector<std::vector<std::int32_t>>& stages);

/// The split into non-empty stages within memory, each run after all that it needs, for which
/// amp_pipeline_s and the longest synchronisation after it take least: exact. `cuts` are those that
/// stages may end at, usually all that the edges allow. nullopt when no split costs less than
/// `below_s`, as when there are fewer layers than stages or none fits. `crossing_bytes`: by cut,
/// the outputs of layers before it that are needed behind it.
///
/// Cost: for each bottleneck tried, a step for each pair of cuts that make a stage that takes no
/// longer, times the places in the pipeline that it may have. Adds the pairs looked at to `steps`.
std::optional<GraphAssignment> assign_graph(const AssignmentGraph& graph, const GraphCuts& cuts,
                                            std::span<const double> crossing_bytes,
                                            double below_s = kInfinity,
                                            std::int64_t* steps = nullptr);

/// The same with all cuts. Throws Error when there are more than kMostGraphCuts.
std::optional<GraphAssignment> assign_graph(const AssignmentGraph& graph);

}  // namespace braid
