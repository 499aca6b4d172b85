#pragma once

#include <random>
#include <string>

#include "braid/graph/graph.h"
#include "braid/graph/repeated_layers.h"
#include "braid/system/system.h"

#include "base/pick.h"

namespace braid::test {

/// A chain of small feed-forward layers, [tokens × width] between them, some repeated.
inline Graph tiny_graph(std::mt19937_64& random, int layers) {
  Graph graph;
  graph.name = "tiny";
  graph.seq_len = 8;
  const std::int64_t tokens = 8;
  const std::int64_t width = 64 * pick(random, 1, 4);
  const auto tensor = [&](std::string name, std::vector<std::int64_t> dims, bool parameter,
                          OperatorId producer) {
    graph.tensors.push_back({std::move(name), std::move(dims), Dtype::bf16, parameter, producer});
    return static_cast<TensorId>(graph.tensors.size() - 1);
  };
  TensorId input = tensor("input", {tokens, width}, false, -1);
  graph.inputs = {input};
  std::int64_t inner = 64 * pick(random, 1, 16);
  for (int l = 0; l < layers; ++l) {
    if (pick(random, 0, 2) == 0) inner = 64 * pick(random, 1, 16);
    const std::string name = "layer" + std::to_string(l);
    const auto first = static_cast<OperatorId>(graph.operators.size());
    const TensorId up = tensor(name + ".up", {width, inner}, true, -1);
    const TensorId hidden = tensor(name + ".hidden", {tokens, inner}, false, first);
    graph.operators.push_back({name + ".matmul_up",
                               MatMul{1, tokens, inner, width, true, false},
                               {input, up},
                               {hidden},
                               Split::column,
                               l});
    const TensorId active = tensor(name + ".active", {tokens, inner}, false, first + 1);
    graph.operators.push_back({name + ".gelu",
                               Elementwise{tokens * inner, 8, {}},
                               {hidden},
                               {active},
                               Split::features,
                               l});
    const TensorId down = tensor(name + ".down", {inner, width}, true, -1);
    const TensorId output = tensor(name + ".output", {tokens, width}, false, first + 2);
    graph.operators.push_back({name + ".matmul_down",
                               MatMul{1, tokens, width, inner, true, false},
                               {active, down},
                               {output},
                               Split::row,
                               l});
    graph.layers.push_back({name, first, first + 3, -1});
    input = output;
  }
  graph.outputs = {input};
  find_repeated_layers(graph);
  return graph;
}

/// Makes a layer of a tiny graph read the first parameter of another in place of its own, as tied
/// embeddings do.
inline void tie_layers(Graph& graph, std::size_t from, std::size_t to) {
  const auto first_operator = [&graph](std::size_t layer) -> Operator& {
    return graph.operators[static_cast<std::size_t>(graph.layers[layer].first)];
  };
  TensorId& own = first_operator(to).inputs.back();
  const TensorId other = first_operator(from).inputs.back();
  if (own != other) graph.tensors[static_cast<std::size_t>(own)].is_parameter = false;
  own = other;
  find_repeated_layers(graph);
}

/// Makes every rank of a tensor-parallel group do all of the model's work.
inline void leave_unsharded(Graph& graph) {
  for (Operator& op : graph.operators) op.split = Split::replicated;
  find_repeated_layers(graph);
}

/// A layer reads only what another than the one before it puts out, so that the model branches.
inline void add_branches(std::mt19937_64& random, Graph& graph) {
  for (std::size_t l = 2; l < graph.layers.size(); ++l) {
    if (pick(random, 0, 2) == 0) continue;
    const auto from = static_cast<std::size_t>(pick(random, 0, static_cast<int>(l) - 2));
    const auto last = static_cast<std::size_t>(graph.layers[from].last);
    graph.operators[static_cast<std::size_t>(graph.layers[l].first)].inputs.front() =
        graph.operators[last - 1].outputs.front();
  }
  find_repeated_layers(graph);
}

/// A small cluster whose devices have `memory_bytes`, slow enough for communication to matter.
inline System tiny_system(std::mt19937_64& random, int devices, double memory_bytes) {
  Chip chip;
  chip.name = "tiny";
  chip.peaks = {{Dtype::bf16, 1e10 * pick(random, 1, 20)}};
  chip.vector_flops_per_s = 1e9;
  chip.compute_units = pick(random, 1, 8);
  chip.memory = {"RAM", memory_bytes, 1e8 * pick(random, 1, 50)};
  chip.efficiency.kernel_launch_s = 1e-7 * pick(random, 0, 10);
  chip.efficiency.memory_half_bytes = 0;
  if (pick(random, 0, 2) == 0) chip.host = Memory{"host", 1e12, 1e7 * pick(random, 1, 30)};
  System system;
  system.name = "tiny";
  DeviceGroup group;
  group.chip = chip;
  group.devices_per_node = pick(random, 1, 2) == 1 ? devices : std::min(devices, 2);
  group.nodes = (devices + group.devices_per_node - 1) / group.devices_per_node;
  group.intra_node.name = "link";
  group.intra_node.topology = Topology::switched;
  group.intra_node.size = group.devices_per_node;
  group.intra_node.bytes_per_s = 1e6 * pick(random, 1, 500);
  group.intra_node.unit_bytes_per_s = group.intra_node.bytes_per_s;
  group.intra_node.latency_s = 1e-6 * pick(random, 0, 5);
  system.groups = {group};
  if (group.nodes > 1) {
    NetworkLevel level;
    level.name = "network";
    level.topology = Topology::switched;
    level.size = group.nodes;
    level.bytes_per_s = 1e6 * pick(random, 1, 100);
    level.unit_bytes_per_s = level.bytes_per_s * static_cast<double>(group.devices_per_node);
    level.latency_s = 1e-6 * pick(random, 0, 20);
    system.levels = {level};
  }
  system.device_count = devices;
  return system;
}

}  // namespace braid::test
