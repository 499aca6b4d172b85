#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "braid/plan/gradient_placeholders.h"
#include "braid/planners/job/job.h"

namespace braid {

/// A job's chain of layers as the planner sees it, prepared once.
struct ChainJob {
  std::shared_ptr<const WeightShapes> weight_shapes;  ///< Null: the trainer keeps no placeholders.
  bool dealt_evenly = false;  ///< Chunks have as many layers, as the trainer deals them out.
  const Job* job = nullptr;
  const System* system = nullptr;
  std::shared_ptr<const LayerOptions> layers;
  std::vector<std::int32_t> kind_of_layer;
  std::vector<ProfileEdge> edges;  ///< Between layers, bytes per sample.
  /// Forward bytes per sample from each layer to the next, when there are no other edges; else
  /// empty.
  std::vector<double> hop_bytes;
  std::vector<SharedParameter> shared;  ///< Parameters of several layers.
  /// Some layer hands nothing to the next: stages need not follow one another.
  bool branched = false;
  /// Least forward bytes per sample from any layer to the next; 0 when some hand over nothing.
  double least_hop_bytes = 0;
  bool heavy_end = false;  ///< Trainers deal out its layers so (layers_of_chunks).
};
ChainJob chain_job(const Job& job, const System& system);

}  // namespace braid
