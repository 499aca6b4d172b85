#include <functional>
#include <limits>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/graph/graph.h"

#include "graph/graph_builder.h"

namespace braid {
namespace {

std::string message_of(const Graph& graph) {
  try {
    check_graph(graph, "model.json");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string message_after(const std::function<void(Graph&)>& damage) {
  Graph graph = gpt({});
  damage(graph);
  return message_of(graph);
}

TEST(CheckGraph, AcceptsGpt) { EXPECT_EQ(message_of(gpt({})), ""); }

TEST(CheckGraph, NamesWhatIsWrong) {
  const std::map<std::string, std::function<void(Graph&)>> damages{
      {"is no tensor", [](Graph& g) { g.operators[3].inputs[0] = 10000; }},
      {"output -7 is no tensor", [](Graph& g) { g.operators[3].outputs.push_back(-7); }},
      {"two operators have this name", [](Graph& g) { g.operators[3].name = "op2"; }},
      {"has no name", [](Graph& g) { g.operators[3].name = ""; }},
      {"reads tensor", [](Graph& g) { g.operators[0].inputs[0] = g.operators.back().outputs[0]; }},
      {"does not list it", [](Graph& g) { g.operators[3].outputs.clear(); }},
      {"which op3 writes too",
       [](Graph& g) { g.operators[4].outputs.push_back(g.operators[3].outputs[0]); }},
      {"holds the operators", [](Graph& g) { g.layers[1].last -= 1; }},
      {"cover", [](Graph& g) { g.layers.pop_back(); }},
      {"says layer 2 but lies in layer 1", [](Graph& g) { g.operators[3].layer = 2; }},
      {"samples: ", [](Graph& g) { g.samples = 0; }},
      {"seq_len: ", [](Graph& g) { g.seq_len = -1; }},
      {"size is not positive", [](Graph& g) { g.tensors[0].dims[0] = -5; }},
      {"lists tensor", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }},
      {"does not fit in 64 bits",
       [](Graph& g) { g.tensors[0].dims.assign(3, std::int64_t{1} << 30); }},
      {"m is 0", [](Graph& g) { std::get<MatMul>(g.operators[2].kind).m = 0; }},
      {"sizes do not fit in 64 bits",
       [](Graph& g) { std::get<MatMul>(g.operators[2].kind).m = std::int64_t{1} << 62; }},
      {"kv_heads does not divide heads",
       [](Graph& g) { std::get<Attention>(g.operators[5].kind).kv_heads = 3; }},
      {"flops_per_element is nan",
       [](Graph& g) {
         std::get<Elementwise>(g.operators[7].kind).flops_per_element =
             std::numeric_limits<double>::quiet_NaN();
       }},
  };
  for (const auto& [expected, damage] : damages) {
    const std::string message = message_after(damage);
    EXPECT_NE(message.find("model.json: "), std::string::npos) << expected;
    if (expected == "reads tensor") {
      EXPECT_NE(message.find("cycle"), std::string::npos) << message;
    } else {
      EXPECT_NE(message.find(expected), std::string::npos) << message;
    }
  }
}

TEST(CheckGraph, TellsCyclesFromWrongOrder) {
  GraphBuilder b;
  const TensorId x = b.input({4});
  const TensorId y = b.add(Elementwise{.elements = 4}, {x}, {4});
  const TensorId z = b.add(Elementwise{.elements = 4}, {y}, {4});
  b.add(Elementwise{.elements = 4}, {z}, {4});
  Graph swapped = b.graph;
  std::swap(swapped.operators[0], swapped.operators[1]);
  swapped.tensors[1].producer = 1;
  swapped.tensors[2].producer = 0;
  EXPECT_NE(message_of(swapped).find("op1: reads tensor 1 before it is computed"),
            std::string::npos)
      << message_of(swapped);
  Graph cyclic = b.graph;
  cyclic.operators[0].inputs = {z};
  EXPECT_NE(message_of(cyclic).find("op1 → op0 → op1"), std::string::npos) << message_of(cyclic);
}

TEST(Graph, CountsSharedParametersOnce) {
  // 12·l·h² + 4·l·h (norms) + 2·h (last norm) + V·h for this GPT without biases and positions.
  const GptSizes s;
  EXPECT_EQ(parameter_count(gpt(s)), 12 * s.layers * s.hidden * s.hidden + 4 * s.layers * s.hidden +
                                         2 * s.hidden + s.vocab * s.hidden);
  GraphBuilder b;
  b.parameter({std::int64_t{1} << 31, std::int64_t{1} << 27});
  EXPECT_EQ(parameter_count(b.graph), std::int64_t{1} << 58);
  for (int i = 0; i < 40; ++i) b.parameter({std::int64_t{1} << 31, std::int64_t{1} << 27});
  EXPECT_THROW(parameter_count(b.graph), Error);
}

TEST(Graph, LayerEdgesCountEachTensorOnce) {
  GraphBuilder b;
  const TensorId x = b.input({4});
  const Elementwise e{.elements = 4};
  b.layer("a");
  const TensorId a = b.add(e, {x}, {4});
  const TensorId a2 = b.add(e, {a}, {4});
  b.layer("b");
  const TensorId c = b.add(e, {a, a}, {4});
  const TensorId d = b.add(e, {a}, {4});
  b.layer("c");
  b.add(e, {a2, c}, {4});
  b.add(e, {d, a2, x}, {4});
  const std::vector<LayerEdge> expected{{0, 1, 8}, {0, 2, 8}, {1, 2, 16}};
  EXPECT_EQ(layer_edges(b.graph), expected);
}

}  // namespace
}  // namespace braid
