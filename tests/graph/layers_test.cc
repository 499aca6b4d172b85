#include <random>
#include <set>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/graph/layering.h"
#include "braid/graph/repeated_layers.h"

#include "graph/graph_builder.h"

namespace braid {
namespace {

std::vector<std::int32_t> kinds_of(const Graph& graph) {
  std::vector<std::int32_t> kinds;
  for (const Layer& layer : graph.layers) kinds.push_back(layer.kind);
  return kinds;
}

using Kinds = std::vector<std::int32_t>;

TEST(RepeatedLayers, BlocksOfGptAreOneKind) {
  Graph graph = gpt({.layers = 5});
  find_repeated_layers(graph);
  EXPECT_EQ(kinds_of(graph), (Kinds{0, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(layer_kind_count(graph), 3);
}

TEST(RepeatedLayers, SameWhenEveryHashCollides) {
  Graph graph = gpt({.layers = 5});
  find_repeated_layers(graph, [](std::span<const std::uint64_t>) -> std::uint64_t { return 7; });
  EXPECT_EQ(kinds_of(graph), (Kinds{0, 1, 1, 1, 1, 1, 2}));
}

TEST(RepeatedLayers, AnyDifferenceMakesAnotherKind) {
  const auto kinds_after = [](auto&& change) {
    Graph graph = gpt({.layers = 3});
    change(graph, graph.layers[2].first);  // The block in the middle.
    find_repeated_layers(graph);
    return kinds_of(graph);
  };
  const Kinds same{0, 1, 1, 1, 2};
  const Kinds other{0, 1, 2, 1, 3};
  const auto at = [](Graph& g, OperatorId op) -> Operator& {
    return g.operators[static_cast<std::size_t>(op)];
  };
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) { at(g, op).name = "renamed"; }), same);
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) { at(g, op).split = Split::sequence; }),
            other);
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) {
              std::get<Normalization>(at(g, op).kind).rms = true;
            }),
            other);
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) {
              std::swap(at(g, op + 4).inputs[0], at(g, op + 4).inputs[1]);
            }),
            other);
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) {
              g.tensors[static_cast<std::size_t>(at(g, op).outputs[0])].dtype = Dtype::f32;
            }),
            other);
  // Two blocks that share a weight differ from the third.
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) {
              at(g, op + 1).inputs[1] = at(g, g.layers[1].first + 1).inputs[1];
            }),
            (Kinds{0, 1, 1, 2, 3}));
  // One block uses one weight twice.
  EXPECT_EQ(kinds_after([&](Graph& g, OperatorId op) {
              at(g, op + 1).inputs[1] = at(g, op + 2).inputs[1];
            }),
            other);
}

/// A residual network of bottleneck blocks, `wide[i]` giving block i's width.
Graph resnet(const std::vector<std::int64_t>& widths) {
  GraphBuilder b;
  std::int64_t width = widths.front();
  const auto conv = [&](TensorId x, std::int64_t in, std::int64_t out) {
    const Convolution c{.in_channels = in,
                        .out_channels = out,
                        .out_positions = 16,
                        .in_positions = 16,
                        .kernel_positions = 9};
    const TensorId y = b.add(c, {x, b.parameter({out, in, 3, 3})}, {1, out, 4, 4});
    return b.add(Normalization{.elements = out * 16, .width = 16}, {y, b.parameter({out})},
                 {1, out, 4, 4});
  };
  const auto relu = [&](TensorId x, std::int64_t channels) {
    return b.add(Elementwise{.elements = channels * 16, .keeps = Elementwise::Keeps::mask}, {x},
                 {1, channels, 4, 4});
  };
  TensorId x = relu(conv(b.input({1, 3, 4, 4}), 3, width), width);
  for (const std::int64_t next : widths) {
    const TensorId branch = conv(relu(conv(x, width, next), next), next, next);
    const TensorId skip = next == width ? x : conv(x, width, next);
    const TensorId sum =
        b.add(Elementwise{.elements = next * 16, .keeps = Elementwise::Keeps::nothing},
              {branch, skip}, {1, next, 4, 4});
    x = relu(sum, next);
    width = next;
  }
  const TensorId pooled = b.add(Reduction{.elements = width * 16}, {x}, {1, width});
  const TensorId flat = b.add(DataMovement{.view = true}, {pooled}, {width});
  b.graph.outputs = {b.add(MatMul{.n = 10, .k = width}, {flat, b.parameter({width, 10})}, {1, 10})};
  return b.graph;
}

TEST(Layering, ResidualBlocksBecomeLayersOfEqualKinds) {
  Graph graph = resnet({8, 8, 8, 16, 16, 16});
  group_into_layers(graph);
  check_graph(graph, "resnet");
  find_repeated_layers(graph);
  // Stem, blocks, widening block, blocks (the last one with the pooling), classifier.
  EXPECT_EQ(kinds_of(graph), (Kinds{0, 1, 1, 1, 2, 3, 4, 5}));
  EXPECT_EQ(layer_edges(graph).size(), graph.layers.size() - 1);
}

TEST(Layering, ChainOfProductsIsCutAfterCheapOperators) {
  GraphBuilder b;
  TensorId x = b.input({8, 8});
  for (int i = 0; i < 4; ++i) {
    x = b.add(MatMul{.m = 8, .n = 8, .k = 8}, {x, b.parameter({8, 8})}, {8, 8});
    x = b.add(DataMovement{.view = true}, {x}, {64});
    x = b.add(Elementwise{.elements = 64}, {x}, {8, 8});
  }
  group_into_layers(b.graph);
  check_graph(b.graph, "chain");
  ASSERT_EQ(b.graph.layers.size(), 4U);
  for (const Layer& layer : b.graph.layers) EXPECT_EQ(layer.last - layer.first, 3);
}

TEST(Layering, LayersInARowBecomeOneWhereThereAreTooMany) {
  for (const int products : {1024, 1025, 5000}) {
    GraphBuilder b;
    TensorId x = b.input({8, 8});
    for (int i = 0; i < products; ++i) {
      x = b.add(MatMul{.m = 8, .n = 8, .k = 8}, {x, b.parameter({8, 8})}, {8, 8});
    }
    group_into_layers(b.graph);
    check_graph(b.graph, "chain");
    const int together = (products + 1023) / 1024;
    ASSERT_EQ(b.graph.layers.size(), static_cast<std::size_t>((products - 1) / together + 1));
    for (std::size_t l = 0; l + 1 < b.graph.layers.size(); ++l) {
      EXPECT_EQ(b.graph.layers[l].last - b.graph.layers[l].first, together);
    }
    EXPECT_EQ(b.graph.layers.back().last, products);
    find_repeated_layers(b.graph);
    EXPECT_LE(layer_kind_count(b.graph), 3);  // The first, those between, and a shorter last one.
  }
}

TEST(Layering, ParallelTowersGiveADag) {
  GraphBuilder b;
  std::vector<TensorId> ends;
  for (int tower = 0; tower < 3; ++tower) {
    TensorId x = b.input({8, 8});
    for (int i = 0; i < 2; ++i) {
      x = b.add(MatMul{.m = 8, .n = 8, .k = 8}, {x, b.parameter({8, 8})}, {8, 8});
    }
    ends.push_back(x);
  }
  const TensorId joined = b.add(DataMovement{}, ends, {8, 24});
  b.add(MatMul{.m = 8, .n = 8, .k = 24}, {joined, b.parameter({24, 8})}, {8, 8});
  group_into_layers(b.graph);
  check_graph(b.graph, "towers");
  EXPECT_EQ(b.graph.layers.size(), 7U);
  const std::vector<LayerEdge> edges = layer_edges(b.graph);
  EXPECT_EQ(edges.size(), 6U);
}

TEST(Layering, DenseSkipsFallBackToHeavyOperators) {
  GraphBuilder b;
  std::vector<TensorId> all{b.input({8, 8})};
  for (int i = 0; i < 30; ++i) {
    const auto width = static_cast<std::int64_t>(8 * all.size());
    const TensorId joined = b.add(DataMovement{}, all, {8, width});
    all.push_back(
        b.add(MatMul{.m = 8, .n = 8, .k = width}, {joined, b.parameter({width, 8})}, {8, 8}));
  }
  group_into_layers(b.graph);
  check_graph(b.graph, "dense");
  EXPECT_GE(b.graph.layers.size(), 29U);
}

TEST(Layering, RandomGraphsPassTheCheckInAnyOrder) {
  std::mt19937_64 random(20240601);
  for (int round = 0; round < 300; ++round) {
    GraphBuilder b;
    std::vector<TensorId> tensors{b.input({4, 4})};
    const int operators = 1 + static_cast<int>(random() % 60);
    for (int i = 0; i < operators; ++i) {
      const auto pick = [&] {
        return tensors[tensors.size() - 1 - random() % std::min<std::size_t>(tensors.size(), 4)];
      };
      switch (random() % 3) {
        case 0:
          tensors.push_back(
              b.add(MatMul{.m = 4, .n = 4, .k = 4}, {pick(), b.parameter({4, 4})}, {4, 4}));
          break;
        case 1:
          tensors.push_back(b.add(Elementwise{.elements = 16}, {pick(), pick()}, {4, 4}));
          break;
        default:
          tensors.push_back(b.add(DataMovement{.view = true}, {pick()}, {4, 4}));
      }
    }
    const Graph ordered = b.graph;
    group_into_layers(b.graph);
    check_graph(b.graph, "random");
    EXPECT_EQ(b.graph.operators.size(), ordered.operators.size());
    std::set<std::string> names;
    for (const Operator& op : b.graph.operators) names.insert(op.name);
    EXPECT_EQ(names.size(), ordered.operators.size());

    // Listed backwards, the graph still has all operators in a valid order.
    Graph reversed = ordered;
    std::reverse(reversed.operators.begin(), reversed.operators.end());
    for (Tensor& tensor : reversed.tensors) {
      if (tensor.producer >= 0) tensor.producer = operators - 1 - tensor.producer;
    }
    group_into_layers(reversed);
    check_graph(reversed, "reversed");
  }
}

TEST(Layering, CycleIsNamed) {
  GraphBuilder b;
  const TensorId x = b.input({4});
  const TensorId y = b.add(Elementwise{.elements = 4}, {x}, {4});
  const TensorId z = b.add(Elementwise{.elements = 4}, {y}, {4});
  b.graph.operators[0].inputs = {z};
  EXPECT_THROW(group_into_layers(b.graph), Error);
}

}  // namespace
}  // namespace braid
