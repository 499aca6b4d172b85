#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/machine/measure_links.h"
#include "braid/machine/measure_operators.h"
#include "braid/run/trained_times.h"

namespace braid {

/// This machine as `braid run` uses it.
struct TrainedMachine {
  std::vector<MeasuredOperator> operators;  ///< Forward and back, by libtorch.
  /// By Gloo: what a process sends, or of sums what it sends in a ring, and how long that takes.
  std::vector<MessageTime> messages;
  std::string blas;  ///< What computed the GEMMs; empty where that is not known.
};

/// Measures the operators as layers that libtorch trains, and Gloo's messages and all-reduces, by
/// processes of braid-run. Layers have their turns as a run's have, over more memory than
/// `cache_bytes`. Throws Error where braid was built without, and when a process fails.
TrainedMachine measure_trained(std::vector<SampleOperator> operators, const DeviceSplit& split,
                               std::int64_t samples, double cache_bytes);

/// A layer's graph, and how many times its samples pass through it at once.
struct TrainedLayer {
  Graph graph;
  std::int64_t batch = 1;
};

/// Passes of such layers alone, by all devices at once. Throws Error as above.
std::vector<TrainedTime> measure_layers(const std::vector<TrainedLayer>& layers,
                                        const DeviceSplit& split, std::int64_t samples,
                                        double cache_bytes);

}  // namespace braid
