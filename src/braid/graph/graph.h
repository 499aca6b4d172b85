#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "braid/base/dtype.h"
#include "braid/graph/model_shape.h"

namespace braid {

//   const Graph graph = load_model("llama-3-8b", {.seq_len = 8192, .dims = {}});  // model.h
//   parameter_count(graph);     // 8030261248
//   layer_edges(graph).size();  // 33: embedding, 32 blocks and head in a chain

using TensorId = std::int32_t;
using OperatorId = std::int32_t;
using LayerId = std::int32_t;

/// A value that flows between operators, or a parameter. Sizes are for the graph's `samples`.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  Dtype dtype = Dtype::bf16;
  bool is_parameter = false;
  OperatorId producer = -1;  ///< -1 for graph inputs and parameters.

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// How an operator may be sharded over a tensor-parallel group. What communication follows from it
/// is derived from the tensors: a `column` (or `heads`, `vocab`) operator that reads a tensor of
/// the replicated region gathers it under sequence parallelism, or all-reduces its gradient
/// otherwise; a `row` operator reduces its output (Shoeybi et al. 2019 §3; Korthikanti et al. 2022
/// §4).
enum class Split : std::uint8_t {
  replicated,  ///< Each rank does all of it.
  sequence,    ///< Split over the sequence under sequence parallelism, else replicated.
  column,      ///< Weight split by output features: n / tp.
  row,         ///< Weight split by input features: k / tp; partial sums are reduced.
  heads,       ///< Attention heads / tp.
  features,    ///< Elementwise work on features that are already split: elements / tp.
  vocab,       ///< Embedding table or logits split by vocabulary entries.
  expert,      ///< Experts / ep, and each expert's inner width / expert tensor degree.
};

// What an operator computes. Sizes are for the whole graph's `samples`, before any split.

/// batch × [m × k]·[k × n]. With `weight`, the second operand is a parameter.
struct MatMul {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool weight = true;
  bool bias = false;
  friend bool operator==(const MatMul&, const MatMul&) = default;
};

/// softmax(Q·Kᵀ)·V. Inputs Q, K, V; scores are `samples × heads × q_len × kv_len`.
struct Attention {
  std::int64_t samples = 1, heads = 1, kv_heads = 1, q_len = 1, kv_len = 1;
  std::int64_t qk_dim = 1, v_dim = 1;
  std::int64_t window = 0;  ///< Sliding window length; 0 for none.
  bool causal = false;
  bool flash = true;     ///< Scores are never written to memory.
  bool dropout = false;  ///< On the scores, as in GPT-2/BERT (matters when not flash).
  friend bool operator==(const Attention&, const Attention&) = default;
};

/// Direct convolution over 1 to 3 spatial dimensions, transposed when `transposed`.
struct Convolution {
  std::int64_t samples = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::int64_t out_positions = 1;     ///< Product of the output's spatial sizes.
  std::int64_t in_positions = 1;      ///< Product of the input's spatial sizes.
  std::int64_t kernel_positions = 1;  ///< Product of the kernel's spatial sizes.
  bool transposed = false;
  bool bias = false;
  friend bool operator==(const Convolution&, const Convolution&) = default;
};

/// A recurrent cell unrolled over time: `steps` sequential [rows × k]·[k × n] GEMMs.
struct Recurrent {
  std::int64_t steps = 1, rows = 1, n = 1, k = 1;
  friend bool operator==(const Recurrent&, const Recurrent&) = default;
};

/// Layer, RMS, batch or group normalisation over `elements`, normalised in rows of `width`.
struct Normalization {
  std::int64_t elements = 0, width = 1;
  bool rms = false;
  friend bool operator==(const Normalization&, const Normalization&) = default;
};

struct Softmax {
  std::int64_t elements = 0, width = 1;
  friend bool operator==(const Softmax&, const Softmax&) = default;
};

/// Any pointwise function: `flops_per_element` arithmetic per output element.
struct Elementwise {
  std::int64_t elements = 0;
  double flops_per_element = 1;
  /// What the backward pass needs kept: inputs (GeLU, product), a byte mask (dropout, ReLU), or
  /// nothing.
  enum class Keeps : std::uint8_t { nothing, inputs, mask } keeps = Keeps::inputs;
  friend bool operator==(const Elementwise&, const Elementwise&) = default;
};

/// `lookups` rows of `width` from a table with `rows` rows; with pooling > 1, each output row is
/// the sum of that many (an embedding bag).
struct Embedding {
  std::int64_t rows = 1, width = 1, lookups = 1, pooling = 1;
  friend bool operator==(const Embedding&, const Embedding&) = default;
};

/// Router scores: [tokens × hidden]·[hidden × experts], then the top `top_k` of each token.
struct MoeRouter {
  std::int64_t tokens = 1, hidden = 1, experts = 1, top_k = 1;
  friend bool operator==(const MoeRouter&, const MoeRouter&) = default;
};

/// All routed experts' feed-forward networks together: each token visits `top_k` of `experts`,
/// `matrices` of [hidden × inner] (3 for gated, 2 for plain). Tokens travel to their expert and
/// back.
struct MoeExperts {
  std::int64_t tokens = 1, hidden = 1, inner = 1, experts = 1, top_k = 1, matrices = 3;
  bool biased = false;   ///< Both GEMMs add a bias of the expert's.
  bool clamped = false;  ///< What the activation reads is clamped before.
  /// Each has room for as many tokens of a sender as fall to it on average: more are dropped, fewer
  /// padded, so that all sizes are known beforehand. A token is sent once for each of its experts.
  bool padded = false;
  friend bool operator==(const MoeExperts&, const MoeExperts&) = default;
};

/// Sum, mean, max or pooling: reads `elements`, writes what the output tensor holds.
struct Reduction {
  std::int64_t elements = 0;
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// Concatenation, transpose, slice, gather, padding, upsampling: bytes move, nothing is computed.
/// `view` costs nothing (reshape, identity).
struct DataMovement {
  bool view = false;
  friend bool operator==(const DataMovement&, const DataMovement&) = default;
};

/// Cross entropy over `rows` rows of `width` logits.
struct Loss {
  std::int64_t rows = 1, width = 1;
  friend bool operator==(const Loss&, const Loss&) = default;
};

/// One optimizer step over `parameters` elements (only in training graphs).
struct OptimizerStep {
  std::int64_t parameters = 0;
  friend bool operator==(const OptimizerStep&, const OptimizerStep&) = default;
};

using OperatorKind =
    std::variant<MatMul, Attention, Convolution, Recurrent, Normalization, Softmax, Elementwise,
                 Embedding, MoeRouter, MoeExperts, Reduction, DataMovement, Loss, OptimizerStep>;

/// Which part of training an operator does. Only training graphs hold others than `forward`.
enum class Pass : std::uint8_t {
  forward,          ///< What its kind says.
  input_gradient,   ///< The gradients of the activations that an operator of this kind read.
  weight_gradient,  ///< The gradients of the parameters that an operator of this kind read.
};

struct Operator {
  std::string name;
  OperatorKind kind;
  std::vector<TensorId> inputs;  ///< Activations and parameters, in operand order.
  std::vector<TensorId> outputs;
  Split split = Split::replicated;
  LayerId layer = 0;
  Pass pass = Pass::forward;

  friend bool operator==(const Operator&, const Operator&) = default;
};

/// A convex group of operators that planners treat as one: an embedding, a transformer block, a
/// head.
struct Layer {
  std::string name;
  OperatorId first = 0;  ///< Its operators are [first, last) in Graph::operators.
  OperatorId last = 0;
  /// Layers with equal operators and wiring (not names) share a kind: numbered 0, 1, … by first
  /// occurrence. Set by find_repeated_layers().
  std::int32_t kind = -1;

  friend bool operator==(const Layer&, const Layer&) = default;
};

/// What selective recomputation computes again in the backward pass, so that its output need not be
/// kept. Korthikanti et al. 2022 (§5) repeat attention's core and keep its output.
struct SelectiveParts {
  bool attention = true;         ///< Attention's core, from Q, K and V …
  bool attention_output = true;  ///< … and its output is not kept either.
  bool norms = true;             ///< Normalisations whose output no experts read.
  bool expert_norms = true;      ///< Those whose output experts read.
  bool activations = true;       ///< Pointwise functions and softmaxes.
  friend bool operator==(const SelectiveParts&, const SelectiveParts&) = default;
};

/// A model as operators in topological order. Knows nothing of hardware.
struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;  ///< Producers before consumers, grouped by layer.
  std::vector<Layer> layers;        ///< In topological order of the layer graph.
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::int64_t samples = 1;  ///< How many samples one pass over the graph processes.
  std::int64_t seq_len = 0;  ///< Tokens per sample; 0 when the model has no sequence.
  SelectiveParts selective;  ///< As its trainer recomputes.
  /// What the model's source says of the whole model; its blocks are layers of the graph.
  std::optional<ModelShape> shape;

  friend bool operator==(const Graph&, const Graph&) = default;
};

/// Number of parameters: the elements of all parameter tensors, each counted once however often it
/// is used. Throws Error when it overflows 64 bits.
std::int64_t parameter_count(const Graph& graph);

/// An edge of the layer graph: all tensors that `source` produces and `target` reads.
struct LayerEdge {
  LayerId source = 0;
  LayerId target = 0;
  double bytes = 0;  ///< Forward bytes for the graph's samples; each tensor counted once.
  friend bool operator==(const LayerEdge&, const LayerEdge&) = default;
};

/// Edges of the layer graph in order of (source, target). Linear in the graph's size.
std::vector<LayerEdge> layer_edges(const Graph& graph);

/// Checks what every Graph promises: ids in range, unique operator names, producers before
/// consumers (no cycle), each tensor with at most one producer, layers that tile the operators,
/// positive sizes that do not overflow. Throws Error naming the operator and `file`. Linear in the
/// graph's size.
void check_graph(const Graph& graph, const std::string& file);

/// The part of check_graph that holds before operators are ordered and grouped into layers: ids,
/// names, producers and sizes. Throws Error.
void check_operators(const Graph& graph, const std::string& file);

}  // namespace braid
