#include "braid/graph/layering.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/graph/topological_order.h"

namespace braid {
namespace {

constexpr int most_heavy_without_cut = 16;
constexpr std::size_t most_layers = 1024;

bool is_heavy(const Operator& op) {
  return std::holds_alternative<MatMul>(op.kind) || std::holds_alternative<Attention>(op.kind) ||
         std::holds_alternative<Convolution>(op.kind) ||
         std::holds_alternative<Recurrent>(op.kind) || std::holds_alternative<Embedding>(op.kind) ||
         std::holds_alternative<MoeExperts>(op.kind);
}

/// Which tensors hold the same values, and until when they are needed.
struct Liveness {
  std::vector<TensorId> root;        ///< The tensor that this one is a view of, or itself.
  std::vector<OperatorId> last_use;  ///< Of a root or any view of it; -1 when never read.
  std::vector<bool> counts;          ///< Whether it counts as crossing a cut.
};

Liveness liveness_of(const Graph& graph) {
  Liveness live;
  live.root.resize(graph.tensors.size());
  live.last_use.assign(graph.tensors.size(), -1);
  live.counts.assign(graph.tensors.size(), false);
  std::vector<bool> trained(graph.tensors.size(), false);  // Depends on a parameter.
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    live.root[id] = static_cast<TensorId>(id);
    trained[id] = graph.tensors[id].is_parameter;
  }
  for (std::size_t place = 0; place < graph.operators.size(); ++place) {
    const Operator& op = graph.operators[place];
    bool depends = false;
    for (const TensorId input : op.inputs) {
      live.last_use[at(live.root[at(input)])] = static_cast<OperatorId>(place);
      depends = depends || trained[at(input)];
    }
    const auto* movement = std::get_if<DataMovement>(&op.kind);
    const bool view = movement != nullptr && movement->view && !op.inputs.empty();
    for (const TensorId output : op.outputs) {
      trained[at(output)] = depends;
      if (view) live.root[at(output)] = live.root[at(op.inputs.front())];
      live.counts[at(output)] = depends && live.root[at(output)] == output;
    }
  }
  return live;
}

/// Sweeps over the operators and finds where layers begin.
class Cutter {
 public:
  explicit Cutter(const Graph& graph) : graph_(graph), live_(liveness_of(graph)) {}

  std::vector<OperatorId> cuts() {
    const auto end = static_cast<OperatorId>(graph_.operators.size());
    begin_layer(0, -1);
    OperatorId place = 0;
    while (place < end) {
      const bool heavy = is_heavy(graph_.operators[at(place)]);
      if (heavy && candidate_ >= 0) {
        // The operators since the candidate are looked at once more: each at most twice.
        place = candidate_;
        begin_layer(place, candidate_main_);
        continue;
      }
      heavy_seen_ += heavy ? 1 : 0;
      step(place);
      ++place;
      if (heavy_seen_ > 0 && crossing() <= 1 && place < end) {
        candidate_ = place;
        candidate_main_ = crossing_tensor();
      }
    }
    split_if_too_heavy(begin_, end);
    return std::move(cuts_);
  }

 private:
  /// Ends the layer in hand and begins one at `place`, into which `main` is the active tensor.
  void begin_layer(OperatorId place, TensorId main) {
    split_if_too_heavy(begin_, place);
    cuts_.push_back(place);
    begin_ = place;
    main_ = main;
    main_touched_ = false;
    born_live_ = 0;
    born_xor_ = 0;
    heavy_seen_ = 0;
    candidate_ = -1;
  }

  void step(OperatorId place) {
    const Operator& op = graph_.operators[at(place)];
    for (const TensorId input : op.inputs) {
      const TensorId root = live_.root[at(input)];
      if (root == main_) main_touched_ = true;
      if (live_.last_use[at(root)] != place) continue;
      if (root == main_) main_ = -1;
      // A tensor read twice by its last reader dies once.
      if (std::exchange(live_.last_use[at(root)], -1) < 0) continue;
      ended_.push_back(root);
      if (live_.counts[at(root)] && graph_.tensors[at(root)].producer >= begin_) {
        --born_live_;
        born_xor_ ^= root;
      }
    }
    for (const TensorId root : ended_) live_.last_use[at(root)] = place;
    ended_.clear();
    for (const TensorId output : op.outputs) {
      if (!live_.counts[at(output)] || live_.last_use[at(output)] < 0) continue;
      ++born_live_;
      born_xor_ ^= output;
    }
  }

  bool main_crosses() const { return main_ >= 0 && main_touched_; }
  int crossing() const { return born_live_ + (main_crosses() ? 1 : 0); }
  TensorId crossing_tensor() const {
    if (main_crosses()) return main_;
    return born_live_ == 1 ? born_xor_ : -1;
  }

  void split_if_too_heavy(OperatorId first, OperatorId last) {
    int heavy = 0;
    for (OperatorId op = first; op < last; ++op) {
      heavy += is_heavy(graph_.operators[at(op)]) ? 1 : 0;
    }
    if (heavy <= most_heavy_without_cut) return;
    bool seen = false;
    for (OperatorId op = first; op < last; ++op) {
      if (!is_heavy(graph_.operators[at(op)])) continue;
      if (seen) cuts_.push_back(op);
      seen = true;
    }
  }

  const Graph& graph_;
  Liveness live_;
  std::vector<OperatorId> cuts_;
  OperatorId begin_ = 0;  ///< First operator of the layer in hand.
  TensorId main_ = -1;    ///< The active tensor that entered it, while live.
  bool main_touched_ = false;
  int born_live_ = 0;      ///< Live tensors computed in this layer …
  TensorId born_xor_ = 0;  ///< … and the exclusive or of their ids.
  int heavy_seen_ = 0;
  OperatorId candidate_ = -1;  ///< The last place where the next layer may begin.
  TensorId candidate_main_ = -1;
  std::vector<TensorId> ended_;
};

/// Every n-th of the cuts, so that most_layers are left at most: planners cost per layer.
std::vector<OperatorId> thinned(const std::vector<OperatorId>& cuts) {
  const std::size_t every = (cuts.size() - 1) / most_layers + 1;
  std::vector<OperatorId> kept;
  kept.reserve(most_layers + 1);
  for (std::size_t place = 0; place < cuts.size(); place += every) kept.push_back(cuts[place]);
  return kept;
}

/// The name of the first heavy operator, or of the first one.
std::string layer_name(const Graph& graph, OperatorId first, OperatorId last) {
  for (OperatorId op = first; op < last; ++op) {
    if (is_heavy(graph.operators[at(op)])) return graph.operators[at(op)].name;
  }
  return graph.operators[at(first)].name;
}

void sort_operators(Graph& graph) {
  const TopologicalOrder sorted = topological_order(graph);
  if (!sorted.cycle.empty()) {
    const std::string& name = graph.operators[at(sorted.cycle.front())].name;
    const std::string& other = graph.operators[at(sorted.cycle.back())].name;
    throw Error({.file = {}, .line = 0, .key = name}, fmt::format("lies on a cycle with {}", other),
                "remove one of its edges");
  }
  reorder_operators(graph, sorted.order);
}

}  // namespace

void group_into_layers(Graph& graph) {
  graph.layers.clear();
  if (graph.operators.empty()) return;
  sort_operators(graph);
  std::vector<OperatorId> cuts = thinned(Cutter(graph).cuts());
  cuts.push_back(static_cast<OperatorId>(graph.operators.size()));
  for (std::size_t place = 0; place + 1 < cuts.size(); ++place) {
    const OperatorId first = cuts[place];
    const OperatorId last = cuts[place + 1];
    for (OperatorId op = first; op < last; ++op) {
      graph.operators[at(op)].layer = static_cast<LayerId>(place);
    }
    graph.layers.push_back(
        {.name = layer_name(graph, first, last), .first = first, .last = last, .kind = -1});
  }
}

}  // namespace braid
