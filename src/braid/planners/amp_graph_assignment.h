#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace braid {

/// Layers of an acyclic graph, numbered topologically, to be split over a pipeline: AMP's model
/// (equation 5) beyond chains. Data goes from stage to stage: each output that is still needed is
/// handed over once at every cut on its way.
struct AssignmentGraph {
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  ///< From lower to higher numbers.
  std::vector<double> output_bytes;                          ///< By layer, of a micro-batch.
  std::vector<std::vector<double>> layer_s;  ///< [stage][layer], forward and backward.
  std::vector<double> s_per_byte;            ///< From stage i to i + 1.
  /// [stage][layer], what the layer holds there with all micro-batches in flight, and [stage], what
  /// there is. Both empty: no limit.
  std::vector<std::vector<double>> layer_bytes;
  std::vector<double> available_bytes;
  std::int64_t micro_batches = 1;
};

struct GraphAssignment {
  std::vector<std::vector<std::int32_t>> stages;  ///< Layers, ascending.
  double pipeline_s = 0;
};

/// (m - 1) · max stage time + sum of stage times + sum of handover times of these stages.
double amp_pipeline_s(const AssignmentGraph& graph,
                      const std::vector<std::vector<std::int32_t>>& stages);

/// The split into non-empty stages within memory, each run after all that it needs, for which
/// amp_pipeline_s is least: exact. nullopt when there are fewer layers than stages or none fits.
/// Cost: O(stages · pairs of cuts) for each bottleneck tried. Throws Error when the graph can be
/// cut in more than `most_cuts` ways.
std::optional<GraphAssignment> assign_graph(const AssignmentGraph& graph,
                                            std::size_t most_cuts = 20'000);

}  // namespace braid
