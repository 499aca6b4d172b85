#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "braid/graph/graph.h"

namespace braid {

/// A decoder-only or encoder-only transformer whose blocks are alike, in the terms in which
/// trainers are told about models. Zero and false stand for "the model has none".
struct ModelShape {
  std::int64_t first_block = 0;  ///< Layers [first_block, first_block + blocks) are the blocks.
  std::int64_t blocks = 0;
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t inner = 0;      ///< Width of the dense feed-forward network.
  std::int64_t vocab = 0;      ///< Rows of the embedding table.
  std::int64_t positions = 0;  ///< Learned positions.
  std::int64_t window = 0;     ///< Sliding attention window.
  bool causal = true;
  bool rotary = false;            ///< Positions enter by rotating queries and keys.
  bool latent_attention = false;  ///< Keys and values are compressed (heads of two widths).
  bool gated = false;             ///< SwiGLU-like: two up projections.
  bool rms = false;
  bool qkv_bias = false;
  bool linear_bias = false;  ///< Of the other GEMMs of a block.
  bool qk_norm = false;
  bool tied_embeddings = false;
  bool dropout = false;
  std::string activation;  ///< "swiglu", "geglu", "gelu", "relu" …; empty when the graph has no
                           ///< name for it.
  std::int64_t experts = 0, top_k = 0, expert_inner = 0, shared_inner = 0;
  bool shared_gate = false;       ///< The shared experts' output is weighted for each token.
  std::int64_t dense_blocks = 0;  ///< Leading blocks without experts, in a model with experts.

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// Reads the shape off a forward graph by its operators; names tell the activation function only.
/// nullopt when it is not such a transformer: no embedding table, a block with several attentions,
/// with parallel halves or with norms behind its halves, blocks that differ but for leading dense
/// ones, or GEMMs without a known split. Linear in the graph's size.
std::optional<ModelShape> model_shape(const Graph& graph);

}  // namespace braid
