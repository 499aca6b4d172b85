#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/planner.h"

namespace braid {

/// A job's chain of layers as the planner sees it, prepared once.
struct ChainJob {
  const Job* job = nullptr;
  const System* system = nullptr;
  std::vector<std::int32_t> kind_of_layer;
  std::vector<ProfileEdge> edges;  ///< Between layers, bytes per sample.
  /// Forward bytes per sample from each layer to the next, when there are no other edges; else
  /// empty.
  std::vector<double> hop_bytes;
  /// Forward bytes per sample across the narrowest cut between layers.
  double least_cut_bytes = 0;
};
ChainJob chain_job(const Job& job, const System& system);

}  // namespace braid
