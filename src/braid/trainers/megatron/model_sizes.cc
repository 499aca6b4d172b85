#include "braid/trainers/megatron/model_sizes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/megatron/layer_marks.h"
#include "braid/trainers/megatron/pipeline_arguments.h"

namespace braid {
namespace {

constexpr std::int64_t kMostSize = 1 << 24;

/// Whether a script's name, such as pretrain_t5.py, has a word.
bool has_word(std::string_view name, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (std::size_t at = name.find(word); at != std::string_view::npos;
       at = name.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

/// Why sizes that are given do not make up the model. `script` is what they are given to.
std::string what_is_not_read(GivenArguments& given, const ModelShape& shape,
                             std::string_view script) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOthers = {
      {{"t5", "an encoder beside the decoder"},
       {"bert", "an encoder in place of a decoder"},
       {"ict", "two encoders"},
       {"retro", "an encoder of what is retrieved"},
       {"vision", "an encoder of pictures"},
       {"vlm", "an encoder of pictures beside the decoder"},
       {"mimo", "encoders beside the decoder"}}};
  for (const auto& [name, what] : kOthers) {
    if (has_word(script, name)) return "the model has " + std::string(what);
  }
  if (contains(given.text("--num-experts").value_or(""), " ")) {
    return "the model has layers with different numbers of experts";
  }
  if (given.is_given("--vision-model-type") || given.is_given("--img-h")) {
    return "the model has an encoder of pictures beside the decoder";
  }
  if (given.has("--encoder-num-layers") && given.has("--decoder-num-layers")) {
    return "the model has an encoder beside the decoder";
  }
  const bool by_ratio = given.has("--hybrid-attention-ratio") || given.has("--hybrid-mlp-ratio");
  if (shape.layer_pattern.empty() && (given.has("--is-hybrid-model") || by_ratio)) {
    return "the model has state-space layers, and no --hybrid-layer-pattern says which these are";
  }
  return "";
}

void read_hybrid(GivenArguments& given, ModelShape& shape) {
  const std::optional<std::string> pattern = hybrid_pattern_of(given);
  const auto of_predictions = given.text("--mtp-hybrid-override-pattern");
  if (!pattern) return;
  const std::size_t end = std::min(pattern->find('/'), pattern->size());
  shape.layer_pattern = pattern->substr(0, end);
  std::erase(shape.layer_pattern, '|');
  shape.blocks = std::ssize(shape.layer_pattern);
  if (end < pattern->size()) {
    const std::string further = pattern->substr(end + 1);
    shape.mtp_pattern = further.substr(0, further.find('/'));
    shape.mtp_modules = 1 + std::count(further.begin(), further.end(), '/');
  } else if (of_predictions) {
    shape.mtp_pattern = *of_predictions;
  }
  // The defaults of transformer_config.py and MambaMixer.
  shape.state_size = given.count_or("--mamba-state-dim", 128);
  shape.state_head_dim = given.count_or("--mamba-head-dim", 64);
  shape.state_groups = given.count_or("--mamba-num-groups", 8);
  shape.state_heads = given.count_or("--mamba-num-heads", 2 * shape.hidden / shape.state_head_dim);
}

/// Keys and values in few numbers, with the defaults of arguments.py. Its norms are those that
/// --qk-layernorm gives.
void read_latent_attention(GivenArguments& given, ModelShape& shape) {
  shape.latent_attention = true;
  shape.q_rank = given.count_or("--q-lora-rank", 0);
  shape.kv_rank = given.count_or("--kv-lora-rank", 32);
  shape.rotary_dim = given.count_or("--qk-pos-emb-head-dim", 64);
  shape.qk_dim = given.count_or("--qk-head-dim", 128) + shape.rotary_dim;
  shape.head_dim = given.count_or("--v-head-dim", 128);
  shape.kv_heads = shape.heads;
  shape.qk_norm = false;
}

/// "1101…": a list of --window-attn-skip-freq, or every so many blocks one without a window.
std::optional<std::string> marks_of_windows(const std::string& text, std::int64_t blocks) {
  if (contains(text, "[")) return marks_of_blocks(text, blocks);
  const std::optional<double> every = finite_double(text);
  if (!every || *every < 1 || *every > static_cast<double>(kMostSize)) return std::nullopt;
  std::string marks(static_cast<std::size_t>(blocks), '1');
  const auto step = static_cast<std::size_t>(*every);
  for (std::size_t block = step; block <= marks.size(); block += step) marks[block - 1] = '0';
  return marks;
}

/// Which blocks have experts, and which have windows.
void read_marks(GivenArguments& given, Import& run) {
  const std::optional<std::string> experts = given.text("--moe-layer-freq");
  const std::optional<std::string> windows = given.text("--window-attn-skip-freq");
  // Megatron-DeepSpeed's: every so many blocks the last one has experts.
  const bool of_deepspeed = given.has("--deepspeed") || given.is_given("--expert-interval");
  const std::int64_t interval = given.count_or("--expert-interval", 2);
  if (!run.shape) return;
  ModelShape& shape = *run.shape;
  const auto unread = [&](const char* name, const std::string& text, const char* taken) {
    run.notes.push_back(fmt::format("{} {}: not read as a list for {} blocks; here {}", name,
                                    in_quotes(text), shape.blocks, taken));
  };
  if (experts && shape.experts > 0) {
    const std::optional<std::string> marks = marks_of_blocks(*experts, shape.blocks);
    if (!marks) unread("--moe-layer-freq", *experts, "all blocks have experts");
    const std::size_t dense = marks ? std::min(marks->find('1'), marks->size()) : 0;
    shape.dense_blocks = static_cast<std::int64_t>(dense);
    if (marks && marks->find('0', dense) != std::string::npos) shape.expert_blocks = *marks;
  }
  if (of_deepspeed && shape.experts > 0 && interval > 1) {
    shape.expert_blocks.assign(static_cast<std::size_t>(shape.blocks), '0');
    for (auto i = interval; i <= shape.blocks; i += interval) {
      shape.expert_blocks[static_cast<std::size_t>(i - 1)] = '1';
    }
  }
  if (windows && shape.window > 0) {
    const std::optional<std::string> marks = marks_of_windows(*windows, shape.blocks);
    if (!marks) {
      unread("--window-attn-skip-freq", *windows, "all blocks have windows");
    } else if (contains(*marks, "0")) {
      shape.windowed_blocks = *marks;
    }
  }
}

/// What T5 is told of its two halves (_add_network_size_args, pretrain_t5.py).
void read_encoder_and_decoder(GivenArguments& given, Import& run) {
  for (const char* name :
       {"--encoder-num-layers", "--decoder-num-layers", "--decoder-seq-length"}) {
    const auto value = given.text(name);
    if (value && !run.no_shape.empty()) {
      run.notes.push_back(std::string(name) + " " + on_one_line(*value) + ": here MODEL says it");
    }
  }
  if (given.text("--pipeline-model-parallel-split-rank")) {
    run.notes.emplace_back(
        "--pipeline-model-parallel-split-rank: here stages are as even as the trainer deals "
        "layers");
  }
}

/// --spec names the module that builds layers; those that Megatron-LM has for hybrids say nothing
/// that the pattern of layers does not.
void read_spec(GivenArguments& given, Import& run) {
  const auto spec = given.text("--spec");
  if (!spec || contains(*spec, "hybrid_stack_spec") || contains(*spec, "mamba_stack_spec")) return;
  run.notes.push_back("--spec " + on_one_line(*spec) +
                      ": not read; layers are those of the other arguments here");
}

}  // namespace

std::int64_t megatron_experts(GivenArguments& given) {
  const std::optional<std::string> all = given.text("--num-experts");
  if (!all) return 0;
  const std::string first = all->substr(0, all->find(' '));
  const std::array<std::string, 2> words = {"--num-experts", first};
  const std::int64_t experts = first == *all
                                   ? given.count_or("--num-experts", 0)
                                   : GivenArguments(words, "").count_or("--num-experts", 0);
  return experts == 1 ? 0 : experts;
}

namespace {

/// Entries of the vocabulary, padded as _vocab_size_with_padding() of
/// megatron/training/vocab_utils.py does it; what tensor parallelism alone adds, an entry a rank at
/// most, is left out.
std::int64_t vocabulary(GivenArguments& given, std::int64_t tp) {
  const std::int64_t said = given.count_or("--vocab-size", 0);
  const std::int64_t multiple = given.count_or("--make-vocab-size-divisible-by", 128);
  if (const std::int64_t padded = given.count_or("--padded-vocab-size", 0); padded > 0) {
    return padded;
  }
  const std::int64_t part = multiple > 1 ? multiple * tp : 1;
  return (said + part - 1) / part * part;
}

}  // namespace

std::optional<ModelShape> megatron_shape(GivenArguments& given, std::string_view script,
                                         Import& run) {
  ModelShape shape;
  shape.first_block = 1;
  shape.blocks = given.count_or("--num-layers", 0);
  shape.hidden = given.count_or("--hidden-size", 0);
  shape.heads = given.count_or("--num-attention-heads", 0);
  const bool swiglu = given.has("--swiglu"), geglu = given.has("--quick-geglu");
  shape.gated = swiglu || geglu;
  const std::int64_t inner = swiglu ? shape.hidden * 8 / 3 / 64 * 64 : 4 * shape.hidden;
  shape.inner = given.count_or("--ffn-hidden-size", inner);
  const std::int64_t width = shape.heads > 0 ? shape.hidden / shape.heads : 0;
  shape.head_dim = given.count_or("--kv-channels", width);
  const std::int64_t groups = given.count_or("--num-query-groups", 1);
  shape.kv_heads = given.has("--group-query-attention") ? groups : shape.heads;
  shape.kv_heads = given.count_or("--num-key-value-heads", shape.kv_heads);
  shape.vocab = vocabulary(given, run.parallel.tp);
  const bool rotates = given.has("--use-rotary-position-embeddings");
  const std::string positions =
      given.text("--position-embedding-type").value_or(rotates ? "rope" : "learned_absolute");
  shape.rotary = positions != "learned_absolute" && positions != "none" && positions != "relative";
  const std::int64_t longest = given.count_or("--max-position-embeddings", run.seq_len);
  if (positions == "learned_absolute") shape.positions = longest;
  shape.rms = lowered(given.text("--normalization").value_or("LayerNorm")) == "rmsnorm";
  shape.linear_bias = !given.has("--disable-bias-linear");
  shape.qkv_bias = given.has("--add-qkv-bias") || shape.linear_bias;
  shape.qk_norm = given.has("--qk-layernorm");
  shape.tied_embeddings = !given.has("--untie-embeddings-and-output-weights");
  shape.activation = swiglu                        ? "swiglu"
                     : geglu                       ? "geglu"
                     : given.has("--squared-relu") ? "relu_squared"
                                                   : "gelu";
  shape.attention_sinks = given.text("--softmax-type").value_or("vanilla") == "learnable";
  const auto rate = [&](const char* name) {
    return finite_double(given.text(name).value_or("0.1")).value_or(0.1);
  };
  const double attention_dropout = rate("--attention-dropout");
  shape.dropout = rate("--hidden-dropout") > 0 || attention_dropout > 0;
  const bool says_dropout =
      given.is_given("--hidden-dropout") || given.is_given("--attention-dropout");
  if (says_dropout || shape.hidden > 0) run.dropout = shape.dropout;
  if (const auto window = given.text("--window-size")) {
    const std::size_t digit = window->find_first_of("0123456789");
    if (digit != std::string::npos) shape.window = std::atoll(window->c_str() + digit);
  }
  shape.experts = megatron_experts(given);
  shape.top_k = given.count_or("--moe-router-topk", given.count_or("--topk", 2));
  shape.expert_inner = given.count_or("--moe-ffn-hidden-size", shape.inner);
  shape.shared_inner = given.count_or("--moe-shared-expert-intermediate-size", 0, 0);
  shape.shared_gate = given.has("--moe-shared-expert-gate");
  shape.expert_latent = given.count_or("--moe-latent-size", 0, 0);
  shape.expert_bias = shape.linear_bias;
  shape.expert_clamp = given.text("--activation-func-clamp-value").has_value();
  if (shape.experts == 0) {
    shape.top_k = shape.expert_inner = 0;
    shape.expert_bias = shape.expert_clamp = false;
  }
  if (given.has("--multi-latent-attention")) read_latent_attention(given, shape);
  shape.mtp_modules = given.count_or("--mtp-num-layers", 0, 0);
  shape.mtp_shared = given.has("--mtp-use-repeated-layer");
  read_hybrid(given, shape);
  run.no_shape = what_is_not_read(given, shape, script);
  const bool has_sizes = shape.blocks > 0 && shape.hidden > 0 && shape.heads > 0;
  if (!has_sizes || !run.no_shape.empty()) return std::nullopt;
  if (std::max({shape.hidden, shape.inner, shape.vocab, shape.expert_inner}) > kMostSize) {
    given.fail("--hidden-size", "the model is wider than 2^24", "give the sizes of a real one");
  }
  return shape;
}

void read_megatron_layers(GivenArguments& given, Import& run) {
  read_encoder_and_decoder(given, run);
  read_spec(given, run);
  read_marks(given, run);
}

}  // namespace braid
