#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/frontend/hugging_face.h"
#include "braid/graph/graph.h"
#include "braid/graph/op_work.h"
#include "braid/graph/series_parallel_order.h"

#include "graph/layer_dag.h"

namespace braid {

/// Products of one forward pass, a multiply-add as two.
inline double forward_flops(const Graph& graph) {
  double flops = 0;
  for (const Operator& op : graph.operators) flops += forward_model_flops(graph, op);
  return flops;
}

inline Graph graph_of(const std::string& config, const ModelOptions& options = {}) {
  const Document document = Document::parse(config, Document::Syntax::json, "config.json");
  return graph_from_config(document.root(), "model", options);
}

/// What a config is refused with; empty when it is accepted.
inline std::string refusal_of_config(const std::string& config, const ModelOptions& options = {}) {
  try {
    graph_of(config, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// `text` with the first `from` replaced.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

/// How a model's layer graph branches.
struct Branching {
  int sources = 0;
  int sinks = 0;
  std::int32_t widest_join = 0;  ///< Most layers that one layer reads.
  bool series_parallel = false;  ///< Its order.
};

inline Branching branching_of(const Graph& graph) {
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  std::vector<std::int32_t> in(graph.layers.size());
  std::vector<std::int32_t> out(graph.layers.size());
  for (const LayerEdge& edge : layer_edges(graph)) {
    ++out[static_cast<std::size_t>(edge.source)];
    ++in[static_cast<std::size_t>(edge.target)];
  }
  Branching branching;
  for (std::int32_t l = 0; l < layers; ++l) {
    const auto index = static_cast<std::size_t>(l);
    branching.widest_join = std::max(branching.widest_join, in[index]);
    if (in[index] == 0) ++branching.sources;
    if (out[index] == 0) ++branching.sinks;
  }
  branching.series_parallel = series_parallel_order(test::layer_dag(graph)).cuts == 0;
  return branching;
}

}  // namespace braid
