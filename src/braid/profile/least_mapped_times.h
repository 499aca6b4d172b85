#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "braid/profile/layer_kernels.h"
#include "braid/profile/mapped_layer.h"

namespace braid {

/// Times that the passes of a layer take at least on a dataflow chip, however its kernels are
/// mapped: what MappedLayers says takes no less, pass by pass. Found at once, from the kernels'
/// arithmetic at the chip's rate and what they read and write whatever is mapped with them
/// (work_bound_s()). Splits are the graph's.
class LeastMappedTimes {
 public:
  /// Keeps a reference to `graph`. Throws Error as mapped_times().
  LeastMappedTimes(const Graph& graph, const Precision& precision, const Chip& chip);

  /// Cost: linear in the layer where it is asked for the first time.
  const MappedTimes& times(LayerId layer, std::span<const OperatorWork> works,
                           const Execution& how);

 private:
  using Key = std::tuple<LayerId, int, int, bool, int, int, bool>;

  MappedTimes found(LayerId layer, std::span<const OperatorWork> works, const Execution& how) const;
  double bound_s(const Graph& rank, GraphPasses passes, bool backward) const;

  const Graph& graph_;
  LayerKernels kernels_;
  std::vector<std::vector<TensorId>> leaving_;
  std::map<Key, MappedTimes> times_;
};

}  // namespace braid
