#include "braid/plan/model_shape.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid {
namespace {

/// Names by which graphs call their feed-forward network's function, gated and plain.
constexpr std::array<std::string_view, 6> kActivations = {"swiglu", "geglu", "reglu",
                                                          "silu",   "gelu",  "relu"};

using Operators = std::vector<const Operator*>;

template <typename Kind>
const Kind* as(const Operator& op) {
  return std::get_if<Kind>(&op.kind);
}

Operators operators_of(const Graph& graph, const Layer& layer) {
  Operators operators;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    operators.push_back(&graph.operators[static_cast<std::size_t>(id)]);
  }
  return operators;
}

/// Place of the layer's only attention; nullopt when it has none or several.
std::optional<std::size_t> only_attention(const Operators& operators) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (as<Attention>(*operators[i]) == nullptr) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// MTP modules look up the tokens they are about.
bool has_embedding(const Operators& operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [](const Operator* op) { return as<Embedding>(*op) != nullptr; });
}

bool has_attention(const Operators& operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [](const Operator* op) { return as<Attention>(*op) != nullptr; });
}

/// What a block looks like up to its attention.
void read_queries(const Operators& operators, std::size_t attention_at, ModelShape& shape) {
  for (std::size_t i = 0; i < attention_at; ++i) {
    const Operator& op = *operators[i];
    if (const auto* gemm = as<MatMul>(op); gemm != nullptr && gemm->weight) {
      shape.qkv_bias = shape.qkv_bias || gemm->bias;
    }
    const bool split = op.split == Split::features || op.split == Split::heads;
    if (as<Normalization>(op) != nullptr && split) shape.qk_norm = true;
    if (as<Elementwise>(op) != nullptr && split) shape.rotary = true;
  }
}

/// What follows the attention: its projection, then the feed-forward network or the experts. False
/// when the GEMMs do not fit that picture.
bool read_feed_forward(const Operators& operators, std::size_t attention_at, ModelShape& shape) {
  std::vector<std::int64_t> up;
  std::vector<std::int64_t> down;
  for (std::size_t i = attention_at + 1; i < operators.size(); ++i) {
    const Operator& op = *operators[i];
    if (const auto* gemm = as<MatMul>(op); gemm != nullptr && gemm->weight) {
      if (op.split == Split::column) up.push_back(gemm->n);
      if (op.split == Split::row) {
        if (down.empty()) shape.hidden = gemm->n;
        down.push_back(gemm->k);
      }
      if (gemm->n == 1) shape.shared_gate = true;
      shape.linear_bias = shape.linear_bias || gemm->bias;
    } else if (const auto* experts = as<MoeExperts>(op)) {
      shape.experts = experts->experts;
      shape.top_k = experts->top_k;
      shape.expert_inner = experts->inner;
      shape.gated = experts->matrices == 3;
    }
  }
  // The first GEMM back to the hidden width is the attention's projection.
  if (down.empty()) return false;
  down.erase(down.begin());
  if (down.size() > 1 || (down.empty() && shape.experts == 0)) return false;
  if (down.empty()) return up.empty();
  std::int64_t up_width = 0;
  for (const std::int64_t width : up) up_width += width;
  const std::int64_t inner = down.front();
  if (up_width != inner && up_width != 2 * inner) return false;
  shape.gated = up_width == 2 * inner;
  (shape.experts > 0 ? shape.shared_inner : shape.inner) = inner;
  return true;
}

/// Whether the feed-forward half reads what the attention half wrote, and no half normalises what
/// it writes: not so in the parallel blocks of GPT-NeoX and the sandwich norms of Gemma 2.
bool is_sequential(const Graph& graph, const Operators& operators, std::size_t attention_at) {
  int norms = 0;
  for (std::size_t i = attention_at + 1; i < operators.size(); ++i) {
    if (as<Normalization>(*operators[i]) == nullptr) continue;
    ++norms;
    const TensorId read = operators[i]->inputs.front();
    const OperatorId producer = graph.tensors[static_cast<std::size_t>(read)].producer;
    if (producer < 0) return false;
    if (graph.operators[static_cast<std::size_t>(producer)].layer != operators[i]->layer) {
      return false;
    }
  }
  return norms <= 2;
}

/// Shape of one block; fields that concern the whole model are left alone.
std::optional<ModelShape> block_shape(const Graph& graph, const Operators& operators) {
  const auto attention_at = only_attention(operators);
  if (!attention_at || !is_sequential(graph, operators, *attention_at)) return std::nullopt;
  const auto& attention = *as<Attention>(*operators[*attention_at]);
  ModelShape shape;
  shape.heads = attention.heads;
  shape.kv_heads = attention.kv_heads;
  shape.head_dim = attention.v_dim;
  shape.latent_attention = attention.qk_dim != attention.v_dim;
  shape.window = attention.window;
  shape.causal = attention.causal;
  read_queries(operators, *attention_at, shape);
  if (!read_feed_forward(operators, *attention_at, shape)) return std::nullopt;
  for (const Operator* op : operators) {
    if (const auto* norm = as<Normalization>(*op)) shape.rms = norm->rms;
    const auto* pointwise = as<Elementwise>(*op);
    if (pointwise == nullptr) continue;
    // A ReLU keeps a mask too, but works on split features.
    const bool whole = op->split == Split::sequence || op->split == Split::replicated;
    if (pointwise->keeps == Elementwise::Keeps::mask && whole) shape.dropout = true;
    const std::string name = op->name.substr(op->name.rfind('.') + 1);
    if (std::find(kActivations.begin(), kActivations.end(), name) != kActivations.end()) {
      shape.activation = name;
    }
  }
  return shape;
}

/// Whether a dense block may precede blocks like `sparse` in one model.
bool is_dense_sibling(const ModelShape& dense, ModelShape sparse) {
  sparse.experts = sparse.top_k = sparse.expert_inner = sparse.shared_inner = 0;
  sparse.shared_gate = false;
  sparse.inner = dense.inner;
  sparse.linear_bias = dense.linear_bias;
  if (sparse.activation.empty()) sparse.activation = dense.activation;
  return dense.inner > 0 && dense == sparse;
}

/// The parameter that an operator reads; -1 when it reads none.
TensorId parameter_of(const Graph& graph, const Operator& op) {
  for (const TensorId input : op.inputs) {
    if (graph.tensors[static_cast<std::size_t>(input)].is_parameter) return input;
  }
  return -1;
}

/// Embedding table, learned positions and tied output of the layers around the blocks.
bool read_ends(const Graph& graph, ModelShape& shape) {
  TensorId table = -1;
  for (const Operator& op : graph.operators) {
    const auto* embedding = as<Embedding>(op);
    if (embedding == nullptr) continue;
    if (table < 0) {
      // Tables of another width are projected, which trainers' arguments cannot say.
      if (embedding->width != shape.hidden) return false;
      shape.vocab = embedding->rows;
      table = parameter_of(graph, op);
    } else if (embedding->width == shape.hidden && shape.positions == 0) {
      shape.positions = embedding->rows;
    }
  }
  if (table < 0) return false;
  const Layer& first = graph.layers.front();
  for (const Operator* op : operators_of(graph, first)) {
    if (as<Elementwise>(*op) == nullptr) continue;
    for (const TensorId input : op->inputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
      if (tensor.is_parameter && tensor.dims.size() == 2 && tensor.dims[1] == shape.hidden) {
        shape.positions = tensor.dims[0];
      }
    }
  }
  for (const Operator& op : graph.operators) {
    if (as<MatMul>(op) == nullptr) continue;
    shape.tied_embeddings = shape.tied_embeddings ||
                            std::find(op.inputs.begin(), op.inputs.end(), table) != op.inputs.end();
  }
  return true;
}

}  // namespace

std::optional<ModelShape> model_shape(const Graph& graph) {
  if (graph.shape) return graph.shape;
  std::optional<ModelShape> shape;
  std::int64_t first = -1;
  std::int64_t blocks = 0;
  std::int64_t dense_blocks = 0;
  // Shapes of the kinds of layers seen, so that repeated blocks are read once.
  std::vector<std::pair<std::int32_t, ModelShape>> known;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    const auto seen = std::find_if(known.begin(), known.end(), [&layer](const auto& entry) {
      return layer.kind >= 0 && entry.first == layer.kind;
    });
    ModelShape block;
    if (seen != known.end()) {
      block = seen->second;
    } else {
      const Operators operators = operators_of(graph, layer);
      if (!has_attention(operators)) continue;
      if (has_embedding(operators)) return std::nullopt;
      const auto read = block_shape(graph, operators);
      if (!read) return std::nullopt;
      block = *read;
      known.emplace_back(layer.kind, block);
    }
    if (first < 0) first = static_cast<std::int64_t>(i);
    if (static_cast<std::int64_t>(i) != first + blocks) return std::nullopt;
    if (shape && block != *shape) {
      // Dense blocks may come first, as in DeepSeek's models.
      if (shape->experts > 0 || !is_dense_sibling(*shape, block)) return std::nullopt;
      block.inner = shape->inner;
      if (block.activation.empty()) block.activation = shape->activation;
      dense_blocks = blocks;
      known.back().second = block;
      shape = block;
    } else {
      shape = block;
    }
    ++blocks;
  }
  if (!shape || !read_ends(graph, *shape)) return std::nullopt;
  shape->first_block = first;
  shape->blocks = blocks;
  shape->dense_blocks = dense_blocks;
  return shape;
}

}  // namespace braid
