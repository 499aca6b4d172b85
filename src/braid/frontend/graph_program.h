#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/program/program.h"

namespace braid {

/// A program that does what inference with a graph does: the same GEMMs, convolutions,
/// attention, normalisations and sums on tensors of the same shapes, in f32. Its weights are
/// missing (fill_missing_weights). Losses are left out, and so are dropouts.
///
/// A Graph says what operators cost, not all that they compute. What it leaves open is settled:
/// padding lies evenly on both sides of a window; a pointwise function of one operand is Relu,
/// Swish or Gelu by its arithmetic per element, and for any other arithmetic (rotary embedding) a
/// product with a constant row; scales, shifts and variances are those that fill_missing_weights()
/// makes.
///
///   Program program = program_from_graph(load_model("bert-base", {.seq_len = 128, .dims = {}}));
///
/// Throws Error, naming the operator: experts, recurrent cells, transposed convolutions, training
/// graphs, attention with other relative positions than T5's, and shapes that no rule above
/// explains.
Program program_from_graph(const Graph& graph);

/// The program of a graph with what training needs to know of it.
struct LayeredProgram {
  Program program;
  std::vector<OperatorId> operators;  ///< By node: the graph's operator that it belongs to.
  std::vector<Shape> shapes;          ///< By value: of operators' results; others' are empty.
  std::vector<ValueId> parameters;    ///< Weights that are parameters of the graph, ascending.
  std::vector<ValueId> logits;        ///< Outputs that a loss of the graph reads, ascending.
};

/// The domain of what no operation of ONNX's computes. "Experts" is of tokens
/// x [tokens × width], scores [tokens × experts], weights [experts × matrices × width × inner] and
/// perhaps biases [experts × ((matrices - 1)·inner + width)]. Each token goes through the `top_k`
/// experts of its greatest scores, whose results are summed by the softmax of these scores. An
/// expert is f(x·W0)·W1ᵀ with f = Gelu, or (Swish(x·W0) ∘ x·W1)·W2ᵀ of three matrices; a bias
/// follows each product. "Attention" is AttentionForm::whole.
inline constexpr const char* kBraidDomain = "braid";

enum class AttentionForm : std::uint8_t {
  written_out,  ///< As GEMMs, a softmax and a mask.
  /// As one node "Attention" of kBraidDomain: of queries, keys and values, a row for each token,
  /// and perhaps T5's table of relative positions [buckets × heads]. Attributes are the members of
  /// Attention by name: heads, kv_heads, q_len, kv_len, qk_dim, v_dim, window, causal (0 or 1).
  whole,
};

/// As program_from_graph(), and experts are written too, unless they drop tokens or clamp what
/// their activation reads. Attention as a whole may be of any length.
LayeredProgram layered_program(const Graph& graph,
                               AttentionForm attention = AttentionForm::written_out);

/// Bytes of a program's weights in f32, those that are missing included.
double weight_bytes(const Program& program);

}  // namespace braid
