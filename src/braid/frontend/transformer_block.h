#pragma once

#include <cstdint>
#include <string>

#include "braid/frontend/graph_builder.h"

namespace braid {

/// Pointwise function of a feed-forward network.
enum class Activation : std::uint8_t { gelu, relu, relu_squared, silu };

/// Multi-head attention with its projections (Vaswani et al. 2017, §3.2); with fewer key/value
/// heads grouped (Ainslie et al. 2023); with `kv_rank` multi-head latent attention (DeepSeek-AI
/// 2024, arXiv:2405.04434, §2.1).
struct AttentionSpec {
  std::int64_t heads = 1, kv_heads = 1;
  std::int64_t qk_dim = 1, v_dim = 1;  ///< Of one head.
  std::int64_t rotary_dim = 0;         ///< Rotated part of qk_dim; 0: no rotary positions.
  std::int64_t window = 0;             ///< Sliding window; 0: none.
  bool causal = true;
  bool qkv_bias = false, out_bias = false;
  bool qk_norm = false;  ///< RMS norm of each query and key head.
  bool dropout = false;  ///< On the probabilities.
  /// Latent attention: ranks of the compressed queries (0: not compressed) and of the compressed
  /// keys and values (0: plain attention). Its keys hold `rotary_dim` features that all heads
  /// share.
  std::int64_t q_rank = 0, kv_rank = 0;
  TensorId relative_bias = -1;  ///< A table of biases that the scores read; -1: none.
};

/// Two GEMMs around an activation; gated: three (Shazeer 2020).
struct FeedForwardSpec {
  std::int64_t inner = 1;
  bool gated = true;
  Activation activation = Activation::silu;
  bool bias = false;
};

/// MoE (mixture of experts) in place of the feed-forward network; the experts' networks are gated
/// (and without biases) as FeedForwardSpec says.
struct ExpertsSpec {
  std::int64_t count = 0;  ///< Routed experts; 0: a dense feed-forward network.
  std::int64_t top_k = 0, inner = 0;
  std::int64_t shared_inner = 0;  ///< Width of the network that sees every token; 0: none.
  /// Width that the routed experts read and write, projected to and from the hidden size; 0: that.
  std::int64_t latent = 0;
  bool biased = false, clamped = false;  ///< MoeExperts'.
  bool shared_gate = false;  ///< Its output is scaled by a sigmoid of one dot product per token.
};

/// Where a block normalises.
enum class NormPlacement : std::uint8_t {
  before,   ///< What each half reads (pre-norm).
  after,    ///< What each half and its shortcut add up to (post-norm).
  around,   ///< What each half reads, and what it writes before the shortcut is added (Gemma 2).
  parallel  ///< Both halves read (each by its norm) the block's input (GPT-J, GPT-NeoX).
};

/// A state-space layer in place of attention: Mamba-2 (Dao and Gu 2024, arXiv:2405.21060), its
/// state computed chunk by chunk.
struct StateSpaceSpec {
  std::int64_t heads = 0;  ///< 0: attention.
  std::int64_t head_dim = 1, state = 1;
  std::int64_t groups = 1;   ///< Of heads that share what they write into and read from the state.
  std::int64_t kernel = 4;   ///< Taps of the causal convolution.
  std::int64_t chunk = 128;  ///< Tokens.
};

/// Which halves a block has.
enum class Halves : std::uint8_t { both, mixing, feeding };

/// A transformer block: attention or a state-space layer, then a feed-forward network or experts.
struct BlockSpec {
  std::int64_t hidden = 1;
  bool rms = true;  ///< RMS instead of layer norms.
  NormPlacement norms = NormPlacement::before;
  bool dropout = false;          ///< On what each half writes.
  Halves halves = Halves::both;  ///< Hybrid models give each half a layer of its own.
  AttentionSpec attention;
  StateSpaceSpec state_space;
  FeedForwardSpec mlp;
  ExpertsSpec experts;
};

/// Appends a block that reads x [tokens × hidden] to the layer that was begun last; returns what it
/// writes, of the same shape. Operators are named `prefix`…. Sizes are products of the spec's: each
/// at most 2^24 (2^28 tokens) keeps them within 64 bits.
TensorId transformer_block(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                           TensorId x, std::int64_t tokens);

// The halves, without norms, dropout and shortcut.

/// Attention of x to itself.
TensorId self_attention(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                        TensorId x, std::int64_t tokens);
/// Mamba-2's mixing of x over its tokens, as its kernels compute it.
TensorId state_space(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                     TensorId x, std::int64_t tokens);
/// A tensor [tokens × hidden].
struct TokenRows {
  TensorId tensor = 0;
  std::int64_t tokens = 0;
};
/// Attention of x to `memory`, neither latent nor rotary.
TensorId cross_attention(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                         const TokenRows& x, const TokenRows& memory);
/// The dense network of width `inner`.
TensorId feed_forward(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                      TensorId x, std::int64_t tokens, std::int64_t inner);
/// Router, routed experts and the shared network.
TensorId experts(GraphBuilder& builder, const BlockSpec& spec, const std::string& prefix,
                 TensorId x, std::int64_t tokens);

}  // namespace braid
