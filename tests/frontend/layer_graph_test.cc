#include "braid/graph/layer_graph.h"

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"

namespace braid {
namespace {

/// Every layer alone is a graph that holds its promises, and together they are the model.
TEST(LayerGraph, LayersOfTheZooAreWholeByThemselves) {
  for (const ZooEntry& entry : zoo_models()) {
    const Graph graph = load_model(entry.name, {});
    std::size_t operators = 0;
    for (std::size_t l = 0; l < graph.layers.size(); ++l) {
      // Layers of a kind differ in their names alone.
      if (l > 0 && graph.layers[l].kind == graph.layers[l - 1].kind) {
        operators += static_cast<std::size_t>(graph.layers[l].last - graph.layers[l].first);
        continue;
      }
      const Graph alone = layer_graph(graph, static_cast<LayerId>(l));
      EXPECT_NO_THROW(check_graph(alone, entry.name)) << alone.name;
      EXPECT_FALSE(alone.outputs.empty()) << alone.name;
      operators += alone.operators.size();
      for (std::size_t o = 0; o < alone.operators.size(); ++o) {
        const Operator& op = graph.operators[static_cast<std::size_t>(graph.layers[l].first) + o];
        EXPECT_EQ(alone.operators[o].kind, op.kind) << op.name;
        EXPECT_EQ(alone.operators[o].inputs.size(), op.inputs.size()) << op.name;
      }
    }
    EXPECT_EQ(operators, graph.operators.size()) << entry.name;
  }
}

}  // namespace
}  // namespace braid
