#include "braid/profile/mapped_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/index.h"
#include "braid/chip/cores/schedule_cores.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/graph/training.h"
#include "braid/profile/core_layer.h"
#include "braid/profile/layer_kernels.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/rank_graph.h"

namespace braid {
namespace {

/// All numbers that a mapping's times follow from.
std::vector<double> numbers_of(const ChipWork& work) {
  std::vector<double> numbers{work.resident_bytes, work.live_copies,
                              static_cast<double>(work.kernels.size())};
  for (const ChipKernel& kernel : work.kernels) {
    numbers.insert(
        numbers.end(),
        {kernel.matrix ? 1.0 : 0.0, kernel.backward ? 1.0 : 0.0, static_cast<double>(kernel.rows),
         static_cast<double>(kernel.depth), static_cast<double>(kernel.columns), kernel.flops,
         kernel.weight_bytes, kernel.dram_bytes, kernel.network_s});
  }
  for (const ChipTensor& tensor : work.tensors) {
    numbers.insert(numbers.end(),
                   {static_cast<double>(tensor.from), static_cast<double>(tensor.to), tensor.bytes,
                    tensor.tile_bytes, tensor.buffers, tensor.network_s});
  }
  return numbers;
}

/// Maps kernels onto a dataflow chip.
class KernelPasses {
 public:
  KernelPasses(const Precision& precision, const Chip& chip, MappedWorks* known)
      : kernels_(precision, chip), known_(known) {}

  PassTimes map(const Graph& rank, GraphPasses passes) const {
    const std::optional<ChipWork> work = kernels_.work(rank, passes);
    if (!work) return {};
    if (known_ == nullptr) {
      MappedWorks none;
      return map(*work, none);
    }
    const auto [place, fresh] = known_->times.try_emplace(numbers_of(*work));
    if (fresh) place->second = map(*work, *known_);
    return place->second;
  }

 private:
  std::vector<TileCurve> curves_of(const ChipWork& work, MappedWorks& known) const {
    std::vector<TileCurve> curves;
    curves.reserve(work.kernels.size());
    for (const ChipKernel& kernel : work.kernels) {
      const auto [place, fresh] =
          known.curves.try_emplace({kernel.matrix, kernel.rows, kernel.depth, kernel.columns});
      if (fresh) place->second = tile_curve(kernel, kernels_.chip);
      curves.push_back(place->second);
    }
    return curves;
  }

  PassTimes map(const ChipWork& work, MappedWorks& known) const {
    const std::vector<TileCurve> curves = curves_of(work, known);
    PassTimes times;
    MapperBudget budget;
    budget.partitions = kLayerMappingBudget;
    budget.unfit_partitions = kUnfitMappingBudget;
    MappingOutcome outcome = map_kernels(work, kernels_.chip, kernels_.rules, budget, curves);
    if (outcome.mapping.partition_of.empty()) {
      // A layer that DRAM cannot hold has times all the same; plans with it do not fit.
      outcome.mapping = kernel_by_kernel(work);
      outcome.cost = evaluate_mapping(work, kernels_.chip, outcome.mapping, kernels_.rules, curves);
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

  LayerKernels kernels_;
  MappedWorks* known_;
};

/// All numbers that a schedule's time follows from.
std::vector<double> numbers_of(const CoreProblem& problem) {
  std::vector<double> numbers{static_cast<double>(problem.operators.size())};
  for (const CoreOperator& op : problem.operators) {
    numbers.insert(numbers.end(), {static_cast<double>(op.kind), op.one_core_s, op.all_cores_s});
  }
  for (const auto& [before, after] : problem.edges) {
    numbers.insert(numbers.end(), {static_cast<double>(before), static_cast<double>(after)});
  }
  return numbers;
}

/// Schedules operators on the cores of an accelerator.
class CorePasses {
 public:
  CorePasses(const Chip& chip, MappedWorks& known)
      : cores_(cores_of(chip)),
        takes_bounds_(chip.execution == ChipExecution::core_bounds),
        known_(known) {}

  PassTimes map(const Graph& rank, GraphPasses passes) const {
    PassTimes times;
    if (passes == GraphPasses::forward) {
      times.forward_s = schedule(rank, kRankLayer, times.least_s);
      return times;
    }
    const Graph step = training_graph(rank);
    times.forward_s = schedule(step, kRankLayer, times.least_s);
    times.backward_s = schedule(step, kRankBackwardLayer, times.least_s);
    return times;
  }

 private:
  /// The time of a layer; adds what no schedule stays below to `least_s`.
  double schedule(const Graph& graph, LayerId layer, double& least_s) const {
    const CoreProblem problem = core_layer(graph, layer, cores_, *known_.nests).problem;
    const auto [place, fresh] = known_.times.try_emplace(numbers_of(problem));
    if (fresh) {
      const CoreOutcome outcome = schedule_cores(problem, kLayerScheduleWork);
      place->second = {.forward_s = outcome.schedule.makespan_s, .least_s = outcome.bound_s};
    }
    least_s += place->second.least_s;
    return takes_bounds_ ? place->second.least_s : place->second.forward_s;
  }

  AcceleratorCores cores_;
  bool takes_bounds_;  ///< In place of times of schedules.
  MappedWorks& known_;
};

template <typename Passes>
MappedTimes times_by(const Passes& passes, const Graph& graph, LayerId layer,
                     std::span<const OperatorWork> works, const Execution& how,
                     std::span<const TensorId> leaving) {
  const Graph rank = rank_layer(graph, layer, how, leaving);
  const PassTimes both = passes.map(rank, GraphPasses::gradients);
  MappedTimes times;
  times.forward_s = both.forward_s;
  times.backward_s = both.backward_s;
  times.least_s = both.least_s;
  times.forward_unkept_s = passes.map(rank, GraphPasses::forward).forward_s;
  const Graph again = recomputed_rank_layer(graph, layer, how, works);
  // Alone they fill the chip less; running the whole pass again is another way.
  times.recomputed_s = std::min(times.forward_s, passes.map(again, GraphPasses::forward).forward_s);
  return times;
}

}  // namespace

MappedTimes mapped_times(const Graph& graph, LayerId layer, std::span<const OperatorWork> works,
                         const Execution& how, std::span<const TensorId> leaving,
                         const MappingTarget& target) {
  if (target.chip.execution == ChipExecution::dataflow) {
    const KernelPasses passes(target.precision, target.chip, target.known);
    return times_by(passes, graph, layer, works, how, leaving);
  }
  MappedWorks none;
  const CorePasses passes(target.chip, target.known == nullptr ? none : *target.known);
  return times_by(passes, graph, layer, works, how, leaving);
}

MappedLayers::MappedLayers(const Graph& graph, const Precision& precision, const Chip& chip,
                           std::shared_ptr<NestMemo> nests)
    : precision_(precision), chip_(chip) {
  if (nests) works_.nests = std::move(nests);
  if (maps_layers(chip)) leaving_ = leaving_tensors(graph);
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
      .emplace(std::move(key), mapped_times(graph, layer, works, how, leaving_[at(layer)],
                                            {precision_, chip_, &works_}))
      .first->second;
}

}  // namespace braid
