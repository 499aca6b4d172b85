#pragma once

#include <cstdint>
#include <string>

#include "braid/graph/graph.h"

namespace braid {

/// A decoder-only transformer, as most language models are.
struct DecoderSpec {
  std::string name;
  std::int64_t layers = 1, hidden = 1, heads = 1, kv_heads = 1, head_dim = 1;
  std::int64_t inner = 1;  ///< Width of the dense feed-forward network.
  std::int64_t vocab = 1;
  std::int64_t positions = 0;  ///< Learned positions; 0: rotary or none.
  std::int64_t window = 0;     ///< Sliding attention window; 0: none.
  bool gated = true;           ///< SwiGLU-like: two up projections.
  bool rms = true;
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;
  bool tied_embeddings = false;
  bool dropout = false;
  // Mixture of experts; 0 experts: dense.
  std::int64_t experts = 0, top_k = 0, expert_inner = 0, shared_inner = 0;
};

/// Forward graph with loss for one sample of `seq_len` tokens: an embedding layer, a layer per
/// block, and a layer with the final norm, output projection and loss.
Graph build_decoder(const DecoderSpec& spec, std::int64_t seq_len);

}  // namespace braid
