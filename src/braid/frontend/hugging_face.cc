#include "braid/frontend/hugging_face.h"

#include <array>
#include <utility>

#include "braid/base/suggest.h"
#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder.h"

namespace braid {
namespace {

/// Heads, their size, and grouping, as Llama-like configs give them.
void read_heads(const Value& config, DecoderSpec& spec) {
  spec.heads = size_of(config, "num_attention_heads");
  spec.kv_heads = size_or(config, "num_key_value_heads", spec.heads);
  if (spec.heads % spec.kv_heads != 0) {
    config["num_key_value_heads"].fail(std::to_string(spec.kv_heads) + " does not divide " +
                                       std::to_string(spec.heads) + " attention heads");
  }
  const Value head_dim = config["head_dim"];
  if (head_dim.exists() && !head_dim.is_null()) {
    spec.head_dim = head_dim.as_int_in(1, kMostWidth);
    return;
  }
  if (spec.hidden % spec.heads != 0) {
    config["num_attention_heads"].fail(std::to_string(spec.heads) +
                                           " does not divide the hidden size " +
                                           std::to_string(spec.hidden),
                                       "give head_dim");
  }
  spec.head_dim = spec.hidden / spec.heads;
}

DecoderSpec read_llama_like(const Value& config) {
  DecoderSpec spec;
  spec.layers = size_of(config, "num_hidden_layers", kMostLayers);
  spec.hidden = size_of(config, "hidden_size");
  spec.inner = size_of(config, "intermediate_size");
  spec.vocab = size_of(config, "vocab_size");
  read_heads(config, spec);
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", false);
  return spec;
}

DecoderSpec read_llama(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  spec.qkv_bias = spec.out_bias = flag_or(config, "attention_bias", false);
  spec.mlp_bias = flag_or(config, "mlp_bias", false);
  return spec;
}

DecoderSpec read_mistral(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  spec.window = size_or(config, "sliding_window", 0, kMostWidth * 16);
  return spec;
}

DecoderSpec read_mixtral(const Value& config) {
  DecoderSpec spec = read_mistral(config);
  spec.experts = size_of(config, "num_local_experts");
  spec.top_k = config["num_experts_per_tok"].as_int_in(1, spec.experts);
  spec.expert_inner = spec.inner;
  return spec;
}

DecoderSpec read_qwen2(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  spec.qkv_bias = true;
  return spec;
}

DecoderSpec read_qwen3(const Value& config) {
  DecoderSpec spec = read_llama_like(config);
  spec.qk_norm = true;
  return spec;
}

DecoderSpec read_gpt2(const Value& config) {
  DecoderSpec spec;
  spec.layers = size_of(config, "n_layer", kMostLayers);
  spec.hidden = size_of(config, "n_embd");
  spec.heads = spec.kv_heads = size_of(config, "n_head");
  if (spec.hidden % spec.heads != 0) {
    config["n_head"].fail(std::to_string(spec.heads) + " does not divide the hidden size " +
                          std::to_string(spec.hidden));
  }
  spec.head_dim = spec.hidden / spec.heads;
  spec.inner = size_or(config, "n_inner", 4 * spec.hidden);
  spec.vocab = size_of(config, "vocab_size");
  spec.positions = size_of(config, "n_positions");
  spec.gated = spec.rms = false;
  spec.qkv_bias = spec.out_bias = spec.mlp_bias = true;
  spec.tied_embeddings = flag_or(config, "tie_word_embeddings", true);
  const Value dropout = config["resid_pdrop"];
  spec.dropout = !dropout.exists() || dropout.as_double_in(0, 1) > 0;
  return spec;
}

std::int64_t seq_len_for(const DecoderSpec& spec, const Value& config,
                         const ModelOptions& options) {
  if (options.seq_len == 0) {
    return spec.positions > 0 ? spec.positions
                              : size_of(config, "max_position_embeddings", 1 << 28);
  }
  if (spec.positions > 0 && options.seq_len > spec.positions) {
    throw Error(Where{"", 0, "--seq-len"},
                std::to_string(options.seq_len) + " tokens, but the model has " +
                    std::to_string(spec.positions) + " learned positions");
  }
  return options.seq_len;
}

template <DecoderSpec (*Read)(const Value&)>
Graph decoder(const Value& config, const std::string& name, const ModelOptions& options) {
  DecoderSpec spec = Read(config);
  spec.name = name;
  return build_decoder(spec, seq_len_for(spec, config, options));
}

/// One `model_type` of a config.json and what builds it.
struct Architecture {
  std::string_view model_type;
  Graph (*build)(const Value& config, const std::string& name, const ModelOptions& options);
};

constexpr auto kArchitectures = std::to_array<Architecture>({
    {"gpt2", decoder<read_gpt2>},
    {"llama", decoder<read_llama>},
    {"mistral", decoder<read_mistral>},
    {"mixtral", decoder<read_mixtral>},
    {"qwen2", decoder<read_qwen2>},
    {"qwen3", decoder<read_qwen3>},
});

}  // namespace

Graph graph_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  const Value type = config["model_type"];
  const std::string_view model_type = type.as_string();
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.model_type == model_type) return architecture.build(config, name, options);
  }
  std::vector<std::string_view> known;
  known.reserve(kArchitectures.size());
  for (const Architecture& architecture : kArchitectures) known.push_back(architecture.model_type);
  type.fail("unknown architecture '" + std::string(model_type) + "'",
            did_you_mean(model_type, known));
}

}  // namespace braid
