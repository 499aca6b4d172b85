#include "braid/plan/network_bound.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/graph/op_work.h"
#include "braid/graph/tensor_size.h"
#include "braid/profile/shard.h"
#include "braid/profile/sharded_options.h"
#include "braid/profile/split_limits.h"

namespace braid {
namespace {

/// One way to cut the system into units.
struct Cut {
  double unit_flops_per_s = 0;  ///< Of the fastest unit.
  double unit_bytes = 0;        ///< Memory of the largest, its hosts' included.
  double bytes_per_s = 0;       ///< What all units together send to each other.
};

double uplink_bytes_per_s(const NetworkLevel& level) {
  return std::max(level.bytes_per_s, level.unit_bytes_per_s);
}

/// Devices first, then nodes, then what each level above the node joins, as long as there are two.
/// A device sends inside its node and, beside that, its part of what the node sends.
std::vector<Cut> cuts_of(const System& system, const Precision& precision) {
  Cut devices, nodes;
  std::int64_t left = system.device_count;
  std::int64_t node_count = 0;
  for (const DeviceGroup& group : system.groups) {
    const double peak = matmul_peak_in(group.chip, precision);
    const double memory = usable_bytes(group.chip) + (group.chip.host ? group.chip.host->bytes : 0);
    const std::int64_t here = std::min(left, group.nodes * group.devices_per_node);
    const std::int64_t units = (here + group.devices_per_node - 1) / group.devices_per_node;
    left -= here;
    node_count += units;
    const auto in_node = static_cast<double>(std::min(here, group.devices_per_node));
    devices.unit_flops_per_s = std::max(devices.unit_flops_per_s, peak);
    nodes.unit_flops_per_s = std::max(nodes.unit_flops_per_s, in_node * peak);
    devices.unit_bytes = std::max(devices.unit_bytes, memory);
    nodes.unit_bytes = std::max(nodes.unit_bytes, in_node * memory);
    if (group.devices_per_node > 1) {
      devices.bytes_per_s += static_cast<double>(here) * uplink_bytes_per_s(group.intra_node);
    }
    if (system.levels.empty()) continue;
    double uplink = uplink_bytes_per_s(system.levels.front());
    if (group.node_bytes_per_s > 0) uplink = std::min(uplink, group.node_bytes_per_s);
    nodes.bytes_per_s += static_cast<double>(units) * uplink;
  }
  devices.bytes_per_s += nodes.bytes_per_s;
  if (!system.bandwidth_matrix.empty()) {
    devices.bytes_per_s =
        std::accumulate(system.bandwidth_matrix.begin(), system.bandwidth_matrix.end(), 0.0);
  }
  std::vector<Cut> cuts;
  if (system.device_count > 1) cuts.push_back(devices);
  if (!system.bandwidth_matrix.empty()) return cuts;
  if (node_count > 1) cuts.push_back(nodes);
  std::int64_t units = node_count;
  double unit_nodes = 1;
  for (std::size_t l = 0; l + 1 < system.levels.size(); ++l) {
    const std::int64_t size = std::max<std::int64_t>(1, system.levels[l].size);
    units = (units + size - 1) / size;
    if (units < 2) break;
    unit_nodes *= static_cast<double>(size);
    cuts.push_back({unit_nodes * nodes.unit_flops_per_s, unit_nodes * nodes.unit_bytes,
                    static_cast<double>(units) * uplink_bytes_per_s(system.levels[l + 1])});
  }
  return cuts;
}

/// A connected part of the layer graph.
struct Part {
  double flops = 0;             ///< Of its dense GEMMs, forward and backward.
  double parameters = 0;        ///< Dense.
  double crossing = kInfinity;  ///< Bytes that a pass over the graph's samples sends, if split.

  void join(const Part& other) {
    flops += other.flops;
    parameters += other.parameters;
    crossing = std::min(crossing, other.crossing);
  }
};

/// What is in the graph that the layers' parts and edges are made of.
class LayerParts {
 public:
  LayerParts(const Graph& graph, const Precision& precision, ShardingSource sharding)
      : graph_(graph),
        width_(bytes_per_element(precision.activation)),
        tensor_parallel_(split_limits(graph).heads > 1),
        finds_(sharding == ShardingSource::automatic),
        times_crossed_(finds_ ? 1 : 2),
        closed_(borders_sharded(graph)),
        counted_(graph.tensors.size(), 0),
        learns_(graph.layers.size(), 0) {
    // Gradients of tables touch only the rows that were looked up.
    for (const Operator& op : graph.operators) {
      if (!std::holds_alternative<Embedding>(op.kind)) continue;
      for (const TensorId id : op.inputs) counted_[static_cast<std::size_t>(id)] = 1;
    }
    for (std::size_t l = 0; l < graph.layers.size(); ++l) add(l);
  }

  std::vector<Part> parts;
  /// Bytes that the tensors between two layers that carry gradients back send across.
  std::map<std::pair<std::size_t, std::size_t>, double> edges;

 private:
  const Tensor& tensor(TensorId id) const { return graph_.tensors[static_cast<std::size_t>(id)]; }

  double bytes(const Tensor& of) const {
    return elements_of(of) * std::min(width_, bytes_per_element(of.dtype));
  }

  void add(std::size_t l) {
    const Layer& layer = graph_.layers[l];
    Part part;
    double reduced = 0;
    double narrowest = kInfinity;  // Bytes, of the activations and gradients that may cross.
    std::vector<TensorId> read;    // Activations, each once.
    for (OperatorId id = layer.first; id < layer.last; ++id) {
      const Operator& op = graph_.operators[static_cast<std::size_t>(id)];
      const bool expert = op.split == Split::expert || std::holds_alternative<MoeExperts>(op.kind);
      bool dense = false;  // Work with dense weights, as much for every token.
      for (const TensorId input : op.inputs) {
        const Tensor& operand = tensor(input);
        if (operand.is_parameter) {
          learns_[l] = 1;
          dense |= !expert;
          char& counted = counted_[static_cast<std::size_t>(input)];
          if (!expert && std::exchange(counted, 1) == 0) part.parameters += elements_of(operand);
        } else if (operand.producer >= 0) {
          read.push_back(input);
        }
      }
      if (dense) part.flops += forward_model_flops(graph_, op) + backward_model_flops(graph_, op);
      reduced = std::max(reduced, reduced_bytes(op));
      for (const TensorId output : op.outputs) {
        narrowest = std::min(narrowest, bytes(tensor(output)));
      }
      if (const auto* loss = std::get_if<Loss>(&op.kind)) {
        narrowest = std::min(narrowest, static_cast<double>(loss->rows) * width_);
      }
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const TensorId id : read) {
      connect(id, l);
      narrowest = std::min(narrowest, bytes(tensor(id)));
    }
    // Ranks of a tensor-parallel group may do the same work twice where they exchange nothing.
    const bool alone = !finds_ || closed_[l];  // Its borders may hand on what is sharded.
    if (tensor_parallel_ && alone) {
      part = reduced > 0 ? Part{part.flops, part.parameters, reduced} : Part{};
    }
    if (finds_) part.crossing = std::min(part.crossing, narrowest);
    parts.push_back(part);
  }

  /// Bytes that tensor parallelism must sum over its ranks (each element crosses from one of two
  /// units to the other and back) around this operator.
  double reduced_bytes(const Operator& op) const {
    const bool enters = op.split == Split::column || op.split == Split::heads ||
                        (op.split == Split::vocab && std::holds_alternative<MatMul>(op.kind));
    double least = kInfinity;
    for (const TensorId id : op.inputs) {
      const Tensor& input = tensor(id);
      if (!enters || input.is_parameter || input.producer < 0) continue;
      const Operator& producer = graph_.operators[static_cast<std::size_t>(input.producer)];
      if (!is_floating(input.dtype) || learns_[static_cast<std::size_t>(producer.layer)] == 0)
        continue;
      if (in_replicated_region(producer.split)) least = std::min(least, 2 * bytes(input));
    }
    if (least < kInfinity) return least;
    if (op.split != Split::row || op.outputs.empty()) return 0;
    return 2 * bytes(tensor(op.outputs[0]));
  }

  void connect(TensorId id, std::size_t reader) {
    const Tensor& activation = tensor(id);
    const auto source = static_cast<std::size_t>(
        graph_.operators[static_cast<std::size_t>(activation.producer)].layer);
    if (!is_floating(activation.dtype) || learns_[source] == 0) return;
    learns_[reader] = 1;
    if (source != reader) edges[{source, reader}] += times_crossed_ * bytes(activation);
  }

  const Graph& graph_;
  double width_;
  bool tensor_parallel_;
  bool finds_;  ///< Layers may be sharded otherwise than the model says.
  double times_crossed_;
  std::vector<bool> closed_;
  std::vector<char> counted_;  ///< Parameters counted already, or not to be.
  std::vector<char> learns_;   ///< Layers whose outputs need a gradient.
};

/// Parts of the graph whose layers are joined by ever narrower edges: each layer by itself, then
/// what each edge joins, widest first (Kruskal 1956).
std::vector<Part> connected_parts(const Graph& graph, const Precision& precision,
                                  ShardingSource sharding) {
  LayerParts layers(graph, precision, sharding);
  std::vector<Part>& root = layers.parts;
  std::vector<Part> found = root;
  struct Edge {
    double bytes = 0;
    std::size_t source = 0, target = 0;
  };
  std::vector<Edge> edges;
  edges.reserve(layers.edges.size());
  for (const auto& [ends, bytes] : layers.edges) {
    edges.push_back({std::min({bytes, root[ends.first].crossing, root[ends.second].crossing}),
                     ends.first, ends.second});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.bytes > b.bytes; });
  std::vector<std::size_t> parent(root.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto find = [&parent](std::size_t layer) {
    while (parent[layer] != layer) layer = parent[layer] = parent[parent[layer]];
    return layer;
  };
  for (const Edge& edge : edges) {
    const std::size_t to = find(edge.source);
    const std::size_t from = find(edge.target);
    if (to == from) continue;
    parent[from] = to;
    root[to].join(root[from]);
    root[to].crossing = std::min(root[to].crossing, edge.bytes);
    found.push_back(root[to]);
  }
  return found;
}

/// The least that the larger of s·unit_s and (1 - s)·crossing_s can be.
double evened_s(double unit_s, double crossing_s) {
  if (unit_s <= 0 || crossing_s <= 0) return 0;
  return 1 / (1 / unit_s + 1 / crossing_s);
}

}  // namespace

double network_bound_s(const Graph& graph, const Precision& precision, std::int64_t global_batch,
                       const System& system, ShardingSource sharding) {
  const std::vector<Cut> cuts = cuts_of(system, precision);
  if (cuts.empty()) return 0;
  const double passes = static_cast<double>(global_batch) / static_cast<double>(graph.samples);
  const double weight = bytes_per_element(precision.weight);
  const double gradient = bytes_per_element(precision.gradient);
  // Of two units that have whole pieces, one may have them all.
  const double synced =
      std::min(gradient, weight) + (sharding == ShardingSource::manual ? gradient : 0);
  double bound_s = 0;
  for (const Part& part : connected_parts(graph, precision, sharding)) {
    for (const Cut& cut : cuts) {
      if (cut.bytes_per_s <= 0) continue;
      const double unit_s = part.flops * passes / cut.unit_flops_per_s;
      const double crossing_s = part.crossing * passes / cut.bytes_per_s;
      const double sync_s = part.parameters * synced / cut.bytes_per_s;
      // A unit that runs a sample whole must fetch the weights that it has no room for.
      const double fetch_s =
          std::max(0.0, part.parameters * weight - cut.unit_bytes) / cut.bytes_per_s;
      bound_s = std::max(
          {bound_s, std::min(evened_s(unit_s, crossing_s), sync_s), std::min(crossing_s, fetch_s)});
    }
  }
  return bound_s;
}

}  // namespace braid
