#include "braid/profile/core_layer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

class CoreLayerBuilder {
 public:
  CoreLayerBuilder(const Graph& graph, const Layer& layer, const AcceleratorCores& cores,
                   NestMemo& memo)
      : graph_(graph), layer_(layer), cores_(cores), memo_(memo) {
    count_readers();
    latencies_.reserve(at(layer.last - layer.first));
    for (OperatorId id = layer.first; id < layer.last; ++id) {
      latencies_.push_back(operator_latencies(graph, graph.operators[at(id)], cores, memo));
    }
    task_of_.assign(latencies_.size(), -1);
  }

  CoreLayer build() {
    CoreLayer result;
    for (OperatorId id = layer_.first; id < layer_.last; ++id) {
      if (task_of(id) >= 0) continue;
      task_of(id) = static_cast<std::int32_t>(result.operators.size());
      result.operators.push_back({id});
      OperatorLatencies latencies = latencies_of(id);
      if (const OperatorId tail = tail_of(id); tail >= 0) {
        task_of(tail) = task_of(id);
        result.operators.back().push_back(tail);
        latencies = pair_latencies(id, tail);
      }
      result.problem.operators.push_back(core_operator(id, latencies));
      result.latencies.push_back(latencies);
    }
    add_edges(result.problem);
    result.problem.cores = {cores_.tensor.cores, cores_.vector_cores};
    return result;
  }

 private:
  std::int32_t& task_of(OperatorId id) { return task_of_[at(id - layer_.first)]; }
  const OperatorLatencies& latencies_of(OperatorId id) const {
    return latencies_[at(id - layer_.first)];
  }
  bool is_inside(OperatorId id) const { return id >= layer_.first && id < layer_.last; }

  void count_readers() {
    readers_.assign(graph_.tensors.size(), 0);
    reader_.assign(graph_.tensors.size(), -1);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      for (const TensorId tensor : graph_.operators[i].inputs) {
        ++readers_[at(tensor)];
        reader_[at(tensor)] = static_cast<OperatorId>(i);
      }
    }
    for (const TensorId tensor : graph_.outputs) ++readers_[at(tensor)];
  }

  /// The vector operator of the layer that alone reads what `head`'s arrays make; -1: none.
  OperatorId tail_of(OperatorId head) {
    const Operator& op = graph_.operators[at(head)];
    const bool matrix =
        std::holds_alternative<MatMul>(op.kind) || std::holds_alternative<Convolution>(op.kind);
    if (!matrix || op.outputs.size() != 1) return -1;
    const std::size_t output = at(op.outputs.front());
    const OperatorId tail = reader_[output];
    if (readers_[output] != 1 || !is_inside(tail) || task_of(tail) >= 0) return -1;
    return latencies_of(tail).use == CoreKind::vector ? tail : -1;
  }

  /// Fused, or one after the other where that takes less.
  OperatorLatencies pair_latencies(OperatorId head, OperatorId tail) {
    OperatorLatencies pair = fused_latencies(graph_, graph_.operators[at(head)],
                                             graph_.operators[at(tail)], cores_, memo_);
    const OperatorLatencies &first = latencies_of(head), &second = latencies_of(tail);
    const auto apart = [](const OperatorCost& a, const OperatorCost& b) {
      OperatorCost sum = a;
      sum += b;
      return sum;
    };
    if (first.one.cycles + second.one.cycles < pair.one.cycles) {
      pair.one = apart(first.one, second.one);
    }
    if (first.all.cycles + second.all.cycles < pair.all.cycles) {
      pair.all = apart(first.all, second.all);
    }
    return pair;
  }

  CoreOperator core_operator(OperatorId id, const OperatorLatencies& latencies) const {
    if (!std::isfinite(latencies.all.cycles)) {
      throw Error(Where{"", 0, graph_.operators[at(id)].name},
                  "no mapping of this operator fits the accelerator's buffers",
                  "give the cores a larger L2, or the chip a larger global buffer");
    }
    return {latencies.use, latencies.one.cycles / cores_.cycles_per_s,
            latencies.all.cycles / cores_.cycles_per_s};
  }

  void add_edges(CoreProblem& problem) {
    for (OperatorId id = layer_.first; id < layer_.last; ++id) {
      for (const TensorId tensor : graph_.operators[at(id)].inputs) {
        const OperatorId writer = graph_.tensors[at(tensor)].producer;
        if (!is_inside(writer) || task_of(writer) == task_of(id)) continue;
        problem.edges.emplace_back(task_of(writer), task_of(id));
      }
    }
    std::sort(problem.edges.begin(), problem.edges.end());
    problem.edges.erase(std::unique(problem.edges.begin(), problem.edges.end()),
                        problem.edges.end());
  }

  const Graph& graph_;
  const Layer& layer_;
  const AcceleratorCores& cores_;
  NestMemo& memo_;
  std::vector<std::int32_t> readers_;  ///< [tensor]; an output of the graph counts as one more.
  std::vector<OperatorId> reader_;     ///< [tensor]: the last one.
  std::vector<OperatorLatencies> latencies_;
  std::vector<std::int32_t> task_of_;  ///< [operator of the layer]
};

}  // namespace

AcceleratorCores cores_of(const Chip& chip) {
  assert(chip.accelerator);
  const Accelerator& accelerator = chip.accelerator->chip;
  const double word = word_bytes(accelerator);
  AcceleratorCores cores;
  cores.tensor.cores = accelerator.tensor.count;
  cores.tensor.array.rows = accelerator.tensor.depth;
  cores.tensor.array.columns = accelerator.tensor.width;
  cores.tensor.array.unit_words =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(accelerator.register_bytes / word));
  cores.tensor.array.words_per_cycle = accelerator.rates.l2_words;
  cores.tensor.buffers.l2_words = accelerator.tensor.l2_bytes / word;
  cores.tensor.buffers.l2_per_operand = true;
  cores.tensor.buffers.global_words = accelerator.global_buffer_bytes / word;
  cores.tensor.buffers.global_words_per_cycle = accelerator.rates.global_buffer_words;
  cores.tensor.buffers.hbm_words_per_cycle =
      chip.memory.bytes_per_s / (accelerator.clock_hz * word);
  cores.vector_cores = accelerator.vector.count;
  cores.lanes = accelerator.vector.lanes;
  cores.word_bytes = word;
  cores.cycles_per_s = accelerator.clock_hz;
  cores.stated = chip.accelerator->latencies;
  return cores;
}

CoreLayer core_layer(const Graph& graph, LayerId layer, const AcceleratorCores& cores,
                     NestMemo& memo) {
  return CoreLayerBuilder(graph, graph.layers[at(layer)], cores, memo).build();
}

}  // namespace braid
