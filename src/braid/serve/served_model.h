#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph/model_shape.h"

namespace braid {

/// How a layer mixes tokens.
enum class TokenMixing : std::uint8_t {
  none,
  attention,   ///< Grouped queries, maybe with a window.
  latent,      ///< Multi-head latent attention: the cache holds what all heads share.
  delta_rule,  ///< Gated delta rule: a state of fixed size in place of a cache.
  state_space  ///< Mamba-2.
};

/// Layers of a model that are alike, in what inference computes of them. Zero: the layer has none.
struct ServedLayer {
  std::int64_t count = 1;
  TokenMixing mixing = TokenMixing::none;
  double heads = 0, kv_heads = 0, head_dim = 0;
  double window = 0;          ///< Tokens that are looked back at; 0: all.
  bool gated_output = false;  ///< Queries bring a gate of their own width along.
  // Latent attention. With `indexed_tokens`, only so many cached ones are read, which an indexer of
  // `index_heads` heads of `index_dim` chooses (DeepSeek-V3.2).
  double q_rank = 0, kv_rank = 0, qk_dim = 0, rotary_dim = 0, v_dim = 0;
  double indexed_tokens = 0, index_heads = 0, index_dim = 0;
  // States: `state_heads` of them with key_dim × value_dim numbers, `key_heads` of keys.
  double state_heads = 0, key_heads = 0, key_dim = 0, value_dim = 0;
  double inner = 0;    ///< Of a dense feed-forward network.
  bool gated = false;  ///< Of it or of the experts: two GEMMs of what comes in.
  double experts = 0, top_k = 0, expert_inner = 0, shared_inner = 0;
  double expert_width = 0;  ///< That routed experts read and write; 0: the hidden size.
};

/// A decoder-only language model as it is served.
struct ServedModel {
  std::string name;
  std::string type;  ///< `model_type` of its config.json.
  double hidden = 0, vocab = 0;
  bool tied_embeddings = false;
  std::int64_t positions = 0;  ///< Most tokens of a sequence; 0: not known.
  std::vector<ServedLayer> layers;

  std::int64_t layer_count() const;
};

/// Throws Error where the shape is not that of a decoder.
ServedModel served_model(const ModelShape& shape, const std::string& name);

/// What `source` names: a model of data/served, which holds configs of models that are served but
/// not trained here, or what load_model() takes (model.h). Throws Error.
ServedModel load_served_model(const std::string& source);

/// Names of data/served, sorted.
std::vector<std::string> served_model_names();

/// Weights of one layer by what they are multiplied in.
struct LayerWeights {
  double mixing = 0;   ///< Projections of attention or states.
  double dense = 0;    ///< Dense feed-forward network and shared experts.
  double experts = 0;  ///< Routed.
  double other = 0;    ///< Routers and norms: 16 bits.
};
LayerWeights layer_weights(const ServedLayer& layer, double hidden);

/// All parameters, embeddings included.
double parameter_count(const ServedModel& model);

}  // namespace braid
