#include "braid/profile/layer_kernels.h"

#include <variant>

#include "braid/base/dtype.h"
#include "braid/base/index.h"
#include "braid/chip/chip_share.h"
#include "braid/profile/rank_graph.h"

namespace braid {
namespace {

/// Whether operators of the layer do anything.
bool has_kernels(const Graph& rank) {
  const Layer& layer = rank.layers[at(kRankLayer)];
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = rank.operators[at(id)];
    const auto* movement = std::get_if<DataMovement>(&op.kind);
    if (movement == nullptr || !movement->view || op.inputs.empty()) return true;
  }
  return false;
}

}  // namespace

LayerKernels::LayerKernels(const Precision& precision, const Chip& on)
    : chip(dataflow_chip(on, precision.matmul)),
      word_bytes(bytes_per_element(precision.activation)) {
  chip.dram_bytes_per_s *= on.efficiency.memory_peak_fraction;
  rules.compute_fraction = on.efficiency.matmul_peak_fraction;
}

std::optional<ChipWork> LayerKernels::work(const Graph& rank, GraphPasses passes) const {
  if (!has_kernels(rank)) return std::nullopt;
  return whole_work(kernels_of(rank, kRankLayer, kRankLayer + 1, word_bytes, passes), 1);
}

}  // namespace braid
