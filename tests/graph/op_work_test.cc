#include "braid/graph/op_work.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "braid/graph/attention_scores.h"

#include "graph/graph_builder.h"

namespace braid {
namespace {

// Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters", Appendix:
// 96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)) with full recomputation of the blocks, and without it
// 72·B·s·l·h²·(1 + s/(6h) + V/(12·l·h)).
TEST(OpWork, EqualsNarayanansFormulaForGpt) {
  for (const GptSizes s : {GptSizes{}, GptSizes{1, 7, 128, 64, 8, 1000}}) {
    const Graph graph = gpt(s);
    double forward = 0;
    double backward = 0;
    double blocks_again = 0;
    for (const Operator& op : graph.operators) {
      forward += forward_model_flops(graph, op);
      backward += backward_model_flops(graph, op);
      const bool in_block = op.layer > 0 && op.layer <= s.layers;
      if (in_block) blocks_again += forward_work(graph, op).matmul_flops;
    }
    const auto of = [](std::int64_t n) { return static_cast<double>(n); };
    const double blsh2 = of(s.batch) * of(s.seq) * of(s.layers) * of(s.hidden) * of(s.hidden);
    const double attention = of(s.seq) / (6 * of(s.hidden));
    const double logits = of(s.vocab) / (of(s.layers) * of(s.hidden));
    EXPECT_DOUBLE_EQ(forward + backward, 72 * blsh2 * (1 + attention + logits / 12));
    EXPECT_DOUBLE_EQ(forward + backward + blocks_again, 96 * blsh2 * (1 + attention + logits / 16));
  }
}

// Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
// equation 1: s·b·h·(34 + 5·a·s/h) bytes for each layer.
TEST(OpWork, KeepsWhatKorthikantiCounts) {
  const GptSizes s{2, 3, 64, 32, 4, 128};
  const Graph graph = gpt(s);
  for (LayerId layer = 1; layer <= s.layers; ++layer) {
    std::map<TensorId, double> shared;
    double bytes = 0;
    for (const Operator& op : graph.operators) {
      if (op.layer != layer) continue;
      for (const KeptTensor& kept : kept_for_backward(graph, op)) {
        if (kept.tensor < 0) {
          bytes += kept.bytes;
        } else if (shared.emplace(kept.tensor, kept.bytes).second) {
          bytes += kept.bytes;
        }
      }
    }
    const auto of = [](std::int64_t n) { return static_cast<double>(n); };
    EXPECT_DOUBLE_EQ(
        bytes, of(s.seq * s.batch * s.hidden) * (34 + 5 * of(s.heads) * of(s.seq) / of(s.hidden)));
  }
}

/// Counts the visible scores one by one.
double scores_by_hand(const Attention& a) {
  double count = 0;
  for (std::int64_t q = 0; q < a.q_len; ++q) {
    const std::int64_t at = a.kv_len - a.q_len + q;
    for (std::int64_t key = 0; key < a.kv_len; ++key) {
      if (a.causal || a.window > 0) {
        if (at < 0) continue;
        if (a.causal && key > at) continue;
        if (a.window > 0 && a.causal && key <= at - a.window) continue;
        if (a.window > 0 && !a.causal &&
            (key < at - (a.window - 1) / 2 || key > at + a.window / 2)) {
          continue;
        }
      }
      ++count;
    }
  }
  return count;
}

TEST(OpWork, CountsVisibleScores) {
  for (std::int64_t q = 1; q <= 9; ++q) {
    for (std::int64_t kv = 1; kv <= 9; ++kv) {
      for (std::int64_t window = 0; window <= 11; ++window) {
        for (const bool causal : {false, true}) {
          const Attention a{.q_len = q, .kv_len = kv, .window = window, .causal = causal};
          EXPECT_EQ(attended_scores(a), scores_by_hand(a))
              << q << " " << kv << " " << window << " " << causal;
        }
      }
    }
  }
}

Graph attention_graph(const Attention& a) {
  GraphBuilder b;
  const auto rows = [&](std::int64_t heads, std::int64_t len, std::int64_t dim) {
    const TensorId x = b.input({a.samples, len, 8});
    return b.add(MatMul{.m = a.samples * len, .n = heads * dim, .k = 8},
                 {x, b.parameter({8, heads * dim})}, {a.samples, len, heads * dim});
  };
  const TensorId q = rows(a.heads, a.q_len, a.qk_dim);
  const TensorId k = rows(a.kv_heads, a.kv_len, a.qk_dim);
  const TensorId v = rows(a.kv_heads, a.kv_len, a.v_dim);
  b.add(a, {q, k, v}, {a.samples, a.q_len, a.heads * a.v_dim});
  return b.graph;
}

TEST(OpWork, AttentionWithGroupedHeadsOfTwoWidths) {
  // As in multi-head latent attention: 192-wide queries and keys, 128-wide values.
  Attention a{.samples = 2,
              .heads = 8,
              .kv_heads = 2,
              .q_len = 16,
              .kv_len = 16,
              .qk_dim = 192,
              .v_dim = 128,
              .causal = true};
  const Graph graph = attention_graph(a);
  const Operator& op = graph.operators.back();
  const double scores = 2 * 8 * (16 * 17 / 2);
  const OpWork forward = forward_work(graph, op);
  EXPECT_EQ(forward.matmul_flops, 2 * scores * (192 + 128));
  EXPECT_EQ(forward.input_bytes, 2.0 * 2 * 16 * (8 * 192 + 2 * 192 + 2 * 128));
  EXPECT_EQ(forward.output_bytes, 2.0 * 2 * 16 * 8 * 128 + 4.0 * 2 * 8 * 16);
  // Flash computes the scores again: three products of width qk_dim, two of width v_dim.
  EXPECT_EQ(backward_work(graph, op).input_gradient.matmul_flops, 2 * scores * (3 * 192 + 2 * 128));
  EXPECT_EQ(backward_model_flops(graph, op), 2 * forward_model_flops(graph, op));
  EXPECT_EQ(backward_work(graph, op).weight_gradient, OpWork{});

  a.flash = false;
  const Graph plain = attention_graph(a);
  EXPECT_EQ(backward_work(plain, plain.operators.back()).input_gradient.matmul_flops,
            2 * forward.matmul_flops);
}

TEST(OpWork, ConvolutionIsItsImplicitMatrixProduct) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8, 10, 10});
  const Convolution c{.samples = 2,
                      .in_channels = 8,
                      .out_channels = 12,
                      .groups = 4,
                      .out_positions = 64,
                      .in_positions = 100,
                      .kernel_positions = 9};
  const TensorId y = b.add(c, {x, b.parameter({12, 2, 3, 3})}, {2, 12, 8, 8});
  Convolution up = c;
  up.in_channels = 12;
  up.out_channels = 8;
  up.in_positions = 64;
  up.out_positions = 100;
  up.transposed = true;
  b.add(up, {y, b.parameter({12, 2, 3, 3})}, {2, 8, 10, 10});
  const double flops = 2.0 * (2 * 64) * 12 * (2 * 9);
  EXPECT_EQ(forward_work(b.graph, b.graph.operators[0]).matmul_flops, flops);
  // A transposed convolution is the input gradient of the plain one.
  EXPECT_EQ(forward_work(b.graph, b.graph.operators[1]).matmul_flops, flops);
  // The first one reads the graph's input, which needs no gradient.
  EXPECT_EQ(backward_work(b.graph, b.graph.operators[0]).input_gradient, OpWork{});
  EXPECT_EQ(backward_work(b.graph, b.graph.operators[0]).weight_gradient.matmul_flops, flops);
  EXPECT_EQ(backward_work(b.graph, b.graph.operators[1]).input_gradient.matmul_flops, flops);
}

TEST(OpWork, ExpertsVisitTopK) {
  GraphBuilder b;
  const TensorId x = b.input({64, 16});
  const TensorId h = b.add(MatMul{.m = 64, .n = 16, .k = 16}, {x, b.parameter({16, 16})}, {64, 16});
  const MoeExperts experts{
      .tokens = 64, .hidden = 16, .inner = 32, .experts = 8, .top_k = 2, .matrices = 3};
  b.add(experts, {h, b.parameter({8, 3, 16, 32})}, {64, 16});
  const Operator& op = b.graph.operators.back();
  // A dense gated network with tokens · top_k rows has the same products.
  EXPECT_EQ(forward_work(b.graph, op).matmul_flops, 3 * 2.0 * (64 * 2) * 16 * 32);
  const BackwardWork backward = backward_work(b.graph, op);
  EXPECT_EQ(backward.input_gradient.matmul_flops, backward.weight_gradient.matmul_flops);
  EXPECT_EQ(backward_model_flops(b.graph, op), 2 * forward_model_flops(b.graph, op));
  EXPECT_EQ(forward_work(b.graph, op).weight_bytes, 2.0 * 8 * 3 * 16 * 32);
  // What comes to the experts and what lies between their products, beside the tokens themselves.
  double kept_bytes = 0;
  for (const KeptTensor& kept : kept_for_backward(b.graph, op)) {
    if (kept.tensor < 0) kept_bytes += kept.bytes;
  }
  EXPECT_EQ(kept_bytes, 2.0 * (64 * 2) * (16 + 3 * 32));
}

TEST(OpWork, EmbeddingReadsTheRowsItLooksUp) {
  GraphBuilder b;
  const TensorId ids = b.input({40}, Dtype::i64);
  b.add(Embedding{.rows = 1000, .width = 16, .lookups = 40, .pooling = 4},
        {ids, b.parameter({1000, 16}, Dtype::f32)}, {10, 16}, Dtype::f32);
  const OpWork work = forward_work(b.graph, b.graph.operators[0]);
  EXPECT_EQ(work.weight_bytes, 40 * 16 * 4.0);
  EXPECT_EQ(work.output_bytes, 10 * 16 * 4.0);
  EXPECT_EQ(work.input_bytes, 40 * 8.0);
  EXPECT_EQ(work.vector_flops, 30 * 16.0);
}

TEST(OpWork, ProductOfActivationsHasTwoInputGradients) {
  GraphBuilder b;
  const TensorId x = b.input({8, 8});
  const TensorId w = b.parameter({8, 8});
  const MatMul dense{.m = 8, .n = 8, .k = 8};
  const TensorId left = b.add(dense, {x, w}, {8, 8});
  const TensorId right = b.add(dense, {x, w}, {8, 8});
  MatMul product = dense;
  product.weight = false;
  b.add(product, {left, right}, {8, 8});
  b.add(product, {left, x}, {8, 8});
  EXPECT_EQ(backward_work(b.graph, b.graph.operators[2]).input_gradient.matmul_flops, 4.0 * 512);
  EXPECT_EQ(backward_work(b.graph, b.graph.operators[3]).input_gradient.matmul_flops, 2.0 * 512);
  EXPECT_EQ(backward_work(b.graph, b.graph.operators[2]).weight_gradient, OpWork{});
}

TEST(OpWork, ViewsAreFree) {
  GraphBuilder b;
  const TensorId x = b.input({8, 8});
  b.add(DataMovement{.view = true}, {x}, {64});
  b.add(DataMovement{.view = false}, {x}, {64});
  EXPECT_EQ(forward_work(b.graph, b.graph.operators[0]), OpWork{});
  EXPECT_EQ(forward_work(b.graph, b.graph.operators[1]).output_bytes, 128);
}

}  // namespace
}  // namespace braid
