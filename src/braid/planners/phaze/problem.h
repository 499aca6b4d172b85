#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/document.h"

namespace braid {

/// One layer run with one tensor-parallel width, for one micro-batch.
struct PhazeLayer {
  double forward_s = 0;
  double backward_s = 0;
  double weight_bytes = 0;
  double activation_bytes = 0;  ///< Outputs of all its operators.
  bool tensor_parallel = false;
  /// Weights, gradients and optimizer state, where a profile states them; negative: by the rule of
  /// PhazeProblem::held_bytes.
  double fixed_bytes = -1;
};

/// The layers at one tensor-parallel width.
struct PhazeWidth {
  std::int32_t tp = 1;
  std::vector<PhazeLayer> layers;
  std::vector<double> edge_bytes;  ///< By edge, per micro-batch.
};

/// The plan of an expert that Phaze's inputs carry for comparison.
struct PhazeExpert {
  std::int64_t pp = 1, tp = 1, dp = 1;
  std::int64_t transformer_layers = 0;
};

/// What Phaze's device placement plans (Adnan et al. 2024, §5): a graph of layers on equal devices
/// in a flat network.
struct PhazeProblem {
  std::int64_t devices = 1;
  double memory_bytes = 0;  ///< Of one device.
  double bytes_per_s = 0;   ///< Between any two devices.
  std::int64_t micro_batches = 1;
  bool recompute = false;  ///< Stages keep their inputs only and repeat their forward pass.
  double optimizer_bytes_per_weight_byte = 0;
  std::vector<std::string> names;                            ///< By layer, in topological order.
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  ///< Distinct, from lower to higher.
  std::vector<PhazeWidth> widths;                            ///< By rising tp.
  std::optional<PhazeExpert> expert;

  /// What a layer holds however many micro-batches wait, but for activations: 2·weights +
  /// optimizer (§5.1), unless it is stated.
  double held_bytes(const PhazeLayer& layer) const {
    return layer.fixed_bytes >= 0 ? layer.fixed_bytes
                                  : (2 + optimizer_bytes_per_weight_byte) * layer.weight_bytes;
  }
};

/// How the program's input files are to be understood.
struct PhazeReading {
  /// Seconds that the unit of the latencies stands for. The program's estimator writes
  /// milliseconds, which the program then adds to transfer times in seconds: 1 reads what it
  /// reads, 1e-3 what was meant.
  double latency_unit_s = 1e-3;
  /// Of several tensors between the same two layers the program keeps the last one's size; their
  /// sum is right.
  bool last_tensor_only = false;
};

/// Is this an input of that program, with the layers listed for each tensor-parallel width?
bool is_phaze_input(const Value& root);

/// Reads the input of Phaze's device_placement program. Throws Error for missing or senseless
/// values, unknown layers in edges, widths that disagree about the graph, and cycles.
PhazeProblem read_phaze(const Value& root, const PhazeReading& reading);

}  // namespace braid
