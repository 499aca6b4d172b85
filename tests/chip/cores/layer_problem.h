#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/graph/graph.h"
#include "braid/graph/op_work.h"

namespace braid {

/// Made-up figures of cores that give operators plausible times: squares of 128 x 128 multipliers
/// and 128 lanes at 1.05 GHz, behind one memory.
struct CoreFigures {
  CoreCounts cores{2, 2};
  double tensor_flops_per_s = 2 * 128 * 128 * 1.05e9;
  double vector_flops_per_s = 128 * 1.05e9;
  double bytes_per_s = 1.2e12;
  double spread = 0.9;  ///< What all cores together reach of the sum of their rates.
  double overhead_s = 1e-7;
};

inline CoreOperator timed_operator(const Graph& graph, const Operator& op,
                                   const CoreFigures& figures) {
  const OpWork work = forward_work(graph, op);
  const auto* movement = std::get_if<DataMovement>(&op.kind);
  if (movement != nullptr && movement->view) return {};
  const bool tensor = work.matmul_flops > 0;
  const bool vector = !tensor || work.vector_flops > 0.01 * work.matmul_flops;
  const auto time_s = [&](double share, double tensors, double vectors) {
    return figures.overhead_s +
           std::max(
               {work.matmul_flops / (figures.tensor_flops_per_s * tensors * share),
                work.vector_flops / (figures.vector_flops_per_s * vectors * share),
                (work.input_bytes + work.weight_bytes + work.output_bytes) / figures.bytes_per_s});
  };
  return {tensor ? (vector ? CoreKind::fused : CoreKind::tensor) : CoreKind::vector,
          time_s(1, 1, 1),
          time_s(figures.spread, static_cast<double>(figures.cores.tensor),
                 static_cast<double>(figures.cores.vector))};
}

/// The operators of some layers of a training graph. What comes from outside is there, but for the
/// gradients of these layers' outputs, which come after all of their forward passes.
inline CoreProblem layer_problem(const Graph& training, const std::set<std::string>& layers,
                                 const CoreFigures& figures) {
  CoreProblem problem;
  problem.cores = figures.cores;
  std::map<OperatorId, std::int32_t> place;
  std::vector<std::int32_t> forward;
  for (std::size_t i = 0; i < training.operators.size(); ++i) {
    const Operator& op = training.operators[i];
    const std::string& layer = training.layers[static_cast<std::size_t>(op.layer)].name;
    const bool step = std::holds_alternative<OptimizerStep>(op.kind) &&
                      std::any_of(layers.begin(), layers.end(), [&](const std::string& name) {
                        return op.name.rfind(name + ".", 0) == 0;
                      });
    const bool backward = layers.count(layer.substr(0, layer.find(" backward"))) > 0;
    if (!step && !backward) continue;
    const auto at = static_cast<std::int32_t>(problem.operators.size());
    place[static_cast<OperatorId>(i)] = at;
    problem.operators.push_back(timed_operator(training, op, figures));
    const bool is_forward = layers.count(layer) > 0;
    for (const TensorId id : op.inputs) {
      const Tensor& tensor = training.tensors[static_cast<std::size_t>(id)];
      const auto from = place.find(tensor.producer);
      if (from != place.end()) {
        problem.edges.emplace_back(from->second, at);
      } else if (!is_forward && !tensor.is_parameter) {
        for (const std::int32_t other : forward) problem.edges.emplace_back(other, at);
      }
    }
    if (is_forward) forward.push_back(at);
  }
  return problem;
}

/// The problem of all layers of a training graph without gradients of weights and what follows from
/// them.
inline CoreProblem without_weight_gradients(const Graph& training, const CoreProblem& all) {
  CoreProblem problem = all;
  problem.operators.clear();
  problem.edges.clear();
  std::vector<std::int32_t> place(all.operators.size(), -1);
  for (std::size_t i = 0; i < all.operators.size(); ++i) {
    const Operator& op = training.operators[i];
    if (op.pass == Pass::weight_gradient || std::holds_alternative<OptimizerStep>(op.kind))
      continue;
    place[i] = static_cast<std::int32_t>(problem.operators.size());
    problem.operators.push_back(all.operators[i]);
  }
  for (const auto& [from, to] : all.edges) {
    const std::int32_t a = place[static_cast<std::size_t>(from)];
    const std::int32_t b = place[static_cast<std::size_t>(to)];
    if (a >= 0 && b >= 0) problem.edges.emplace_back(a, b);
  }
  return problem;
}

}  // namespace braid
