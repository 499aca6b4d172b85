#include "braid/profile/least_mapped_times.h"

#include <algorithm>
#include <optional>

#include "braid/base/index.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/rank_graph.h"

namespace braid {
namespace {

/// The kernels of one pass, with no tensors: these may stay on chip.
ChipWork of_pass(const ChipWork& work, bool backward) {
  ChipWork pass;
  for (const ChipKernel& kernel : work.kernels) {
    if (kernel.backward == backward) pass.kernels.push_back(kernel);
  }
  return pass;
}

}  // namespace

LeastMappedTimes::LeastMappedTimes(const Graph& graph, const Precision& precision, const Chip& chip)
    : graph_(graph), kernels_(precision, chip), leaving_(leaving_tensors(graph)) {}

const MappedTimes& LeastMappedTimes::times(LayerId layer, std::span<const OperatorWork> works,
                                           const Execution& how) {
  const Key key{layer,  how.micro_batch, how.tp,           how.sequence_parallel,
                how.cp, how.ep,          how.whole_experts};
  const auto [place, fresh] = times_.try_emplace(key);
  if (fresh) place->second = found(layer, works, how);
  return place->second;
}

MappedTimes LeastMappedTimes::found(LayerId layer, std::span<const OperatorWork> works,
                                    const Execution& how) const {
  const Graph rank = rank_layer(graph_, layer, how, leaving_[at(layer)]);
  const Graph again = recomputed_rank_layer(graph_, layer, how, works);
  // Partitions have kernels of one pass alone (MappingRules::separate_passes).
  MappedTimes least;
  least.forward_s = bound_s(rank, GraphPasses::gradients, false);
  least.backward_s = bound_s(rank, GraphPasses::gradients, true);
  least.least_s = least.forward_s + least.backward_s;
  least.forward_unkept_s = bound_s(rank, GraphPasses::forward, false);
  least.recomputed_s = std::min(least.forward_s, bound_s(again, GraphPasses::forward, false));
  return least;
}

double LeastMappedTimes::bound_s(const Graph& rank, GraphPasses passes, bool backward) const {
  const std::optional<ChipWork> work = kernels_.work(rank, passes);
  return work ? work_bound_s(of_pass(*work, backward), kernels_.chip, kernels_.rules) : 0;
}

}  // namespace braid
