#include "braid/frontend/hugging_face.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "braid/base/suggest.h"
#include "braid/frontend/bert.h"
#include "braid/frontend/candle_uno.h"
#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_configs.h"
#include "braid/frontend/decoder_shape.h"
#include "braid/frontend/dlrm.h"
#include "braid/frontend/gnmt.h"
#include "braid/frontend/multi_modal.h"
#include "braid/frontend/resnet.h"
#include "braid/frontend/t5.h"
#include "braid/frontend/trans_gan.h"
#include "braid/frontend/vit.h"

namespace braid {
namespace {

std::int64_t longest_sample(const Value& config, const DecoderSpec& spec) {
  constexpr std::string_view key = "max_position_embeddings";
  return spec.usual_tokens > 0 ? size_or(config, key, spec.usual_tokens, kMostTokens)
                               : size_of(config, key, kMostTokens);
}

bool has_experts(const BlockSpec& block) { return block.experts.count > 0; }

/// Leaves `count` of the blocks before the first with experts, where there is one.
void keep_dense(std::int64_t count, std::vector<BlockSpec>& blocks) {
  const auto first = std::find_if(blocks.begin(), blocks.end(), has_experts);
  if (first == blocks.end() || first - blocks.begin() <= count) return;
  blocks.erase(blocks.begin() + count, first);
}

template <DecoderSpec (*Read)(const Value&)>
Graph decoder(const Value& config, const std::string& name, const ModelOptions& options) {
  DecoderSpec spec = Read(config);
  spec.name = name;
  if (options.dense_layers >= 0) keep_dense(options.dense_layers, spec.blocks);
  if (options.layers > 0 && static_cast<std::size_t>(options.layers) < spec.blocks.size()) {
    spec.blocks.resize(static_cast<std::size_t>(options.layers));
  }
  const bool learned = spec.positions > 0;
  const std::int64_t longest =
      learned ? spec.positions
              : (options.seq_len > 0 ? options.seq_len : longest_sample(config, spec));
  Graph graph = build_decoder(spec, sample_tokens(options, longest, learned));
  graph.shape = decoder_shape(config, spec);
  return graph;
}

/// One `model_type` of a config.json and what builds it.
struct Architecture {
  std::string_view model_type;
  Graph (*build)(const Value& config, const std::string& name, const ModelOptions& options);
};

constexpr auto kArchitectures = std::to_array<Architecture>({
    {"bert", bert_from_config},
    {"candle_uno", candle_uno_from_config},
    {"deepseek_v2", decoder<read_deepseek>},
    {"deepseek_v3", decoder<read_deepseek>},
    {"dlrm", dlrm_from_config},
    {"gemma", decoder<read_gemma>},
    {"gemma2", decoder<read_gemma2>},
    {"gemma3_text", decoder<read_gemma3>},
    {"gnmt", gnmt_from_config},
    {"gpt2", decoder<read_gpt2>},
    {"gpt_neox", decoder<read_gpt_neox>},
    {"gpt_oss", decoder<read_gpt_oss>},
    {"kimi_k2", decoder<read_deepseek>},
    {"llama", decoder<read_llama>},
    {"mistral", decoder<read_mistral>},
    {"mixtral", decoder<read_mixtral>},
    {"multi_modal_transformer", multi_modal_from_config},
    {"nemotron_h", decoder<read_nemotron_h>},
    {"opt", decoder<read_opt>},
    {"phi3", decoder<read_phi3>},
    {"qwen2", decoder<read_qwen2>},
    {"qwen2_moe", decoder<read_qwen2_moe>},
    {"qwen3", decoder<read_qwen3>},
    {"qwen3_moe", decoder<read_qwen3_moe>},
    {"resnet", resnet_from_config},
    {"t5", t5_from_config},
    {"transgan", trans_gan_from_config},
    {"vit", vit_from_config},
});

const Architecture* architecture_of(std::string_view model_type) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.model_type == model_type) return &architecture;
  }
  return nullptr;
}

/// What may stand for an unknown one.
std::string remedy_for(std::string_view model_type) {
  std::vector<std::string_view> known;
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    known.push_back(architecture.model_type);
    names += (names.empty() ? "known: " : ", ") + std::string(architecture.model_type);
  }
  const std::string meant = nearest(model_type, known);
  return meant.empty() ? names : "did you mean '" + meant + "'? " + names;
}

}  // namespace

Graph graph_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  const Value type = config["model_type"];
  if (!has(config, "model_type")) type.fail("required key is missing", remedy_for(""));
  const std::string_view model_type = type.as_string();
  if (const Architecture* known = architecture_of(model_type)) {
    return known->build(config, name, options);
  }
  // Models of texts and images keep their language model's sizes apart.
  if (has(config, "text_config") && has(config["text_config"], "model_type")) {
    const Value text = config["text_config"];
    if (const Architecture* known = architecture_of(text["model_type"].as_string())) {
      return known->build(text, name + " (language model)", options);
    }
  }
  type.fail("unknown architecture '" + std::string(model_type) + "'", remedy_for(model_type));
}

}  // namespace braid
