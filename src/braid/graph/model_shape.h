#pragma once

#include <cstdint>
#include <string>

namespace braid {

/// How rotary positions reach beyond the lengths that a model was first trained on
/// (`rope_scaling` of a config.json).
struct RotaryScaling {
  std::string kind;  ///< "llama3", "yarn", "linear"; empty: none.
  double factor = 1;
  std::int64_t original_positions = 0;
  double low_frequency = 1, high_frequency = 4;  ///< llama3's.
  double beta_fast = 32, beta_slow = 1;          ///< yarn's.
  double mscale = 1, mscale_all_dim = 0;         ///< yarn's, of latent attention.
  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

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

  // What operators do not show, or not of every model: recorded where a config.json says it.

  std::string model_type;      ///< Of the config.json; empty: the shape was read off the operators.
  std::string norms;           ///< "before" (or empty), "after", "around", "parallel" halves.
  double norm_epsilon = 0;     ///< 0: not known.
  bool norm_from_one = false;  ///< Norms multiply by 1 + weight (Gemma).
  std::int64_t embedding_width = 0;  ///< Where it is not the hidden size.
  /// Per block "1" with its window, "0" without; empty: all have it. Likewise of blocks with
  /// experts, empty: all but the leading dense ones.
  std::string windowed_blocks, expert_blocks;
  bool attention_sinks = false;  ///< Each head has a learned logit that attends to nothing.
  bool soft_capped = false;      ///< Scores and logits go through tanh.
  std::int64_t q_rank = 0, kv_rank = 0, qk_dim = 0;  ///< Latent attention's; qk_dim with rotation.
  std::int64_t rotary_dim = 0;                       ///< Rotated features of a head.
  double rotary_base = 0;                            ///< 0: not known.
  RotaryScaling rotary_scaling;
  std::string router_score;         ///< "softmax", "sigmoid"; empty: not known.
  bool router_all_experts = false;  ///< The softmax is over all experts, not those chosen.
  std::int64_t router_groups = 0, router_top_groups = 0;  ///< Of experts; 0: none.
  double router_scaling = 1;                              ///< Of the routed experts' output.
  bool router_bias = false;        ///< Per expert, for choosing only, adjusted to balance.
  std::int64_t expert_latent = 0;  ///< Width that routed experts work on; 0: the hidden size.
  bool expert_bias = false, expert_clamp = false;
  std::string layer_pattern;  ///< Hybrids, a letter a layer: M state space, * attention, - FFN, E.
  std::int64_t state_heads = 0, state_head_dim = 0, state_size = 0, state_groups = 0;
  std::int64_t mtp_modules = 0;  ///< Predictions beyond the next token.
  std::string mtp_pattern;       ///< Of one of a hybrid's.
  bool mtp_shared = false;       ///< All have the same parameters.

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

}  // namespace braid
