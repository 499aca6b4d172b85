#include "braid/chip/systolic/operator_latency.h"

#include <algorithm>
#include <cmath>

#include "braid/base/index.h"
#include "braid/chip/systolic/nest_terms.h"
#include "braid/chip/systolic/vector_cycles.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

/// An operator's work with what an element costs a lane.
struct TimedWork {
  AcceleratorWork work;
  double lane_operations = 0;  ///< Cycles of all elements on one lane.
};

double lane_cycles(const Operator& op, const VectorWork& work, LaneCosts costs) {
  if (costs == LaneCosts::published) {
    if (const std::optional<double> cycles = published_element_cycles(op)) {
      return *cycles * work.elements;
    }
  }
  return work.operations;
}

TimedWork timed_work(const Graph& graph, const Operator& op, const AcceleratorCores& cores) {
  TimedWork timed;
  timed.work = accelerator_work(
      graph, op,
      {.word_bytes = cores.word_bytes, .kept_words = cores.tensor.buffers.global_words / 2});
  timed.lane_operations = lane_cycles(op, timed.work.vector, cores.lane_costs);
  return timed;
}

/// What another mapper says that a nest takes on one core or on all, if it says anything.
std::optional<double> stated_cycles(const LoopNest& nest, const AcceleratorCores& cores, bool all) {
  if (cores.stated.empty() || nest.window.used) return std::nullopt;
  const StatedLatency* stated = find_latency(cores.stated, {nest.batch, nest.m, nest.n, nest.k});
  if (stated == nullptr) return std::nullopt;
  return all ? stated->all_cores : stated->one_core;
}

/// On so many tensor and vector cores.
OperatorCost cost_on(const TimedWork& timed, const AcceleratorCores& cores, bool all,
                     NestMemo& memo) {
  SystolicMachine tensor = cores.tensor;
  if (!all) tensor.cores = 1;
  const BufferLevels& buffers = tensor.buffers;
  OperatorCost cost;
  double tensor_bound = 0;
  double waited_words = timed.work.vector.words;  // Of HBM, as far as time is ours to count.
  for (const NestRuns& runs : timed.work.nests) {
    if (!(runs.times > 0)) continue;
    MappedNest mapped = memo.map(runs.nest, tensor);
    if (const auto stated = stated_cycles(runs.nest, cores, all)) {
      mapped.cost.cycles = mapped.bound_cycles = *stated;
    } else {
      waited_words += runs.times * mapped.cost.hbm_words;
    }
    cost.tensor_cycles += runs.times * mapped.cost.cycles;
    tensor_bound += runs.times * mapped.bound_cycles;
    cost.macs += runs.times * nest_macs(runs.nest);
    cost.l2_words += runs.times * (mapped.cost.l2_words + mapped.cost.global_words);
    cost.global_words += runs.times * (mapped.cost.global_words + mapped.cost.hbm_words);
    cost.hbm_words += runs.times * mapped.cost.hbm_words;
  }
  const VectorWork& vector = timed.work.vector;
  const double lanes =
      static_cast<double>(cores.lanes) * static_cast<double>(all ? cores.vector_cores : 1);
  const double computed = vector.elements > 0 ? std::ceil(vector.elements / lanes) *
                                                    timed.lane_operations / vector.elements
                                              : 0;
  cost.vector_operations = timed.lane_operations;
  cost.vector_cycles = std::max({computed, cycles_at(vector.words, buffers.global_words_per_cycle),
                                 cycles_at(vector.words, buffers.hbm_words_per_cycle)});
  cost.hbm_words += vector.words;
  cost.global_words += 2 * vector.words;
  cost.vector_l2_words = 2 * (vector.words + (timed.work.fused ? vector.elements : 0));
  if (timed.work.fused) {
    const double moved = cycles_at(waited_words, buffers.hbm_words_per_cycle);
    cost.cycles = std::max({cost.tensor_cycles, cost.vector_cycles, moved});
    cost.bound_cycles = std::max(tensor_bound, cost.vector_cycles);
  } else {
    cost.cycles = cost.tensor_cycles + cost.vector_cycles;
    cost.bound_cycles = tensor_bound + cost.vector_cycles;
  }
  return cost;
}

OperatorLatencies latencies_of(const TimedWork& timed, const AcceleratorCores& cores,
                               NestMemo& memo) {
  OperatorLatencies latencies;
  const bool tensor = !timed.work.nests.empty();
  const bool vector = timed.lane_operations > 0 || timed.work.vector.words > 0;
  latencies.use = tensor && vector ? CoreKind::fused
                  : tensor         ? CoreKind::tensor
                  : vector         ? CoreKind::vector
                                   : CoreKind::none;
  latencies.one = cost_on(timed, cores, false, memo);
  latencies.all = cost_on(timed, cores, true, memo);
  // All cores can leave all but one idle.
  if (latencies.one.cycles < latencies.all.cycles) latencies.all = latencies.one;
  return latencies;
}

}  // namespace

OperatorCost& OperatorCost::operator+=(const OperatorCost& next) {
  cycles += next.cycles;
  tensor_cycles += next.tensor_cycles;
  vector_cycles += next.vector_cycles;
  bound_cycles += next.bound_cycles;
  macs += next.macs;
  vector_operations += next.vector_operations;
  l2_words += next.l2_words;
  vector_l2_words += next.vector_l2_words;
  global_words += next.global_words;
  hbm_words += next.hbm_words;
  return *this;
}

OperatorLatencies operator_latencies(const Graph& graph, const Operator& op,
                                     const AcceleratorCores& cores, NestMemo& memo) {
  return latencies_of(timed_work(graph, op, cores), cores, memo);
}

OperatorLatencies fused_latencies(const Graph& graph, const Operator& head, const Operator& tail,
                                  const AcceleratorCores& cores, NestMemo& memo) {
  TimedWork pair = timed_work(graph, head, cores);
  const TimedWork after = timed_work(graph, tail, cores);
  if (!pair.work.nests.empty()) {
    LoopNest& last = pair.work.nests.back().nest;
    last = with_on_chip(last, NestOperand::output);
  }
  double between = 0;
  for (const TensorId id : head.outputs) {
    if (std::find(tail.inputs.begin(), tail.inputs.end(), id) != tail.inputs.end()) {
      between += bytes_of(graph.tensors[at(id)]) / cores.word_bytes;
    }
  }
  VectorWork& vector = pair.work.vector;
  vector.words += std::max(0.0, after.work.vector.words - between);
  vector.operations += after.work.vector.operations;
  vector.elements = std::max(vector.elements, after.work.vector.elements);
  pair.lane_operations += after.lane_operations;
  pair.work.fused = true;
  return latencies_of(pair, cores, memo);
}

}  // namespace braid
