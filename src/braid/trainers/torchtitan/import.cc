#include "braid/trainers/torchtitan/import.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/signs.h"
#include "braid/trainers/torchtitan/command_line.h"
#include "braid/trainers/torchtitan/ignored_keys.h"
#include "braid/trainers/torchtitan/named_model.h"
#include "braid/trainers/torchtitan/run_source.h"

namespace braid {
namespace {

constexpr OwnOption kTomlOptions[] = {{"--tp", "tensor_parallel_degree"},
                                      {"--pp", "pipeline_parallel_degree"},
                                      {"--cp", "context_parallel_degree"},
                                      {"--ep", "expert_parallel_degree"},
                                      {"--dp", "data_parallel_shard_degree"},
                                      {"--vp", "pipeline_parallel_layers_per_stage"},
                                      {"--micro-batch", "pipeline_parallel_microbatch_size"},
                                      {"--micro-batch", "local_batch_size"},
                                      {"--global-batch", "global_batch_size"},
                                      {"--seq-len", "seq_len"}};
constexpr OwnOption kRecipeOptions[] = {{"--tp", "tensor_parallel_degree"},
                                        {"--pp", "pipeline_parallel_degree"},
                                        {"--cp", "context_parallel_degree"},
                                        {"--ep", "expert_parallel_degree"},
                                        {"--dp", "data_parallel_shard_degree"},
                                        {"--micro-batch", "num_tokens_per_microbatch_per_dp_rank"},
                                        {"--global-batch", "num_tokens_per_train_step"},
                                        {"--seq-len", "max_context_length"}};

constexpr std::int64_t kMostDevices = std::int64_t{1} << 30;

/// A count; None is "not given".
std::int64_t number(GivenArguments& given, std::string_view name, std::int64_t otherwise,
                    std::int64_t least = 1) {
  if (lowered(given.text(name).value_or("none")) == "none") return otherwise;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return given.count(name, least, kMost).value_or(otherwise);
}

std::int64_t tokens_of_sample(GivenArguments& given, std::string_view name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  return given.count(name, 1, kMost).value_or(2048);
}

int degree(GivenArguments& given, std::string_view name, int otherwise = 1) {
  if (lowered(given.text(name).value_or("none")) == "none") return otherwise;
  return static_cast<int>(given.count(name, 1, 1 << 20).value_or(otherwise));
}

/// -1, which stands for what is left, as 0.
int degree_or_rest(GivenArguments& given, std::string_view name) {
  if (given.text(name).value_or("-1") == "-1") return 0;
  return degree(given, name);
}

/// What other degrees leave of the devices that a run starts; 0: not known, or not a whole number.
int shards_left(std::int64_t devices, std::initializer_list<int> others) {
  for (const int each : others) {
    if (devices % each != 0) return 0;
    devices /= each;
  }
  return devices <= kMostDevices ? static_cast<int>(devices) : 0;
}

/// `devices_started`: by what starts the run; 0: not known.
void read_state(GivenArguments& given, std::int64_t devices_started, Import& run) {
  constexpr std::string_view kShard = "--parallelism.data_parallel_shard_degree";
  Parallelism& p = run.parallel;
  const int replicate = degree(given, "--parallelism.data_parallel_replicate_degree");
  int shard = degree_or_rest(given, kShard);
  if (shard == 0) shard = shards_left(devices_started, {p.tp, p.cp, p.pp, replicate});
  const std::int64_t dp = std::int64_t{replicate} * shard;
  std::int64_t devices = std::max<std::int64_t>(1, dp);
  for (const int each : {p.tp, p.cp, p.pp}) {
    if (devices > kMostDevices / each) {
      given.fail(kShard, "the degrees make more than 2^30 devices", "choose less");
    }
    devices *= each;
  }
  p.dp = static_cast<int>(dp);
  run.devices = dp > 0 ? devices : 0;
  const std::string reshard =
      given.text("--parallelism.fsdp_reshard_after_forward").value_or("default");
  if (reshard != "default" && reshard != "always" && reshard != "never") {
    given.fail("--parallelism.fsdp_reshard_after_forward", in_quotes(reshard) + " is no policy",
               "use default, always or never");
  }
  const bool always = reshard == "always" || (reshard == "default" && p.pp == 1);
  const bool shards = shard != 1 || p.cp > 1;
  // With pipelines gradients and weights stay whole until the last backward pass of a step
  // (backward_maybe_with_nosync() in torch/distributed/pipelining/stage.py); without, each
  // micro-batch's gradients are scattered (train_step() in torchtitan/train.py).
  p.zero = !shards                                   ? Zero::none
           : p.pp == 1 && always                     ? Zero::parameters
           : replicate > 1 && shard == 1 && p.cp > 1 ? Zero::none
           : p.pp == 1                               ? Zero::gradients
                                                     : Zero::optimizer;
  if (always && p.zero == Zero::optimizer) {
    run.notes.emplace_back(
        "fsdp_reshard_after_forward always: weights are gathered again for every forward pass of a "
        "stage; here once");
  }
  if (replicate == 1 || !shards) return;
  if (p.may_have_copies()) {
    p.replicate = replicate;
  } else {
    run.notes.push_back(fmt::format(
        "{} copies of sharded state: here they are of all of it or of none", replicate));
  }
}

/// Blocks of each part of [["tok_embeddings", "layers.0"], …].
std::vector<std::int64_t> blocks_of_parts(std::string_view text) {
  std::vector<std::int64_t> blocks;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[' && ++depth == 2) blocks.push_back(0);
    if (text[at] == ']') --depth;
    if (depth == 2 && text.substr(at, 7) == "layers.") ++blocks.back();
  }
  return blocks;
}

/// Blocks of each stage where torchtitan deals them out: the ends count as so many blocks
/// (generate_llm_fqn_per_model_part). Empty: it refuses so many stages.
std::vector<std::int64_t> dealt_blocks(std::int64_t blocks, std::int64_t stages, std::int64_t first,
                                       std::int64_t last) {
  const std::int64_t all = blocks + first + last;
  if (stages > all || std::max(first, last) > all / stages) return {};
  std::vector<std::int64_t> dealt(static_cast<std::size_t>(stages), all / stages);
  for (std::int64_t s = 0; s < all % stages; ++s) ++dealt[static_cast<std::size_t>(s)];
  dealt.front() -= first;
  dealt.back() -= last;
  return dealt;
}

ScheduleKind schedule_of(GivenArguments& given, Import& run) {
  const std::string name = given.text("--parallelism.pipeline_parallel_schedule").value_or("1F1B");
  const std::string known = lowered(name);
  if (known == "1f1b") return ScheduleKind::one_f_one_b;
  if (known == "gpipe") return ScheduleKind::gpipe;
  if (known != "interleaved1f1b") {
    run.notes.push_back("pipeline_parallel_schedule " + in_quotes(name) +
                        ": taken as interleaved 1F1B");
  }
  return ScheduleKind::interleaved;
}

void read_pipeline(GivenArguments& given, std::int64_t blocks, Import& run) {
  Parallelism& p = run.parallel;
  const std::string parts = given.text("--parallelism.module_fqns_per_model_part").value_or("");
  const std::int64_t each = number(given, "--parallelism.pipeline_parallel_layers_per_stage", 0);
  const std::int64_t first =
      number(given, "--parallelism.pipeline_parallel_first_stage_less_layers", 1, 0);
  const std::int64_t last =
      number(given, "--parallelism.pipeline_parallel_last_stage_less_layers", 1, 0);
  p.schedule = schedule_of(given, run);
  if (p.pp == 1) {
    p.schedule = ScheduleKind::one_f_one_b;
    return;
  }
  std::int64_t stages = std::int64_t{p.pp} * (p.schedule == ScheduleKind::interleaved ? 2 : 1);
  constexpr std::int64_t kMostStages = 1 << 16;
  if (each > 0 && blocks > 0) stages = (blocks + first + last + each - 1) / each;
  run.chunk_blocks = blocks_of_parts(parts);
  if (!run.chunk_blocks.empty()) stages = std::ssize(run.chunk_blocks);
  if (stages % p.pp != 0 || stages > kMostStages) {
    given.fail(run.chunk_blocks.empty() ? "--parallelism.pipeline_parallel_layers_per_stage"
                                        : "--parallelism.module_fqns_per_model_part",
               fmt::format("{} parts do not go over {} stages", stages, p.pp),
               "choose a multiple of pipeline_parallel_degree");
  }
  p.vp = static_cast<int>(stages / p.pp);
  if (!run.chunk_blocks.empty() || blocks == 0) return;
  run.chunk_blocks = dealt_blocks(blocks, stages, first, last);
}

/// The samples of a step, 0 where a factor is. Throws Error naming the key for more than 2^30.
std::int64_t samples(const GivenArguments& given, std::string_view name,
                     std::initializer_list<std::int64_t> factors) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > 0 && product > kMost / factor) {
      given.fail(name, "a step has more than 2^30 samples", "choose a smaller one");
    }
    product *= factor;
  }
  return product;
}

/// Of 0.2: samples.
void read_samples(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  constexpr std::string_view kLocal = "--training.local_batch_size";
  const std::int64_t local = number(given, kLocal, 8);
  const int micro = degree(given, "--parallelism.pipeline_parallel_microbatch_size");
  run.seq_len = tokens_of_sample(given, "--training.seq_len");
  const std::string global = given.text("--training.global_batch_size").value_or("-1");
  const std::int64_t said = global == "-1" ? 0 : number(given, "--training.global_batch_size", 0);
  const std::int64_t pass = samples(given, kLocal, {local, p.dp});
  p.micro_batch = p.pp > 1 ? micro : static_cast<int>(samples(given, kLocal, {local}));
  run.global_batch = said > 0 ? samples(given, "--training.global_batch_size", {said}) : pass;
  if (run.global_batch == 0)
    run.accumulation = p.pp > 1 ? std::max<std::int64_t>(1, local / micro) : 1;
  if (p.pp > 1 && p.dp > 0 && said > pass) {
    run.notes.emplace_back(
        "global_batch_size is that of several runs of the pipeline, which is filled and emptied in "
        "each: here it is filled once");
  }
}

/// Whole samples that so many tokens are. Throws Error naming the key where there is a rest.
std::int64_t whole_samples(const GivenArguments& given, std::string_view name, std::int64_t tokens,
                           std::int64_t seq_len) {
  if (tokens % seq_len != 0) {
    given.fail(name,
               fmt::format("{} tokens are no whole number of sequences of {}", tokens, seq_len),
               "choose a multiple of training.max_context_length");
  }
  return samples(given, name, {tokens / seq_len});
}

/// Of recipes: tokens.
void read_tokens(GivenArguments& given, Import& run) {
  constexpr std::string_view kTokens = "--training.num_tokens_per_microbatch_per_dp_rank";
  constexpr std::string_view kStep = "--training.num_tokens_per_train_step";
  Parallelism& p = run.parallel;
  run.seq_len = tokens_of_sample(given, "--training.max_context_length");
  const std::int64_t tokens = number(given, kTokens, 16384);
  const std::int64_t pipelined = number(given, "--parallelism.num_pp_microbatches", 1);
  const std::int64_t said = given.text(kStep).value_or("-1") == "-1" ? 0 : number(given, kStep, 0);
  p.micro_batch = static_cast<int>(whole_samples(given, kTokens, tokens, run.seq_len));
  const std::int64_t pass =
      samples(given, kTokens, {p.micro_batch, p.pp > 1 ? pipelined : 1, p.dp});
  run.global_batch = said > 0 ? whole_samples(given, kStep, said, run.seq_len) : pass;
  if (run.global_batch == 0) run.accumulation = p.pp > 1 ? pipelined : 1;
  if (p.pp > 1 && p.dp > 0 && run.global_batch > pass) {
    run.notes.emplace_back(
        "num_tokens_per_train_step is that of several runs of the pipeline, which is filled and "
        "emptied in each: here it is filled once");
  }
}

/// `usual` is what selective recomputation means where nothing else is said.
void read_memory(GivenArguments& given, const char* usual, Import& run) {
  Parallelism& p = run.parallel;
  const std::string mode = given.text("--activation_checkpoint.mode").value_or("selective");
  const std::optional<std::string> said = given.text("--activation_checkpoint.selective_ac_option");
  const std::string option = said.value_or(usual);
  p.recompute = mode == "none"   ? Recompute::none
                : mode == "full" ? Recompute::full
                                 : Recompute::selective;
  const bool selects = mode == "selective";
  if (selects && option == "op") {
    run.notes.emplace_back(
        "selective recomputation repeats every second GEMM as well: here attention, norms and "
        "activations alone");
  }
  if ((selects && option != "op") || (!selects && mode != "none" && mode != "full")) {
    run.notes.push_back(
        !selects ? fmt::format("activation_checkpoint.mode {}: taken as selective recomputation",
                               in_quotes(mode))
        : said   ? fmt::format("selective_ac_option {}: taken as selective recomputation",
                               in_quotes(option))
               : "activation_checkpoint is not said, so that every second block recomputes: taken "
                 "as selective recomputation");
  }
  const std::string offload =
      lowered(given.text("--training.enable_cpu_offload").value_or("false"));
  p.offload_optimizer = offload == "true";
  if (p.offload_optimizer) {
    run.notes.emplace_back(
        "training.enable_cpu_offload moves parameters and gradients with the optimizer state: here "
        "their shards stay on the device");
  }
}

/// Of 0.2, mixed precision is FSDP's where layers are divided (maybe_enable_amp() in
/// torchtitan/distributed/utils.py).
bool needs_shards_to_mix(const Import& run) {
  const Parallelism& p = run.parallel;
  return run.trainer == "torchtitan" && p.cp == 1 && (p.tp > 1 || p.pp > 1);
}

void read_precision(GivenArguments& given, std::string_view text, Import& run) {
  const std::string converters = lowered(given.text("--model.converters").value_or(""));
  const std::string dtype = given.text("--training.dtype").value_or("float32");
  const std::string mixed = given.text("--training.mixed_precision_param").value_or("bfloat16");
  const bool needs_shards = needs_shards_to_mix(run) && dtype != "bfloat16";
  const bool mixes = mixed == "bfloat16" && (!needs_shards || run.parallel.zero != Zero::none);
  const bool narrow = mixes || dtype == "bfloat16";
  const bool eight = contains(converters, "float8") || contains(converters, "mx");
  // The variable that lets GEMMs of FP32 run in TF32, as export writes it.
  const bool tf32 = contains(text, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1");
  run.precision = parse_precision(eight ? "fp8" : narrow ? "bf16" : tf32 ? "tf32" : "fp32");
  // How many ranks share the state may follow from the devices.
  if (needs_shards && mixes && !eight && run.parallel.dp == 0) {
    run.precision_of_one_shard = parse_precision(tf32 ? "tf32" : "fp32");
  }
  if (contains(converters, "mx") || contains(converters, "nvfp4")) {
    run.notes.push_back("converters: taken as " + name_of(*run.precision) + "; give --precision");
  }
  if (dtype == "bfloat16") {
    run.notes.emplace_back(
        "training.dtype bfloat16 keeps gradients and optimizer state in it: here they are in "
        "float32");
  }
  if (given.text("--compile.enable").value_or("") == "true" && !eight) {
    run.notes.emplace_back("compile.enable: what the compiler fuses is not modelled");
  }
}

/// What changes the trainer's behaviour, and what else no figure depends on.
void read_behaviour(GivenArguments& given, bool recipe, Import& run) {
  const Parallelism& p = run.parallel;
  const auto is_true = [&](std::string_view name) {
    return lowered(given.text(name).value_or("false")) == "true";
  };
  const bool hides = is_true("--parallelism.enable_async_tensor_parallel");
  if (is_true("--compile.enable_async_tensor_parallel") || hides) {
    run.does.push_back({&TrainerBehaviour::overlapped_tensor_parallel, true});
  }
  const std::string rotates =
      given.text("--parallelism.context_parallel_rotate_method").value_or("allgather");
  if (p.cp > 1 && (recipe || rotates == "allgather")) {
    run.notes.emplace_back(
        "context parallelism gathers keys and values at once: here they go round in a ring");
  }
  if (is_true("--parallelism.disable_loss_parallel") && p.tp > 1) {
    run.notes.emplace_back(
        "disable_loss_parallel gathers logits before the loss: here it is sharded over "
        "tensor-parallel ranks");
  }
  const std::string optimizer = given.text("--optimizer.name").value_or("AdamW");
  if (optimizer != "AdamW" && optimizer != "Adam") {
    run.notes.push_back("optimizer " + in_quotes(optimizer) + ": here state and step are Adam's");
  }
  if (is_true("--optimizer.early_step_in_backward")) {
    run.notes.emplace_back(
        "early_step_in_backward frees gradients layer by layer: here all are kept until the step");
  }
}

/// Where gradients are whole, each micro-batch sums them (train_step() in torchtitan/train.py).
void note_sums(Import& run) {
  const Parallelism& p = run.parallel;
  const bool several =
      run.accumulation > 1 || (p.dp > 0 && run.global_batch > std::int64_t{p.dp} * p.micro_batch);
  if (p.pp > 1 || p.zero != Zero::none || std::int64_t{p.dp} * p.cp == 1 || !several) return;
  run.notes.emplace_back("gradients are summed with each micro-batch of a step: here once");
}

/// What figures depend on, and what it is taken for where a recipe says nothing.
constexpr UsualSetting kUsual[] = {
    {"--parallelism.tensor_parallel_degree", "1", "--tp"},
    {"--parallelism.pipeline_parallel_degree", "1", "--pp"},
    {"--parallelism.context_parallel_degree", "1", "--cp"},
    {"--parallelism.expert_parallel_degree", "1", "--ep"},
    {"--activation_checkpoint.mode", "selective", "--recompute"},
    {"--training.num_tokens_per_microbatch_per_dp_rank", "16384", "--micro-batch"},
    {"--training.max_context_length", "2048", "--seq-len"}};

}  // namespace

bool is_torchtitan(std::string_view text) {
  return is_torchtitan_command(text) ||
         has_sign(text, {"from torchtitan", "tensor_parallel_degree", "pipeline_parallel_degree",
                         "data_parallel_shard_degree", "fsdp_reshard_after_forward =",
                         "local_batch_size", "num_tokens_per_microbatch_per_dp_rank"});
}

Import import_torchtitan(std::string_view text, const std::string& file,
                         const ImportChoice& choice) {
  const TorchtitanSource source = torchtitan_source(text, file, choice);
  const bool recipe = source.is_recipe;
  GivenArguments given = as_arguments(source.settings, source.file);
  Import run;
  run.trainer = recipe ? "torchtitan-recipe" : "torchtitan";
  run.own_options = recipe ? std::span<const OwnOption>(kRecipeOptions) : kTomlOptions;
  run.notes = source.notes;
  const TorchtitanModel* model = read_torchtitan_model(source, given, run);
  const bool takes_own = choice.blocks == 0 && model != nullptr;
  const std::int64_t blocks = takes_own ? model->shape.blocks : choice.blocks_of_model();
  Parallelism& p = run.parallel;
  p.tp = degree(given, "--parallelism.tensor_parallel_degree");
  p.cp = degree(given, "--parallelism.context_parallel_degree");
  p.pp = degree(given, "--parallelism.pipeline_parallel_degree");
  p.ep = degree(given, "--parallelism.expert_parallel_degree");
  // Recipes have no degree of their own: experts that are spread are whole.
  const int expert_tp = degree(given, "--parallelism.expert_tensor_parallel_degree");
  if (model != nullptr && model->shape.experts == 0) p.ep = 1;
  p.whole_experts = p.ep > 1 && p.tp > 1 && expert_tp == 1;
  const std::string sequence =
      lowered(given.text("--parallelism.enable_sequence_parallel").value_or("true"));
  p.sequence_parallel = p.tp > 1 && sequence != "false";
  read_state(given, source.devices, run);
  if (run.devices == 0) run.devices = source.devices;
  read_pipeline(given, blocks, run);
  if (recipe) {
    read_tokens(given, run);
  } else {
    read_samples(given, run);
  }
  note_sums(run);
  // Of 0.2: of every second block.
  read_memory(given, recipe ? "op" : "2", run);
  read_precision(given, text, run);
  read_behaviour(given, recipe, run);
  note_unmodelled(given, unmodelled_torchtitan_keys(), run);
  if (source.leaves_recipe) note_usual_settings(given, kUsual, run);
  for (const Setting& each : source.settings) {
    if (is_ignored_by_torchtitan_reader(each.name)) given.has("--" + each.name);
  }
  run.unknown = unknown_settings(given);
  return run;
}

}  // namespace braid
