#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/machine/measure_operators.h"
#include "braid/profile/profile.h"

namespace braid {

/// How layers are measured.
struct LayerMeasurement {
  DeviceSplit split;  ///< All devices are at work.
  std::int64_t samples = 11;
  double cache_bytes = 0;  ///< The machine's largest cache; 0: not known.
};

/// Puts times measured on this machine in place of a profile's estimates: each kind of layer runs
/// forward and back as `braid run` does it, once for each micro-batch size of its options. The pass
/// back is told apart in the estimates' proportion, and what is computed again takes as much longer
/// or shorter as the pass forward. Returns the layers that keep their estimates, and why: those
/// that are fed no numbers, as embeddings, and those that libtorch's part here does not train.
/// Precondition: options are of whole layers, tp = cp = ep = 1. Throws Error where braid was built
/// without libtorch, and when a process fails.
std::vector<std::string> measure_profile(Profile& profile, const Graph& graph,
                                         const LayerMeasurement& how);

}  // namespace braid
