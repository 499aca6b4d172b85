#include "braid/validate/run_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/frontend/decoder.h"
#include "braid/frontend/model.h"
#include "braid/validate/known_models.h"
#include "braid/validate/run_trainer.h"

namespace braid {
namespace {

/// Ends the names of models of which only some layers are trained.
constexpr std::string_view kCut = "truncatedlayers";

/// Dense blocks before those with experts in models that are cut, whatever the whole one has:
/// SimuMax's simu_tools/megatron_scripts/scripts/run_pretrain_deepseekv2.sh (MOE_LAYER_FREQ).
constexpr std::int64_t kDenseInCut = 1;

/// Lower-case letters and digits of a name up to a parenthesis, and with the trailer that says who
/// trained it left out: "LLAMA3.1_405B" and "llama-3-405b" are one.
std::string bare(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, name.find('('))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (const std::string_view trailer : {std::string_view("maxtext"), kCut}) {
    if (result.ends_with(trailer)) result.resize(result.size() - trailer.size());
  }
  // The models of Llama 3 and 3.1 are of the same shape.
  if (const std::size_t at = result.find("llama31"); at != std::string::npos) {
    result.erase(at + std::string_view("llama3").size(), 1);
  }
  return result;
}

std::string zoo_name(const std::string& model) {
  const std::string wanted = bare(model);
  for (const ZooEntry& entry : zoo_models()) {
    if (bare(entry.name) == wanted) return entry.name;
  }
  return "";
}

/// The same model with its layers of multi-token prediction, where the run trained them.
std::string with_token_prediction(const std::string& zoo, const MeasuredRun& run) {
  const auto says = [&](std::string_view words) {
    return run.model.find(words) != std::string::npos;
  };
  const bool trained = usual_of(run).multi_token_prediction ? !says("w/o MTP") : says("w/ MTP");
  if (!trained) return zoo;
  const std::string longer = zoo + "-mtp";
  const std::vector<ZooEntry> entries = zoo_models();
  const bool known = std::any_of(entries.begin(), entries.end(),
                                 [&](const ZooEntry& entry) { return entry.name == longer; });
  return known ? longer : zoo;
}

enum class Family { gpt, bert, mpt, llama };

Family family_of(const MeasuredRun& run) {
  const std::string name = bare(run.model);
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("bert")) return Family::bert;
  if (has("mpt")) return Family::mpt;
  for (const std::string_view word :
       {"llama", "mistral", "qwen", "internlm", "gemma", "baichuan"}) {
    if (has(word)) return Family::llama;
  }
  if (run.kv_heads > 0 && run.kv_heads < run.heads) return Family::llama;
  return run.ffn == 0 || run.ffn == 4 * run.hidden ? Family::gpt : Family::llama;
}

constexpr std::int64_t kMostLayers = 100000;
constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 28;
/// GPT-2's 50257 entries, padded to a multiple of 128 as trainers do.
constexpr std::int64_t kUsualVocab = 50304;

std::string bad_dimensions(const MeasuredRun& run) {
  if (run.layers > kMostLayers || run.hidden > kMostWidth || run.ffn > kMostWidth ||
      run.vocab > kMostWidth || run.heads > kMostWidth) {
    return "the model's dimensions are out of range";
  }
  if (run.hidden % run.heads != 0) return "heads do not divide the hidden size";
  if (run.kv_heads > 0 && run.heads % run.kv_heads != 0) return "kv_heads do not divide the heads";
  return "";
}

/// `head_dim` 0: the heads share the hidden size.
Graph described_model(const MeasuredRun& run, Family family, std::int64_t head_dim = 0) {
  const bool llama = family == Family::llama;
  const bool mpt = family == Family::mpt;
  BlockSpec block;
  block.hidden = run.hidden;
  block.rms = llama;
  block.attention.heads = run.heads;
  block.attention.kv_heads = run.kv_heads > 0 ? run.kv_heads : run.heads;
  block.attention.qk_dim = block.attention.v_dim = head_dim > 0 ? head_dim : run.hidden / run.heads;
  block.attention.causal = family != Family::bert;
  block.mlp.inner = run.ffn > 0 ? run.ffn : 4 * run.hidden;
  block.mlp.gated = llama;
  block.mlp.activation = llama ? Activation::silu : Activation::gelu;
  if (llama) {
    block.attention.rotary_dim = block.attention.qk_dim;
  } else {
    const bool bias = !mpt;
    block.attention.qkv_bias = block.attention.out_bias = block.mlp.bias = bias;
    block.dropout = block.attention.dropout = usual_of(run).dropout;
  }
  DecoderSpec spec;
  spec.name = run.model.empty() ? "model" : run.model;
  spec.blocks.assign(static_cast<std::size_t>(run.layers), block);
  spec.vocab = run.vocab > 0 ? run.vocab : kUsualVocab;
  spec.positions = llama || mpt ? 0 : run.seq_len;
  spec.tied_embeddings = !llama;
  spec.dropout = block.dropout;
  return build_decoder(spec, run.seq_len);
}

/// A file named in another one lies beside that.
std::string beside(const std::string& file, const std::string& name) {
  const std::filesystem::path path(name);
  return path.is_absolute() ? name : (std::filesystem::path(file).parent_path() / path).string();
}

}  // namespace

RunModel model_of(const MeasuredRun& run) {
  RunModel model;
  // Models of images have no sequence, or their patches.
  if (run.model.ends_with(".json")) {
    model.graph =
        load_model(beside(run.file, run.model),
                   {.seq_len = run.seq_len, .layers = run.layers, .dense_layers = -1, .dims = {}});
    return model;
  }
  const std::string zoo = zoo_name(run.model);
  if (run.seq_len == 0 && run.layers == 0 && !zoo.empty()) {
    Graph graph = load_model(zoo, {});
    if (graph.seq_len == 0 || zoo.starts_with("vit-")) {
      model.graph = std::move(graph);
      return model;
    }
  }
  if (run.seq_len == 0 || run.seq_len > kMostTokens) {
    model.reason =
        run.seq_len == 0 ? "the sequence length is not said" : "the sequence is out of range";
    return model;
  }
  if (run.layers > 0 && run.hidden > 0 && run.heads > 0) {
    model.reason = bad_dimensions(run);
    if (model.reason.empty()) model.graph = described_model(run, family_of(run));
    return model;
  }
  // Trainers give GPT as many positions as its samples have.
  constexpr std::int64_t kGpt3Positions = 2048;
  const bool longer = zoo.starts_with("gpt3-") && run.seq_len > kGpt3Positions;
  if (const auto known = zoo.empty() || longer ? known_model(run.model) : std::nullopt) {
    MeasuredRun filled = run;
    if (filled.layers == 0) filled.layers = known->layers;
    filled.hidden = known->hidden;
    filled.heads = known->heads;
    filled.kv_heads = known->kv_heads;
    filled.ffn = known->ffn;
    if (filled.vocab == 0) filled.vocab = known->vocab;
    model.reason = bad_dimensions(filled);
    const Family family = known->gated             ? Family::llama
                          : known->family == "mpt" ? Family::mpt
                                                   : Family::gpt;
    if (model.reason.empty()) model.graph = described_model(filled, family, known->head_dim);
    return model;
  }
  if (zoo.empty()) {
    model.reason = "model " + in_quotes(run.model) +
                   " is not in the zoo, and layers, hidden and heads are not given";
    return model;
  }
  if (run.layers > kMostLayers) {
    model.reason = "the model's dimensions are out of range";
    return model;
  }
  const std::string name = with_token_prediction(zoo, run);
  const bool is_cut = run.model.find("truncated_layers") != std::string::npos;
  Graph graph = load_model(name, {.seq_len = run.seq_len,
                                  .layers = run.layers,
                                  .dense_layers = is_cut ? kDenseInCut : -1,
                                  .dims = {}});
  const std::int64_t ends = name == zoo ? 2 : 3;
  const auto blocks = static_cast<std::int64_t>(graph.layers.size()) - ends;
  if (run.layers > 0 && run.layers != blocks) {
    model.reason = "model " + in_quotes(run.model) + " has " + std::to_string(blocks) +
                   " layers, not " + std::to_string(run.layers);
    return model;
  }
  model.graph = std::move(graph);
  return model;
}

}  // namespace braid
