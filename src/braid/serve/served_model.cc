#include "braid/serve/served_model.h"

#include <algorithm>
#include <span>

#include "braid/base/embedded_file.h"
#include "braid/base/error.h"
#include "braid/base/named_entry.h"
#include "braid/frontend/model.h"
#include "braid/serve/served_config.h"

namespace braid {

std::span<const EmbeddedFile> embedded_served();

namespace {

bool same_layer(const ServedLayer& a, const ServedLayer& b) {
  return a.mixing == b.mixing && a.window == b.window && a.inner == b.inner &&
         a.experts == b.experts;
}

ServedLayer attention_of(const ModelShape& shape) {
  ServedLayer layer;
  const auto heads = static_cast<double>(shape.heads);
  layer.heads = heads;
  if (shape.latent_attention) {
    layer.mixing = TokenMixing::latent;
    layer.kv_heads = heads;
    layer.q_rank = static_cast<double>(shape.q_rank);
    layer.kv_rank = static_cast<double>(shape.kv_rank);
    layer.qk_dim = static_cast<double>(shape.qk_dim);
    layer.rotary_dim = static_cast<double>(shape.rotary_dim);
    layer.v_dim = static_cast<double>(shape.head_dim);
    return layer;
  }
  layer.mixing = TokenMixing::attention;
  layer.kv_heads = static_cast<double>(shape.kv_heads > 0 ? shape.kv_heads : shape.heads);
  layer.head_dim = static_cast<double>(shape.head_dim);
  return layer;
}

void set_feeding(const ModelShape& shape, bool experts, ServedLayer& layer) {
  layer.gated = shape.gated;
  if (!experts) {
    layer.inner = static_cast<double>(shape.inner);
    return;
  }
  layer.experts = static_cast<double>(shape.experts);
  layer.top_k = static_cast<double>(shape.top_k);
  layer.expert_inner = static_cast<double>(shape.expert_inner);
  layer.shared_inner = static_cast<double>(shape.shared_inner);
  layer.expert_width = static_cast<double>(shape.expert_latent);
}

/// A letter of a hybrid's pattern.
ServedLayer hybrid_layer(const ModelShape& shape, char letter) {
  ServedLayer layer;
  if (letter == '*') {
    layer = attention_of(shape);
  } else if (letter == 'M') {
    layer.mixing = TokenMixing::state_space;
    layer.state_heads = static_cast<double>(shape.state_heads);
    layer.key_heads = static_cast<double>(shape.state_groups);
    layer.key_dim = static_cast<double>(shape.state_size);
    layer.value_dim = static_cast<double>(shape.state_head_dim);
  } else {
    set_feeding(shape, letter == 'E', layer);
  }
  return layer;
}

ServedLayer block_layer(const ModelShape& shape, std::size_t block) {
  ServedLayer layer = attention_of(shape);
  const bool windowed = shape.windowed_blocks.empty() || (block < shape.windowed_blocks.size() &&
                                                          shape.windowed_blocks[block] == '1');
  if (windowed) layer.window = static_cast<double>(shape.window);
  bool experts = shape.experts > 0 && block >= static_cast<std::size_t>(shape.dense_blocks);
  if (block < shape.expert_blocks.size()) experts = shape.expert_blocks[block] == '1';
  set_feeding(shape, experts, layer);
  return layer;
}

}  // namespace

std::int64_t ServedModel::layer_count() const {
  std::int64_t count = 0;
  for (const ServedLayer& layer : layers) count += layer.count;
  return count;
}

ServedModel served_model(const ModelShape& shape, const std::string& name) {
  if (shape.blocks <= 0 || !shape.causal || shape.vocab <= 0) {
    throw Error(name + " is no decoder-only language model",
                "serving is planned for models that generate text");
  }
  ServedModel model;
  model.name = name;
  model.type = shape.model_type;
  model.hidden = static_cast<double>(shape.hidden);
  model.vocab = static_cast<double>(shape.vocab);
  model.tied_embeddings = shape.tied_embeddings;
  model.positions = shape.positions;
  const bool hybrid = !shape.layer_pattern.empty();
  const std::size_t count =
      hybrid ? shape.layer_pattern.size() : static_cast<std::size_t>(shape.blocks);
  for (std::size_t i = 0; i < count; ++i) {
    const ServedLayer layer =
        hybrid ? hybrid_layer(shape, shape.layer_pattern[i]) : block_layer(shape, i);
    const auto found =
        std::find_if(model.layers.begin(), model.layers.end(),
                     [&](const ServedLayer& other) { return same_layer(layer, other); });
    if (found != model.layers.end()) {
      ++found->count;
    } else {
      model.layers.push_back(layer);
    }
  }
  return model;
}

ServedModel load_served_model(const std::string& source) {
  const std::span<const EmbeddedFile> files = embedded_served();
  const auto own = std::find_if(files.begin(), files.end(),
                                [&](const EmbeddedFile& file) { return file.name == source; });
  if (own != files.end()) {
    const Document document =
        Document::parse(own->text, Document::Syntax::json, std::string(own->file));
    return served_from_config(document.root(), source);
  }
  const Graph graph = load_model(source, {});
  if (!graph.shape) {
    throw Error(source + " is not a language model that a config.json describes",
                "serving is planned for models that generate text");
  }
  ServedModel model = served_model(*graph.shape, source);
  if (model.positions == 0) model.positions = graph.seq_len;
  return model;
}

std::vector<std::string> served_model_names() { return names_of(embedded_served()); }

LayerWeights layer_weights(const ServedLayer& layer, double hidden) {
  LayerWeights weights;
  const ServedLayer& l = layer;
  switch (l.mixing) {
    case TokenMixing::none:
      break;
    case TokenMixing::attention:
      weights.mixing = hidden * l.head_dim * ((l.gated_output ? 3 : 2) * l.heads + 2 * l.kv_heads);
      break;
    case TokenMixing::latent:
      weights.mixing =
          hidden * (l.kv_rank + l.rotary_dim) +
          (l.q_rank > 0 ? l.q_rank * (hidden + l.heads * l.qk_dim) : hidden * l.heads * l.qk_dim) +
          l.kv_rank * l.heads * (l.qk_dim - l.rotary_dim + l.v_dim) + l.heads * l.v_dim * hidden +
          l.index_dim * (hidden + l.q_rank * l.index_heads);
      break;
    case TokenMixing::delta_rule:
    case TokenMixing::state_space:
      weights.mixing = hidden * (3 * l.state_heads * l.value_dim + 2 * l.key_heads * l.key_dim +
                                 2 * l.state_heads);
      break;
  }
  const double matrices = l.gated ? 3 : 2;
  weights.dense = matrices * hidden * (l.inner + l.shared_inner);
  const double width = l.expert_width > 0 ? l.expert_width : hidden;
  weights.experts = matrices * width * l.expert_inner * l.experts;
  if (l.expert_width > 0) weights.dense += 2 * hidden * width;
  weights.other = 2 * hidden + hidden * l.experts;
  return weights;
}

double parameter_count(const ServedModel& model) {
  double count = model.hidden * model.vocab * (model.tied_embeddings ? 1 : 2) + model.hidden;
  for (const ServedLayer& layer : model.layers) {
    const LayerWeights weights = layer_weights(layer, model.hidden);
    count += static_cast<double>(layer.count) *
             (weights.mixing + weights.dense + weights.experts + weights.other);
  }
  return count;
}

}  // namespace braid
