#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/frontend/transformer_block.h"
#include "braid/graph/graph.h"

namespace braid {

/// Layers that predict tokens beyond the next one in training (DeepSeek-V3 report 2024,
/// arXiv:2412.19437, section 2.2): each reads what the one before wrote and the embedding of the
/// token it is about, and shares the model's table and output projection.
struct MtpSpec {
  std::int64_t count = 0;         ///< 0: none.
  std::vector<BlockSpec> blocks;  ///< Of one of them, of the model's hidden size.
  bool shared = false;            ///< All have the same parameters.
};

/// How a router chooses experts, where the config does not say otherwise.
struct RouterSpec {
  bool sigmoid = false;  ///< Scores are sigmoids, and experts have biases; else they are a softmax.
  double scaling =
      0;  ///< Of what the chosen experts give, `routed_scaling_factor`; 0: it has none.
  std::int64_t groups = 0,
               top_groups = 0;  ///< Of experts: `n_group`, `topk_group`; 0: it has none.
  bool greedy = false;          ///< These count only where `topk_method` is another than greedy.
  bool all_experts = false;  ///< The softmax is over all, not the chosen, but for `norm_topk_prob`.
};

/// A decoder-only transformer, as most language models are.
struct DecoderSpec {
  std::string name;
  std::vector<BlockSpec> blocks;  ///< At least one; all of one hidden size.
  std::int64_t vocab = 1;
  std::int64_t embedding_width = 0;   ///< Where it is not the hidden size, projected in and out.
  std::int64_t positions = 0;         ///< Learned positions that a sample may have; 0: none.
  std::int64_t unused_positions = 0;  ///< Rows of the position table before the first.
  std::int64_t usual_tokens = 0;      ///< Of a sample where nothing says; 0: something must.
  bool final_norm = true;
  bool tied_embeddings = false;
  bool dropout = false;          ///< On the embeddings.
  bool norm_from_one = false;    ///< Norms multiply by one more than their weights.
  bool attention_sinks = false;  ///< ModelShape::attention_sinks.
  RouterSpec router;             ///< Where blocks have experts.
  MtpSpec mtp;                   ///< Only where embeddings are as wide as the hidden size.
};

/// Forward graph with loss for one sample of `seq_len` tokens: an embedding layer, a layer per
/// block, one for multi-token prediction (MTP) if the model has it, and a layer with the final
/// norm, output projection and loss (of all predictions).
Graph build_decoder(const DecoderSpec& spec, std::int64_t seq_len);

}  // namespace braid
