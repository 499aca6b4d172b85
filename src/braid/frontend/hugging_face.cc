#include "braid/frontend/hugging_face.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/suggest.h"
#include "braid/frontend/bert.h"
#include "braid/frontend/candle_uno.h"
#include "braid/frontend/config_fields.h"
#include "braid/frontend/decoder_families.h"
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

Graph decoder(const DecoderType& type, const Value& config, const std::string& name,
              const ModelOptions& options) {
  DecoderSpec spec = type.read(config);
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

/// One `model_type` of a config.json that is no decoder-only model, and what builds it.
struct Architecture {
  std::string_view model_type;
  Graph (*build)(const Value& config, const std::string& name, const ModelOptions& options);
};

constexpr auto kArchitectures = std::to_array<Architecture>({
    {"bert", bert_from_config},
    {"candle_uno", candle_uno_from_config},
    {"dlrm", dlrm_from_config},
    {"gnmt", gnmt_from_config},
    {"multi_modal_transformer", multi_modal_from_config},
    {"resnet", resnet_from_config},
    {"t5", t5_from_config},
    {"transgan", trans_gan_from_config},
    {"vit", vit_from_config},
});

/// Nullopt: it is of no known type.
std::optional<Graph> graph_of(const Value& config, const std::string& name,
                              const ModelOptions& options) {
  const std::string_view model_type = config["model_type"].as_string();
  for (const Architecture& each : kArchitectures) {
    if (each.model_type == model_type) return each.build(config, name, options);
  }
  for (const DecoderFamily* family : kDecoderFamilies) {
    for (const DecoderType& type : *family) {
      if (type.model_type == model_type) return decoder(type, config, name, options);
    }
  }
  return std::nullopt;
}

/// What may stand for an unknown one.
std::string remedy_for(std::string_view model_type) {
  std::vector<std::string_view> known;
  known.reserve(kArchitectures.size());
  for (const Architecture& each : kArchitectures) known.push_back(each.model_type);
  for (const DecoderFamily* family : kDecoderFamilies) {
    for (const DecoderType& type : *family) known.push_back(type.model_type);
  }
  std::sort(known.begin(), known.end());
  std::string names;
  for (const std::string_view each : known) {
    names += (names.empty() ? "known: " : ", ") + std::string(each);
  }
  const std::string meant = nearest(model_type, known);
  return meant.empty() ? names : "did you mean '" + meant + "'? " + names;
}

}  // namespace

Graph graph_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  const Value type = config["model_type"];
  if (!has(config, "model_type")) type.fail("required key is missing", remedy_for(""));
  if (std::optional<Graph> graph = graph_of(config, name, options)) return std::move(*graph);
  // Models of texts and images keep their language model's sizes apart.
  if (has(config, "text_config") && has(config["text_config"], "model_type")) {
    std::optional<Graph> graph =
        graph_of(config["text_config"], name + " (language model)", options);
    if (graph) return std::move(*graph);
  }
  const std::string_view model_type = type.as_string();
  type.fail("unknown architecture '" + std::string(model_type) + "'", remedy_for(model_type));
}

}  // namespace braid
