#include "braid/trainers/megatron/import.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/shell_script.h"
#include "braid/trainers/megatron/ignored_arguments.h"
#include "braid/trainers/megatron/stage_layout.h"

namespace braid {
namespace {

constexpr std::int64_t kMostSize = 1 << 24;

int degree(GivenArguments& given, std::string_view name, int otherwise = 1) {
  return static_cast<int>(given.count(name, 1, 1 << 20).value_or(otherwise));
}

/// Why sizes that are given do not make up the model.
std::string what_is_not_read(GivenArguments& given, const ModelShape& shape) {
  const bool by_ratio = given.has("--hybrid-attention-ratio") || given.has("--hybrid-mlp-ratio");
  if (shape.layer_pattern.empty() && (given.has("--is-hybrid-model") || by_ratio)) {
    return "the model has state-space layers, and no --hybrid-layer-pattern says which these are";
  }
  return "";
}

/// The kinds of a hybrid's layers, "MEM*|EMEM/*E/*E" (hybrid_layer_allocation.py): | ends a chunk,
/// and / comes before each further prediction.
std::optional<std::string> hybrid_pattern(GivenArguments& given) {
  const auto pattern = given.text("--hybrid-layer-pattern");
  const auto earlier = given.text("--hybrid-override-pattern");
  return pattern ? pattern : earlier;
}

void read_hybrid(GivenArguments& given, ModelShape& shape) {
  const std::optional<std::string> pattern = hybrid_pattern(given);
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

/// The model's sizes (with the defaults of arguments.py); nullopt where they are not all given.
std::optional<ModelShape> read_shape(GivenArguments& given, Import& run) {
  ModelShape shape;
  shape.first_block = 1;
  shape.blocks = given.count_or("--num-layers", 0);
  shape.hidden = given.count_or("--hidden-size", 0);
  shape.heads = given.count_or("--num-attention-heads", 0);
  shape.gated = given.has("--swiglu");
  const std::int64_t inner = shape.gated ? shape.hidden * 8 / 3 / 64 * 64 : 4 * shape.hidden;
  shape.inner = given.count_or("--ffn-hidden-size", inner);
  const std::int64_t width = shape.heads > 0 ? shape.hidden / shape.heads : 0;
  shape.head_dim = given.count_or("--kv-channels", width);
  const std::int64_t groups = given.count_or("--num-query-groups", 1);
  shape.kv_heads = given.has("--group-query-attention") ? groups : shape.heads;
  shape.vocab = given.count_or("--padded-vocab-size", given.count_or("--vocab-size", 0));
  const std::string positions =
      given.text("--position-embedding-type").value_or("learned_absolute");
  shape.rotary = positions != "learned_absolute" && positions != "none" && positions != "relative";
  const std::int64_t longest = given.count_or("--max-position-embeddings", run.seq_len);
  if (positions == "learned_absolute") shape.positions = longest;
  shape.rms = given.text("--normalization").value_or("LayerNorm") == "RMSNorm";
  shape.linear_bias = !given.has("--disable-bias-linear");
  shape.qkv_bias = given.has("--add-qkv-bias") || shape.linear_bias;
  shape.qk_norm = given.has("--qk-layernorm");
  shape.tied_embeddings = !given.has("--untie-embeddings-and-output-weights");
  shape.activation = shape.gated ? "swiglu" : given.has("--squared-relu") ? "relu" : "gelu";
  const auto rate = [&](const char* name) {
    return finite_double(given.text(name).value_or("0.1")).value_or(0.1);
  };
  const double attention_dropout = rate("--attention-dropout");
  shape.dropout = rate("--hidden-dropout") > 0 || attention_dropout > 0;
  if (const auto window = given.text("--window-size")) {
    const std::size_t digit = window->find_first_of("0123456789");
    if (digit != std::string::npos) shape.window = std::atoll(window->c_str() + digit);
  }
  shape.experts = given.count_or("--num-experts", 0);
  shape.top_k = given.count_or("--moe-router-topk", 2);
  shape.expert_inner = given.count_or("--moe-ffn-hidden-size", shape.inner);
  shape.shared_inner = given.count_or("--moe-shared-expert-intermediate-size", 0, 0);
  shape.shared_gate = given.has("--moe-shared-expert-gate");
  shape.expert_latent = given.count_or("--moe-latent-size", 0, 0);
  if (shape.experts == 0) shape.top_k = shape.expert_inner = 0;
  if (given.has("--multi-latent-attention")) read_latent_attention(given, shape);
  shape.mtp_modules = given.count_or("--mtp-num-layers", 0, 0);
  shape.mtp_shared = given.has("--mtp-use-repeated-layer");
  read_hybrid(given, shape);
  if (shape.blocks == 0 || shape.hidden == 0 || shape.heads == 0) return std::nullopt;
  run.no_shape = what_is_not_read(given, shape);
  if (!run.no_shape.empty()) return std::nullopt;
  if (std::max({shape.hidden, shape.inner, shape.vocab, shape.expert_inner}) > kMostSize) {
    given.fail("--hidden-size", "the model is wider than 2^24", "give the sizes of a real one");
  }
  return shape;
}

/// Leading dense blocks from "([0]*3+[1]*58)" and the like; others are noted.
void read_dense_blocks(GivenArguments& given, Import& run) {
  const std::optional<std::string> text = given.text("--moe-layer-freq");
  if (!text || !run.shape || run.shape->experts == 0 || *text == "1") return;
  long long dense = 0;
  long long sparse = 0;
  if (std::sscanf(text->c_str(), "([0]*%lld+[1]*%lld)", &dense, &sparse) == 2 &&
      dense + sparse == run.shape->blocks) {
    run.shape->dense_blocks = dense;
  } else {
    run.notes.push_back("--moe-layer-freq " + in_quotes(*text) +
                        ": only leading dense blocks are modelled; all blocks have experts here");
  }
}

/// Formats of what the optimizer keeps, which it has with --use-precision-aware-optimizer alone.
void read_optimizer_formats(GivenArguments& given, Precision& precision) {
  const bool aware = given.has("--use-precision-aware-optimizer");
  double bytes = 0;
  for (const char* name : {"--main-params-dtype", "--exp-avg-dtype", "--exp-avg-sq-dtype"}) {
    const std::string format = given.text(name).value_or("fp32");
    bytes += format == "fp32" ? 4 : format == "fp8" ? 1 : 2;
  }
  if (precision.weight == Dtype::f32) bytes -= 4;  // Which are the main parameters.
  const std::string gradients = given.text("--main-grads-dtype").value_or("fp32");
  if (!aware) return;
  precision.optimizer_bytes_per_parameter = bytes;
  if (gradients == "bf16") precision.gradient = Dtype::bf16;
}

Precision read_precision(GivenArguments& given) {
  const bool bf16 = given.has("--bf16");
  const bool fp16 = given.has("--fp16");
  const bool fp8 = given.has("--fp8-format") || given.has("--fp8-hybrid");
  Precision precision = parse_precision(fp8 ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
  const bool narrow = given.has("--grad-reduce-in-bf16");
  const bool wide = given.has("--accumulate-allreduce-grads-in-fp32");
  if (narrow && !wide) precision.gradient = Dtype::bf16;
  // Weights in FP16 have gradients in FP16 where nothing else is said; BF16 ones, in FP32.
  if (fp16 && !wide) precision.gradient = Dtype::f16;
  read_optimizer_formats(given, precision);
  return precision;
}

/// Layers of each chunk of "MEM*|EMEM/*E/*E": those of the predictions behind "/" do not count.
std::vector<std::int64_t> layers_of_pattern(const std::string& pattern) {
  std::vector<std::int64_t> layers(1);
  for (const char c : pattern.substr(0, pattern.find('/'))) {
    if (c == '|') {
      layers.push_back(0);
    } else {
      ++layers.back();
    }
  }
  return layers;
}

void read_pipeline(GivenArguments& given, const std::string& file, Import& run) {
  Parallelism& p = run.parallel;
  p.pp = degree(given, "--pipeline-model-parallel-size");
  const std::int64_t blocks = run.shape ? run.shape->blocks : given.count_or("--num-layers", 0);
  p.vp = degree(given, "--num-virtual-stages-per-pipeline-rank");
  if (const auto each = given.count("--num-layers-per-virtual-pipeline-stage", 1, kMostSize)) {
    if (blocks % (p.pp * *each) != 0 || blocks == 0) {
      given.fail(
          "--num-layers-per-virtual-pipeline-stage",
          fmt::format("{} layers do not make up {} blocks over {} stages", *each, blocks, p.pp),
          "choose a divisor of the blocks of a stage");
    }
    p.vp = static_cast<int>(blocks / p.pp / *each);
  }
  const auto first = given.count("--decoder-first-pipeline-num-layers", 1, kMostSize);
  const auto last = given.count("--decoder-last-pipeline-num-layers", 1, kMostSize);
  if ((first || last) && p.pp > 1 && p.vp == 1) {
    const std::int64_t ends = (first ? 1 : 0) + (last ? 1 : 0);
    const std::int64_t inner = blocks - first.value_or(0) - last.value_or(0);
    const std::int64_t each = p.pp > ends ? inner / (p.pp - ends) : 0;
    run.chunk_blocks.assign(static_cast<std::size_t>(p.pp), each);
    if (first) run.chunk_blocks.front() = *first;
    if (last) run.chunk_blocks.back() = *last;
  }
  const bool first_less = given.has("--account-for-embedding-in-pipeline-split");
  const bool last_less = given.has("--account-for-loss-in-pipeline-split");
  if ((first_less || last_less) && p.pp > 1 && blocks > 0) {
    // Embedding and loss count as a block each.
    const std::int64_t chunks = std::int64_t{p.pp} * p.vp;
    const std::int64_t counted = blocks + (first_less ? 1 : 0) + (last_less ? 1 : 0);
    run.chunk_blocks.assign(static_cast<std::size_t>(chunks), counted / chunks);
    run.chunk_blocks.front() -= first_less ? 1 : 0;
    run.chunk_blocks.back() -= last_less ? 1 : 0;
  }
  if (const auto layout = given.text("--pipeline-model-parallel-layout")) {
    run.chunk_blocks = blocks_of_layout(*layout, file);
    const auto chunks = std::ssize(run.chunk_blocks);
    if (chunks % p.pp != 0) {
      given.fail("--pipeline-model-parallel-layout",
                 fmt::format("{} chunks are no multiple of {} stages", chunks, p.pp),
                 "list pp chunks, or a multiple of them");
    }
    p.vp = static_cast<int>(chunks / p.pp);
  }
  if (const auto pattern = hybrid_pattern(given);
      pattern && pattern->find('|') < pattern->find('/')) {
    run.chunk_blocks = layers_of_pattern(*pattern);
    const auto chunks = std::ssize(run.chunk_blocks);
    if (chunks % p.pp != 0) {
      given.fail("--hybrid-layer-pattern",
                 fmt::format("{} segments are no multiple of {} stages", chunks, p.pp),
                 "divide it into pp segments by |, or a multiple of them");
    }
    p.vp = static_cast<int>(chunks / p.pp);
  }
  if (p.pp == 1) p.vp = 1;
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
}

void read_sharding(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  const bool optimizer = given.has("--use-distributed-optimizer");
  const bool fsdp = given.has("--use-megatron-fsdp") || given.has("--use-custom-fsdp");
  const bool torch_fsdp = given.has("--use-torch-fsdp2");
  const std::string strategy =
      given.text("--data-parallel-sharding-strategy").value_or("optim_grads_params");
  if (optimizer) p.zero = Zero::optimizer;
  if (torch_fsdp) p.zero = Zero::parameters;
  if (fsdp) {
    p.zero = strategy == "no_shard"      ? Zero::none
             : strategy == "optim"       ? Zero::optimizer
             : strategy == "optim_grads" ? Zero::gradients
                                         : Zero::parameters;
  }
  if (given.has("--fine-grained-activation-offloading")) p.offload_activations = true;
  if (given.has("--optimizer-cpu-offload")) {
    const double share =
        finite_double(given.text("--optimizer-offload-fraction").value_or("1")).value_or(1);
    p.offload_optimizer = true;
    if (share < 1) {
      run.notes.emplace_back(
          "--optimizer-offload-fraction: all of the optimizer state is on the host here");
    }
  }
}

/// Whether nothing but what selective recomputation stands for is recomputed: attention, norms and
/// activation functions.
bool is_selective(const std::string& modules) {
  std::istringstream words(modules);
  std::string word;
  while (words >> word) {
    if (word != "core_attn" && word != "layernorm" && word != "moe_act") return false;
  }
  return true;
}

void read_recomputation(GivenArguments& given, Import& run) {
  const std::string granularity = given.text("--recompute-granularity").value_or("");
  if (given.has("--recompute-activations") || granularity == "selective") {
    run.parallel.recompute = Recompute::selective;
    if (const auto modules = given.text("--recompute-modules");
        modules && !is_selective(*modules)) {
      run.notes.push_back("--recompute-modules " + in_quotes(*modules) +
                          ": taken as selective recomputation");
    }
  }
  if (granularity != "full") return;
  run.parallel.recompute = Recompute::full;
  const std::string method = given.text("--recompute-method").value_or("uniform");
  const std::int64_t layers = given.count_or("--recompute-num-layers", 1);
  if (method == "block" || layers != 1) {
    run.notes.push_back(
        fmt::format("--recompute-method {} of {} layers: here every layer is "
                    "recomputed for itself",
                    in_quotes(method), layers));
  }
}

/// The words behind the script that has Megatron-LM's arguments, and those before it.
struct Launch {
  ShellCommand before, arguments;
};

bool is_argument(std::string word) {
  std::replace(word.begin(), word.end(), '_', '-');
  constexpr std::array<std::string_view, 4> kUsual = {
      "--tensor-model-parallel-size", "--micro-batch-size", "--num-layers", "--hidden-size"};
  return std::any_of(kUsual.begin(), kUsual.end(),
                     [&](std::string_view usual) { return word.starts_with(usual); });
}

std::optional<Launch> launch_of(const ShellCommand& command) {
  if (std::none_of(command.begin(), command.end(), is_argument)) return std::nullopt;
  const auto name = std::find_if(command.begin(), command.end(),
                                 [](const std::string& word) { return word.ends_with(".py"); });
  if (name == command.end()) return Launch{{}, command};
  return Launch{{command.begin(), name}, {name + 1, command.end()}};
}

/// What `bash -c "…"` and the like are given to run.
std::vector<ShellCommand> inner_commands(const ShellCommand& command, const std::string& file) {
  for (const std::string& word : command) {
    const bool is_line = contains(word, " ") && contains(word, ".py") && contains(word, "--");
    if (is_line) return read_shell_script(word, file).commands;
  }
  return {};
}

Launch find_launch(const ShellScript& script, const std::string& file) {
  for (const ShellCommand& command : script.commands) {
    if (const auto launch = launch_of(command)) return *launch;
    for (const ShellCommand& inner : inner_commands(command, file)) {
      if (const auto launch = launch_of(inner)) return *launch;
    }
  }
  throw Error(Where{file, 0, ""}, "no command has Megatron-LM's arguments",
              "give the line that starts pretrain_gpt.py, or its launch script");
}

/// Processes that torchrun starts; 0: not said.
std::int64_t read_devices(const Launch& launch, const std::string& file) {
  GivenArguments torchrun(launch.before, file);
  const auto count = [&](const char* name, std::int64_t otherwise) -> std::int64_t {
    if (!torchrun.has(name)) return otherwise;
    try {
      return torchrun.count_or(name, otherwise);
    } catch (const Error&) {  // Said by a variable or as a range.
      return 0;
    }
  };
  return count("--nproc-per-node", 0) * count("--nnodes", 1);
}

/// What the script leaves open, as notes.
void note_what_is_open(const ShellScript& script, Import& run) {
  const auto listed = [](const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 12;
    std::string text;
    for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) {
      text += (i > 0 ? ", " : "") + on_one_line(names[i]);
    }
    return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
  };
  if (!script.undefined.empty()) {
    run.notes.push_back("not set in the script, and left out: " + listed(script.undefined));
  }
  if (!script.uncertain.empty()) {
    run.notes.push_back(
        "set under a condition that is not known here, or in a loop, and read as if it held: " +
        listed(script.uncertain));
  }
}

}  // namespace

bool is_megatron(std::string_view text) {
  constexpr std::array<std::string_view, 6> kSigns = {"pretrain_gpt.py",
                                                      "pretrain_hybrid.py",
                                                      "pretrain_mamba.py",
                                                      "--tensor-model-parallel-size",
                                                      "--pipeline-model-parallel-size",
                                                      "--micro-batch-size"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return contains(text, sign); });
}

Import import_megatron(std::string_view text, const std::string& file) {
  const ShellScript script = read_shell_script(text, file);
  const Launch launch = find_launch(script, file);
  GivenArguments given(launch.arguments, file);
  Import run;
  run.trainer = "megatron";
  run.devices = read_devices(launch, file);
  run.seq_len = given.count_or("--seq-length", given.count_or("--encoder-seq-length", 0));
  run.global_batch = given.count_or("--global-batch-size", 0);
  Parallelism& p = run.parallel;
  p.dp = 0;
  p.micro_batch = degree(given, "--micro-batch-size");
  p.tp = degree(given, "--tensor-model-parallel-size");
  p.cp = degree(given, "--context-parallel-size");
  p.ep = degree(given, "--expert-model-parallel-size");
  p.sequence_parallel = given.has("--sequence-parallel") && p.tp > 1;
  // Experts are divided as the other layers where nothing else is said.
  const int expert_tp = degree(given, "--expert-tensor-parallel-size", p.tp);
  const bool has_experts = p.ep > 1 || given.count_or("--num-experts", 0) > 0;
  p.whole_experts = has_experts && p.tp > 1 && expert_tp == 1;
  run.shape = read_shape(given, run);
  read_dense_blocks(given, run);
  run.precision = read_precision(given);
  // The variable that lets GEMMs of FP32 run in TF32 (as export writes it).
  if (run.precision->matmul == Dtype::f32 && contains(text, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1")) {
    run.precision = parse_precision("tf32");
  }
  read_pipeline(given, file, run);
  read_sharding(given, run);
  read_recomputation(given, run);
  if (given.has("--use-tp-pp-dp-mapping")) p.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  if (const auto ramp = given.text("--rampup-batch-size")) {
    run.notes.push_back("--rampup-batch-size " + on_one_line(*ramp) +
                        ": here every iteration has the whole batch");
  }
  given.ignore(megatron_ignored_arguments());
  run.unknown = given.unknown();
  note_what_is_open(script, run);
  return run;
}

}  // namespace braid
