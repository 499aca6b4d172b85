#include "braid/graph/repeated_layers.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/graph/operator_fields.h"

namespace braid {
namespace {

/// Where a tensor that a layer reads comes from.
enum class Source : std::uint8_t { inside, parameter, other_layer, graph_input };

/// Writes a layer as a sequence of words that is equal for two layers iff they are of one kind.
/// Each list is preceded by its length, so that different layers cannot give the same sequence.
class Signatures {
 public:
  explicit Signatures(const Graph& graph)
      : graph_(graph),
        sharing_layers_(graph.tensors.size(), 0),
        leaves_layer_(graph.tensors.size(), false),
        local_(graph.tensors.size(), 0),
        local_in_(graph.tensors.size(), -1) {
    std::vector<LayerId> last_user(graph.tensors.size(), -1);
    for (const Operator& op : graph.operators) {
      for (const TensorId id : op.inputs) {
        const Tensor& tensor = graph.tensors[at(id)];
        if (std::exchange(last_user[at(id)], op.layer) != op.layer) ++sharing_layers_[at(id)];
        if (tensor.producer >= 0 && graph.operators[at(tensor.producer)].layer != op.layer) {
          leaves_layer_[at(id)] = true;
        }
      }
    }
    for (const TensorId id : graph.outputs) leaves_layer_[at(id)] = true;
  }

  /// The words of a layer; valid until the next call.
  const std::vector<std::uint64_t>& of(LayerId layer) {
    words_.clear();
    const Layer& span = graph_.layers[at(layer)];
    std::uint64_t next_local = 0;
    put(static_cast<std::uint64_t>(span.last - span.first));
    for (OperatorId id = span.first; id < span.last; ++id) {
      const Operator& op = graph_.operators[at(id)];
      put(op.kind.index());
      put(static_cast<std::uint64_t>(op.split) << 8 | static_cast<std::uint64_t>(op.pass));
      std::visit([&](const auto& kind) { put_fields(kind); }, op.kind);
      put(op.inputs.size());
      for (const TensorId tensor : op.inputs) put_read(tensor, layer, next_local);
      put(op.outputs.size());
      for (const TensorId tensor : op.outputs) {
        number(tensor, layer, next_local);
        put(leaves_layer_[at(tensor)] ? 1 : 0);
        put_shape(graph_.tensors[at(tensor)]);
      }
    }
    return words_;
  }

 private:
  void put(std::uint64_t word) { words_.push_back(word); }

  template <typename Kind>
  void put_fields(const Kind& kind) {
    visit_fields(kind, [&](std::string_view, const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
        put(std::bit_cast<std::uint64_t>(value));
      } else {
        put(static_cast<std::uint64_t>(value));
      }
    });
  }

  void put_shape(const Tensor& tensor) {
    put(static_cast<std::uint64_t>(tensor.dtype));
    put(tensor.dims.size());
    for (const std::int64_t dim : tensor.dims) put(static_cast<std::uint64_t>(dim));
  }

  /// Gives a tensor the next number of this layer; false when it already has one.
  bool number(TensorId tensor, LayerId layer, std::uint64_t& next_local) {
    if (std::exchange(local_in_[at(tensor)], layer) == layer) return false;
    local_[at(tensor)] = next_local++;
    return true;
  }

  void put_read(TensorId id, LayerId layer, std::uint64_t& next_local) {
    const bool first = number(id, layer, next_local);
    put(local_[at(id)]);
    if (!first) return;
    const Tensor& tensor = graph_.tensors[at(id)];
    Source source = Source::other_layer;
    if (tensor.is_parameter) {
      source = Source::parameter;
    } else if (tensor.producer < 0) {
      source = Source::graph_input;
    } else if (graph_.operators[at(tensor.producer)].layer == layer) {
      source = Source::inside;
    }
    put(static_cast<std::uint64_t>(source));
    if (tensor.is_parameter) put(sharing_layers_[at(id)]);
    put_shape(tensor);
  }

  const Graph& graph_;
  std::vector<std::uint32_t> sharing_layers_;  ///< How many layers read the tensor.
  std::vector<bool> leaves_layer_;
  std::vector<std::uint64_t> local_;  ///< Number of a tensor in the layer local_in_.
  std::vector<LayerId> local_in_;
  std::vector<std::uint64_t> words_;
};

std::uint64_t mix(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void find_repeated_layers(Graph& graph) { find_repeated_layers(graph, mix); }

void find_repeated_layers(Graph& graph, WordHash hash) {
  Signatures signatures(graph);
  std::vector<std::vector<std::uint64_t>> kinds;
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> kinds_of_hash;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    const std::vector<std::uint64_t>& words = signatures.of(static_cast<LayerId>(layer));
    std::vector<std::int32_t>& candidates = kinds_of_hash[hash(words)];
    const auto same = std::find_if(candidates.begin(), candidates.end(),
                                   [&](std::int32_t kind) { return kinds[at(kind)] == words; });
    if (same != candidates.end()) {
      graph.layers[layer].kind = *same;
    } else {
      graph.layers[layer].kind = static_cast<std::int32_t>(kinds.size());
      candidates.push_back(graph.layers[layer].kind);
      kinds.push_back(words);
    }
  }
}

std::int32_t layer_kind_count(const Graph& graph) {
  std::int32_t most = -1;
  for (const Layer& layer : graph.layers) most = std::max(most, layer.kind);
  return most + 1;
}

}  // namespace braid
