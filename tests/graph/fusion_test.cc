#include "braid/graph/fusion.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/graph/layering.h"
#include "braid/graph/op_work.h"

namespace braid {
namespace {

using Keeps = Elementwise::Keeps;
using Dims = std::vector<std::int64_t>;

/// Appends operators without layers.
struct Written {
  Graph graph;

  TensorId tensor(Dims dims, bool is_parameter, OperatorId producer) {
    graph.tensors.push_back({.name = "t" + std::to_string(graph.tensors.size()),
                             .dims = std::move(dims),
                             .dtype = Dtype::bf16,
                             .is_parameter = is_parameter,
                             .producer = producer});
    return static_cast<TensorId>(graph.tensors.size() - 1);
  }
  TensorId input(Dims dims) {
    graph.inputs.push_back(tensor(std::move(dims), false, -1));
    return graph.inputs.back();
  }
  TensorId parameter(Dims dims) { return tensor(std::move(dims), true, -1); }
  TensorId add(const OperatorKind& kind, std::vector<TensorId> inputs, Dims dims) {
    const auto id = static_cast<OperatorId>(graph.operators.size());
    const TensorId output = tensor(std::move(dims), false, id);
    graph.operators.push_back({.name = "o" + std::to_string(id),
                               .kind = kind,
                               .inputs = std::move(inputs),
                               .outputs = {output}});
    return output;
  }
  Graph fused(std::vector<TensorId> outputs) {
    graph.outputs = std::move(outputs);
    fuse_operators(graph);
    Graph result = graph;
    group_into_layers(result);
    EXPECT_NO_THROW(check_graph(result, "test"));
    return graph;
  }
};

Elementwise each(std::int64_t elements, double flops = 1, Keeps keeps = Keeps::nothing) {
  return {elements, flops, keeps};
}

TEST(Fusion, LayerNormWrittenOut) {
  Written w;
  const Dims full{4, 8}, rows{4, 1};
  const TensorId x = w.input(full);
  const TensorId h = w.add(MatMul{.m = 4, .n = 8, .k = 8}, {x, w.parameter({8, 8})}, full);
  const TensorId mean = w.add(Reduction{32}, {h}, rows);
  const TensorId centred = w.add(each(32), {h, mean}, full);
  const TensorId square = w.add(each(32, 1, Keeps::inputs), {centred}, full);
  const TensorId variance = w.add(Reduction{32}, {square}, rows);
  const TensorId safe = w.add(each(4), {variance}, rows);
  const TensorId deviation = w.add(each(4, 1, Keeps::inputs), {safe}, rows);
  const TensorId normal = w.add(each(32, 1, Keeps::inputs), {centred, deviation}, full);
  const TensorId gain = w.parameter({8});
  const TensorId scaled = w.add(each(32, 1, Keeps::inputs), {normal, gain}, full);
  const TensorId y = w.add(each(32), {scaled, w.parameter({8})}, full);
  const Graph graph = w.fused({y});
  ASSERT_EQ(graph.operators.size(), 2U);
  EXPECT_EQ(std::get<Normalization>(graph.operators[1].kind), (Normalization{32, 8, false}));
  EXPECT_EQ(graph.operators[1].inputs.size(), 3U);
  EXPECT_EQ(parameter_count(graph), 64 + 8 + 8);
}

TEST(Fusion, WhatOthersReadStays) {
  Written w;
  const TensorId x = w.input({8});
  const TensorId a = w.add(each(8, 2), {x}, {8});
  const TensorId b = w.add(each(8, 3), {a}, {8});
  const TensorId c = w.add(each(8, 4, Keeps::mask), {b}, {8});
  // The graph's output `a` is read by others; b and c become one.
  const Graph graph = w.fused({a, c});
  ASSERT_EQ(graph.operators.size(), 2U);
  EXPECT_EQ(std::get<Elementwise>(graph.operators[0].kind), each(8, 2));
  EXPECT_EQ(std::get<Elementwise>(graph.operators[1].kind), each(8, 7, Keeps::mask));
}

TEST(Fusion, TwoSourcesAreNotOne) {
  Written w;
  const TensorId x = w.input({8});
  const TensorId y = w.input({8});
  // silu(x) · y: the activation is one operator, the product another.
  const TensorId gate = w.add(each(8, 4, Keeps::inputs), {x}, {8});
  const TensorId silu = w.add(each(8, 1, Keeps::inputs), {x, gate}, {8});
  const TensorId out = w.add(each(8, 1, Keeps::inputs), {silu, y}, {8});
  const Graph graph = w.fused({out});
  ASSERT_EQ(graph.operators.size(), 2U);
  EXPECT_EQ(std::get<Elementwise>(graph.operators[0].kind), each(8, 5, Keeps::inputs));
}

/// Scores of [2, 3, 4, 5], scaled and masked, and a context of width 7.
struct WrittenAttention : Written {
  TensorId scores = -1, context = -1;
  explicit WrittenAttention(bool right_is_scores = false) {
    const TensorId q = input({2, 3, 4, 6});
    const TensorId k = input({2, 3, 6, 5});
    const TensorId v = input({2, 3, 5, 7});
    const TensorId mask = input({2, 1, 4, 5});
    const Dims dims{2, 3, 4, 5};
    scores = add(MatMul{.batch = 6, .m = 4, .n = 5, .k = 6, .weight = false}, {q, k}, dims);
    const TensorId scaled = add(each(120), {scores}, dims);
    const TensorId masked = add(each(120), {mask, scaled}, dims);
    const TensorId weights = add(Softmax{120, 5}, {masked}, dims);
    context =
        add(MatMul{.batch = 6, .m = 4, .n = 7, .k = 5, .weight = false},
            right_is_scores ? std::vector<TensorId>{v, weights} : std::vector<TensorId>{weights, v},
            {2, 3, 4, 7});
  }
};

TEST(Fusion, Attention) {
  WrittenAttention w;
  double before = 0;
  for (const Operator& op : w.graph.operators) before += forward_work(w.graph, op).matmul_flops;
  const Graph graph = w.fused({w.context});
  ASSERT_EQ(graph.operators.size(), 1U);
  EXPECT_EQ(std::get<Attention>(graph.operators[0].kind), (Attention{.samples = 2,
                                                                     .heads = 3,
                                                                     .kv_heads = 3,
                                                                     .q_len = 4,
                                                                     .kv_len = 5,
                                                                     .qk_dim = 6,
                                                                     .v_dim = 7}));
  EXPECT_EQ(graph.operators[0].inputs.size(), 4U);
  EXPECT_EQ(forward_work(graph, graph.operators[0]).matmul_flops, before);
}

TEST(Fusion, AttentionWhoseScoresAreReadStays) {
  WrittenAttention read;
  EXPECT_GT(read.fused({read.context, read.scores}).operators.size(), 3U);
  WrittenAttention turned(true);
  EXPECT_GT(turned.fused({turned.context}).operators.size(), 2U);
}

TEST(Fusion, RandomGraphsStayProper) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Written w;
    std::vector<TensorId> full{w.input({4, 8})}, rows;
    const auto pick = [&](const std::vector<TensorId>& from) {
      return from[random() % from.size()];
    };
    for (int i = 0; i < 30; ++i) {
      switch (random() % 5) {
        case 0:
          rows.push_back(w.add(Reduction{32}, {pick(full)}, {4, 1}));
          break;
        case 1:
          full.push_back(
              w.add(MatMul{.m = 4, .n = 8, .k = 8}, {pick(full), w.parameter({8, 8})}, {4, 8}));
          break;
        case 2:
          full.push_back(w.add(Softmax{32, 8}, {pick(full)}, {4, 8}));
          break;
        default:
          full.push_back(w.add(
              each(32, 2),
              {pick(full), rows.empty() || random() % 2 == 0 ? pick(full) : pick(rows)}, {4, 8}));
      }
    }
    const Graph before = w.graph;
    double flops = 0;
    for (const Operator& op : before.operators) flops += forward_work(before, op).matmul_flops;
    const Graph graph = w.fused({full.back()});
    double after = 0;
    for (const Operator& op : graph.operators) after += forward_work(graph, op).matmul_flops;
    EXPECT_EQ(after, flops) << seed;
    EXPECT_LE(graph.operators.size(), before.operators.size());
    // A second time finds less or nothing, and never breaks the graph.
    Written again{graph};
    EXPECT_LE(again.fused(graph.outputs).operators.size(), graph.operators.size());
  }
}

}  // namespace
}  // namespace braid
