#include "braid/profile/mapped_layer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "braid/base/index.h"
#include "braid/chip/chip_share.h"
#include "braid/chip/graph_kernels.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/rank_graph.h"

namespace braid {
namespace {

/// Whether operators of the layer do anything: views alone are no kernels.
bool has_kernels(const Graph& rank) {
  for (const Operator& op : rank.operators) {
    const auto* movement = std::get_if<DataMovement>(&op.kind);
    if (movement == nullptr || !movement->view || op.inputs.empty()) return true;
  }
  return false;
}

/// Times of the best mapping by pass, and a bound on both.
struct PassTimes {
  double forward_s = 0, backward_s = 0, least_s = 0;
};

class ChipMapper {
 public:
  ChipMapper(const Precision& precision, const Chip& chip)
      : chip_(dataflow_chip(chip, precision.matmul)),
        word_bytes_(bytes_per_element(precision.activation)) {
    chip_.dram_bytes_per_s *= chip.efficiency.memory_peak_fraction;
    rules_.compute_fraction = chip.efficiency.matmul_peak_fraction;
  }

  PassTimes map(const Graph& rank, GraphPasses passes) const {
    PassTimes times;
    if (!has_kernels(rank)) return times;
    const KernelGraph kernels = kernels_of(rank, 0, 1, word_bytes_, passes);
    const ChipWork work = whole_work(kernels, 1);
    MapperBudget budget;
    budget.partitions = kLayerMappingBudget;
    MappingOutcome outcome = map_kernels(work, chip_, rules_, budget);
    if (outcome.mapping.partition_of.empty()) {
      // A layer that DRAM cannot hold has times all the same; plans with it do not fit.
      outcome.mapping = kernel_by_kernel(work);
      outcome.cost = evaluate_mapping(work, chip_, outcome.mapping, rules_);
    }
    std::vector<bool> is_backward(outcome.cost.partitions.size(), false);
    for (std::size_t k = 0; k < work.kernels.size(); ++k) {
      if (work.kernels[k].backward) is_backward[at(outcome.mapping.partition_of[k])] = true;
    }
    for (std::size_t p = 0; p < is_backward.size(); ++p) {
      (is_backward[p] ? times.backward_s : times.forward_s) += outcome.cost.partitions[p].time_s;
    }
    times.least_s = outcome.lower_bound_s;
    return times;
  }

 private:
  DataflowChip chip_;
  MappingRules rules_;
  double word_bytes_;
};

}  // namespace

MappedTimes mapped_times(const Graph& graph, LayerId layer, std::span<const OperatorWork> works,
                         const Execution& how, const Precision& precision, const Chip& chip,
                         std::span<const TensorId> leaving) {
  const ChipMapper mapper(precision, chip);
  const Graph rank = rank_layer(graph, layer, how, leaving);
  const PassTimes both = mapper.map(rank, GraphPasses::gradients);
  MappedTimes times;
  times.forward_s = both.forward_s;
  times.backward_s = both.backward_s;
  times.least_s = both.least_s;
  times.forward_unkept_s = mapper.map(rank, GraphPasses::forward).forward_s;
  std::vector<bool> recomputed;
  recomputed.reserve(works.size());
  std::vector<TensorId> outputs;
  for (std::size_t i = 0; i < works.size(); ++i) {
    recomputed.push_back(works[i].is_recomputed);
    const Operator& op = graph.operators[at(graph.layers[at(layer)].first) + i];
    if (works[i].is_recomputed) {
      outputs.insert(outputs.end(), op.outputs.begin(), op.outputs.end());
    }
  }
  const Graph again = rank_layer(graph, layer, how, outputs, recomputed);
  // Alone they fill the chip less; running the whole pass again is another way.
  times.recomputed_s = std::min(times.forward_s, mapper.map(again, GraphPasses::forward).forward_s);
  return times;
}

MappedLayers::MappedLayers(const Graph& graph, const Precision& precision, const Chip& chip)
    : precision_(precision), chip_(chip) {
  if (chip.execution == ChipExecution::dataflow) leaving_ = leaving_tensors(graph);
}

const MappedTimes& MappedLayers::times(const Graph& graph, LayerId layer,
                                       std::span<const OperatorWork> works, const Execution& how) {
  const Layer& range = graph.layers[at(layer)];
  std::vector<Split> splits;
  splits.reserve(works.size());
  for (OperatorId id = range.first; id < range.last; ++id) {
    splits.push_back(graph.operators[at(id)].split);
  }
  Key key{layer,  how.micro_batch,   how.tp,           how.sequence_parallel, how.cp,
          how.ep, how.whole_experts, std::move(splits)};
  const auto place = times_.find(key);
  if (place != times_.end()) return place->second;
  return times_
      .emplace(std::move(key),
               mapped_times(graph, layer, works, how, precision_, chip_, leaving_[at(layer)]))
      .first->second;
}

}  // namespace braid
