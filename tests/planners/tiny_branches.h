#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/graph/repeated_layers.h"

#include "planners/tiny_job.h"

namespace braid::test {

/// Small feed-forward layers that form any graph: each reads the outputs of one or two of those
/// before it, or the model's input. What no layer reads is an output of the model.
inline Graph tiny_branched_graph(std::mt19937_64& random, int layers) {
  Graph graph;
  graph.name = "tiny";
  graph.seq_len = 8;
  const std::int64_t tokens = 8;
  const std::int64_t width = 64 * pick(random, 1, 4);
  const auto tensor = [&](std::string name, std::int64_t rows, std::int64_t columns,
                          OperatorId producer) {
    graph.tensors.push_back({std::move(name), {rows, columns}, Dtype::bf16, false, producer});
    return static_cast<TensorId>(graph.tensors.size() - 1);
  };
  const auto parameter = [&](std::string name, std::int64_t rows, std::int64_t columns) {
    const TensorId id = tensor(std::move(name), rows, columns, -1);
    graph.tensors[static_cast<std::size_t>(id)].is_parameter = true;
    return id;
  };
  std::vector<TensorId> values = {tensor("input", tokens, width, -1)};
  std::vector<TensorId> unread;
  graph.inputs = values;
  std::int64_t inner = 64 * pick(random, 1, 16);
  for (int l = 0; l < layers; ++l) {
    if (pick(random, 0, 2) == 0) inner = 64 * pick(random, 1, 16);
    const std::string name = "layer" + std::to_string(l);
    const auto first = static_cast<OperatorId>(graph.operators.size());
    const auto next = [&] { return static_cast<OperatorId>(graph.operators.size()); };
    const auto read = [&] {
      const TensorId value = values[static_cast<std::size_t>(pick(random, 0, l))];
      unread.erase(std::remove(unread.begin(), unread.end(), value), unread.end());
      return value;
    };
    TensorId input = read();
    if (const TensorId other = read(); other != input) {
      const TensorId sum = tensor(name + ".sum", tokens, width, next());
      graph.operators.push_back({name + ".add",
                                 Elementwise{tokens * width, 1, {}},
                                 {input, other},
                                 {sum},
                                 Split::sequence,
                                 l});
      input = sum;
    }
    const TensorId up = parameter(name + ".up", width, inner);
    const TensorId hidden = tensor(name + ".hidden", tokens, inner, next());
    graph.operators.push_back({name + ".matmul_up",
                               MatMul{1, tokens, inner, width, true, false},
                               {input, up},
                               {hidden},
                               Split::column,
                               l});
    const TensorId down = parameter(name + ".down", inner, width);
    const TensorId output = tensor(name + ".output", tokens, width, next());
    graph.operators.push_back({name + ".matmul_down",
                               MatMul{1, tokens, width, inner, true, false},
                               {hidden, down},
                               {output},
                               Split::row,
                               l});
    graph.layers.push_back({name, first, next(), -1});
    values.push_back(output);
    unread.push_back(output);
  }
  graph.outputs = unread;
  find_repeated_layers(graph);
  return graph;
}

}  // namespace braid::test
