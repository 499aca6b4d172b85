#include "braid/trainers/accelerate/import.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/accelerate/megatron_config.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/hf_arguments.h"
#include "braid/trainers/exchange/launch_line.h"
#include "braid/trainers/exchange/settings.h"
#include "braid/trainers/exchange/signs.h"
#include "braid/trainers/exchange/unmodelled.h"

namespace braid {
namespace {

/// Of processes, of wrapping, of checkpoints and of formats of FP8
/// (src/accelerate/commands/launch.py).
constexpr auto kKeysOfNoFigure =
    std::to_array<std::string_view>({"--compute_environment",
                                     "--distributed_type",
                                     "--num_machines",
                                     "--machine_rank",
                                     "--main_process_ip",
                                     "--main_process_port",
                                     "--rdzv_backend",
                                     "--same_network",
                                     "--state_dict_type",
                                     "--debug",
                                     "--use_parallelism_config",
                                     "--downcast_bf16",
                                     "--main_training_function",
                                     "--tpu_env",
                                     "--tpu_use_cluster",
                                     "--tpu_use_sudo",
                                     "--enable_cpu_affinity",
                                     "--cpu_ram_efficient_loading",
                                     "--cp_backend",
                                     "--gpu_ids",
                                     "--sync_module_states",
                                     "--use_orig_params",
                                     "--transformer_layer_cls_to_wrap",
                                     "--transformer_cls_names_to_wrap",
                                     "--multinode_launcher",
                                     "--zero3_init_flag",
                                     "--zero3_save_16bit_model",
                                     "--gradient_clipping",
                                     "--num_cpu_threads_per_process",
                                     "--mpirun_hostfile",
                                     "--mpirun_ccl",
                                     "--backend",
                                     "--amax_history_len",
                                     "--amax_compute_algo",
                                     "--fp8_format",
                                     "--interval",
                                     "--margin",
                                     "--override_linear_precision",
                                     "--use_autocast_during_eval",
                                     "--opt_level",
                                     "--dynamo_mode",
                                     "--dynamo_use_dynamic",
                                     "--dynamo_use_fullgraph",
                                     "--dynamo_use_regional_compilation",
                                     "--sp_backend",
                                     "--config",
                                     "--commands",
                                     "--command_file",
                                     "--moe_layer_cls_names",
                                     "--rdzv_timeout",
                                     "--tpu_name",
                                     "--tpu_zone"});

// What is usual are the defaults of src/accelerate/commands/config/cluster.py.
constexpr Unmodelled kUnmodelled[] = {
    {"use_cpu", "|false|no|", "the devices are the system's"},
    {"auto_wrap_policy", "|transformer_based_wrap|", "weights are gathered layer by layer"},
    {"min_num_params", "|0|", "weights are gathered layer by layer"},
    {"backward_prefetch", "|backward_pre|none|",
     "the weights of the next layer are gathered ahead"},
    {"forward_prefetch", "|false|", "the weights of the next layer are gathered ahead"},
    {"ignored_modules", "|none|", "all parameters are sharded"},
    {"dynamo_backend", "|no|", "kernels are those that run without a compiler"}};

bool is_launch_text(std::string_view text) {
  return has_line_with(text, "accelerate launch") || has_line_with(text, "accelerate.commands") ||
         has_line_with(text, "accelerate-launch");
}

/// Of a Python script what stands in the brackets of Accelerate's classes; else the whole text.
/// Throws Error where a class stands there twice.
std::vector<Setting> relevant(std::string_view text, const std::string& file) {
  constexpr std::array<std::string_view, 3> kClasses = {
      "ParallelismConfig(", "FullyShardedDataParallelPlugin(", "Accelerator("};
  if (contains(text, "compute_environment:") || contains(text, "parallelism_config:") ||
      contains(text, "distributed_type:")) {
    return settings_of(text);
  }
  std::vector<Setting> all;
  bool is_python = false;
  for (const std::string_view name : kClasses) {
    const std::size_t begin = text.find(name);
    if (begin == std::string_view::npos) continue;
    is_python = true;
    if (text.find(name, begin + 1) != std::string_view::npos) {
      const std::string called(name.substr(0, name.size() - 1));
      throw Error(Where{file, 0, ""},
                  called + " is in it several times, and which one the run has is not known",
                  "leave the one that it has");
    }
    std::size_t end = begin + name.size();
    for (int depth = 1; end < text.size() && depth > 0; ++end) {
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    }
    for (Setting& each : settings_of(text.substr(begin + name.size(), end - begin - name.size()))) {
      if (each.name != "parallelism_config" && each.name != "fsdp_plugin") all.push_back(each);
    }
  }
  return is_python ? all : settings_of(text);
}

/// The key as classes, as the file and as `accelerate launch` have it.
std::string short_name(std::string name) {
  for (const std::string_view prefix :
       {"parallelism_config_", "fsdp_", "deepspeed_", "megatron_lm_"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  return name;
}

std::vector<Setting> with_short_names(std::vector<Setting> settings) {
  for (Setting& each : settings) each.name = short_name(each.name);
  return settings;
}

/// What nobody knows of the settings, by the names that they have there.
std::vector<std::string> unknown_as_written(const GivenArguments& given,
                                            const std::vector<Setting>& settings) {
  std::vector<std::string> all = unknown_settings(given);
  for (std::string& each : all) {
    const std::size_t end = std::min(each.find('='), each.size());
    const auto written = std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& one) {
      return short_name(one.name) == each.substr(0, end);
    });
    if (written != settings.rend()) each.replace(0, end, written->name);
  }
  return all;
}

/// What FSDP calls its ways to shard, by name or by the number of PyTorch's ShardingStrategy.
Zero zero_of_strategy(const std::string& strategy) {
  if (strategy == "no_shard" || strategy == "3") return Zero::none;
  for (const char* of_gradients : {"false", "shard_grad_op", "2", "hybrid_shard_zero2", "5"}) {
    if (strategy == of_gradients) return Zero::gradients;
  }
  return Zero::parameters;
}

/// State that is sharded within a node and copied between nodes has as many copies as there are
/// nodes.
void read_hybrid_shards(GivenArguments& given, const std::string& strategy, Import& run) {
  const std::int64_t nodes = given.count_or("--num_machines", 1);
  if (!strategy.starts_with("hybrid_shard") && strategy != "4" && strategy != "5") return;
  constexpr std::int64_t kMostNodes = 1 << 15;
  if (nodes > 1 && nodes <= kMostNodes) {
    run.parallel.replicate = static_cast<int>(nodes);
    return;
  }
  run.notes.emplace_back(
      "fsdp_sharding_strategy: state is sharded within a node and copied between nodes; here it "
      "is sharded over all ranks, for num_machines does not say how many nodes there are");
}

bool is_deepspeed_plugin(GivenArguments& given) {
  return lowered(given.text("--distributed_type").value_or("")) == "deepspeed";
}

/// Whether one rank has all of the state, as FSDP keeps it where its mesh (dp_shard and cp
/// together, fsdp_dim_names of ParallelismConfig) has no other: nothing is sharded then.
bool has_one_shard(const Import& run, std::int64_t shard, bool says_mesh) {
  const Parallelism& p = run.parallel;
  const std::int64_t others = std::int64_t{p.tp} * p.cp;
  return p.cp == 1 && shard == 1 && (says_mesh || run.devices == others);
}

/// `shards`: the mesh has an axis to shard over.
void read_sharding(GivenArguments& given, bool shards, Import& run) {
  Parallelism& p = run.parallel;
  const std::string kind = lowered(given.text("--distributed_type").value_or(""));
  const std::string strategy = lowered(given.text("--sharding_strategy").value_or(""));
  // The key of the first version of FSDP has the strategy there, too.
  const std::string reshard = lowered(given.text("--reshard_after_forward").value_or("true"));
  const bool version = given.has("--version") || given.has("--reshard_after_forward");
  if (shards || version || kind == "fsdp" || !strategy.empty()) {
    p.zero = zero_of_strategy(strategy.empty() ? reshard : strategy);
    read_hybrid_shards(given, strategy.empty() ? reshard : strategy, run);
  }
  const std::int64_t stage = given.count("--zero_stage", 0, 3).value_or(0);
  if (is_deepspeed_plugin(given)) p.zero = static_cast<Zero>(stage);
  const auto is_moved = [&](const char* name) {
    const std::string device = lowered(given.text(name).value_or("none"));
    return device != "none";
  };
  const bool optimizer = is_moved("--offload_optimizer_device");
  const bool weights = is_moved("--offload_param_device");
  const bool of_python = is_on(given, "--cpu_offload");
  const bool all = is_on(given, "--offload_params") || of_python;
  p.offload_optimizer = optimizer || all;
  if (weights || all) {
    run.notes.push_back(std::string(all ? "offload_params" : "offload_param_device") +
                        ": here the shards of parameters and gradients stay on the device");
  }
}

/// DeepSpeed's own file, where the settings name one, says all but how many processes there are.
std::optional<Import> run_of_deepspeed_file(GivenArguments& given, const ImportChoice& choice) {
  const std::optional<std::string> name = given.text("--config_file");
  if (!name || !is_deepspeed_plugin(given)) return std::nullopt;
  std::optional<Import> named = choice.run_of(*name);
  if (!named) {
    given.fail("--deepspeed_config_file", in_quotes(*name) + " says the rest, and is not there",
               "put it beside this file, or give it in place of this one");
  }
  named->devices = given.count_or("--num_processes", 0);
  named->notes.push_back(on_one_line("deepspeed_config_file " + *name) +
                         ": read, as it counts before what stands beside it");
  return named;
}

bool is_launch(const std::string& word) {
  return word == "launch" || word.ends_with("accelerate.commands.launch") ||
         word.ends_with("accelerate/commands/launch.py") || word == "accelerate-launch";
}

/// Options of `accelerate launch` that stand for a value of the file's key.
struct LaunchFlag {
  std::string_view option, key, value;
};
constexpr LaunchFlag kLaunchFlags[] = {
    {"use_fsdp", "distributed_type", "FSDP"},
    {"use_deepspeed", "distributed_type", "DEEPSPEED"},
    {"use_megatron_lm", "distributed_type", "MEGATRON_LM"},
    {"multi_gpu", "distributed_type", "MULTI_GPU"},
    {"use_parallelism_config", "use_parallelism_config", "true"}};

/// What a run is started with.
struct Launched {
  std::vector<Setting> settings;
  ShellCommand arguments;  ///< Of the training script; empty: none are known.
};

/// What the options of `accelerate launch`, up to the training script, set, behind what the file
/// that they name sets.
Launched launch_settings(const ShellCommand& words, const ImportChoice& choice, Import& run) {
  std::vector<Setting> all;
  std::size_t i = 0;
  for (; i < words.size() && words[i].starts_with("--"); ++i) {
    const std::size_t equals = words[i].find('=');
    Setting one{words[i].substr(2, equals == std::string::npos ? equals : equals - 2), "true"};
    std::replace(one.name.begin(), one.name.end(), '-', '_');
    const auto* const flag =
        std::find_if(std::begin(kLaunchFlags), std::end(kLaunchFlags),
                     [&](const LaunchFlag& each) { return each.option == one.name; });
    if (flag != std::end(kLaunchFlags)) {
      one = {std::string(flag->key), std::string(flag->value)};
    } else if (equals != std::string::npos) {
      one.value = words[i].substr(equals + 1);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with("--") &&
               !words[i + 1].ends_with(".py")) {
      one.value = words[++i];
    }
    if (one.name != "config_file") {
      all.push_back(std::move(one));
      continue;
    }
    const std::optional<std::string> text = choice.text_of(one.value);
    if (!text) {
      run.notes.push_back("--config_file " + on_one_line(one.value) +
                          ": not beside the script, and not read; what it says counts in a run");
      continue;
    }
    std::vector<Setting> of_file = settings_of(*text);
    all.insert(all.begin(), of_file.begin(), of_file.end());
  }
  const auto behind = static_cast<std::ptrdiff_t>(std::min(i + 1, words.size()));
  return {std::move(all), {words.begin() + behind, words.end()}};
}

/// What the file or the Python script sets, or the line, or script, that starts it.
Launched settings_of_run(std::string_view text, const std::string& file, const ImportChoice& choice,
                         Import& run) {
  if (is_launch_text(text)) {
    if (const auto line = launch_line(text, file, choice, is_launch)) {
      run.notes = line->notes;
      return launch_settings(line->words, choice, run);
    }
  }
  return {relevant(text, file), {}};
}

/// The training script says how many samples a micro-batch has.
void read_steps(GivenArguments& given, Import& run) {
  run.says_micro_batch = false;
  const std::string steps = lowered(given.text("--gradient_accumulation_steps").value_or("1"));
  if (steps == "auto" || steps == "1") return;
  run.steps_of_batch = run.accumulation = given.count_or("--gradient_accumulation_steps", 1);
}

/// What the training script is told, where it has arguments of Hugging Face's Trainer, which count
/// before the settings.
void read_script_arguments(const ShellCommand& arguments, const std::string& file, Import& run) {
  GivenArguments given(arguments, file);
  take_hf_arguments(given, run);
  const std::int64_t micro = micro_batch_of_hf(given), steps = accumulation_of_hf(given);
  if (steps > 0) run.accumulation = run.steps_of_batch = steps;
  if (micro > 0) {
    run.parallel.micro_batch = static_cast<int>(micro);
    run.says_micro_batch = true;
    run.steps_of_batch = 0;
    run.accumulation = std::max<std::int64_t>(1, run.accumulation);
  }
  const bool narrow = is_set_for_hf(given, "--bf16"), half = is_set_for_hf(given, "--fp16");
  const bool tf32 = is_set_for_hf(given, "--tf32");
  if (narrow || half) {
    run.precision = parse_precision(narrow ? "bf16" : "fp16");
  } else if (tf32 && run.precision && run.precision->matmul == Dtype::f32) {
    run.precision = parse_precision("tf32");
  }
  const std::vector<std::string> unknown = given.unknown();
  run.unknown.insert(run.unknown.end(), unknown.begin(), unknown.end());
}

}  // namespace

bool is_accelerate(std::string_view text) {
  return has_sign(text, {"ParallelismConfig(", "parallelism_config", "compute_environment:",
                         "fsdp_config:", "distributed_type:", "megatron_lm_config:"}) ||
         is_launch_text(text);
}

Import import_accelerate(std::string_view text, const std::string& file,
                         const ImportChoice& choice) {
  Import run;
  const Launched launched = settings_of_run(text, file, choice, run);
  GivenArguments given = as_arguments(with_short_names(launched.settings), file);
  if (std::optional<Import> named = run_of_deepspeed_file(given, choice)) {
    read_script_arguments(launched.arguments, file, *named);
    return *named;
  }
  run.trainer = "accelerate";
  Parallelism& p = run.parallel;
  const auto degree = [&](const char* name) {
    return static_cast<int>(given.count(name, 1, 1 << 15).value_or(1));
  };
  const std::int64_t replicate = degree("--dp_replicate_size");
  const std::int64_t shard = degree("--dp_shard_size");
  p.tp = degree("--tp_size");
  p.cp = degree("--cp_size");
  if (const int ranks = degree("--sp_size"); ranks > 1) {
    p.cp = ranks;
    run.notes.emplace_back("sp_size: Ulysses exchanges heads; here keys and values go round");
  }
  p.dp = given.has("--dp_replicate_size") || given.has("--dp_shard_size")
             ? static_cast<int>(replicate * shard)
             : 0;
  run.devices = given.count_or("--num_processes", 0);
  const std::int64_t ranks = std::int64_t{p.dp} * p.tp * p.cp;
  if (run.devices > 0 && ranks > 0 && ranks != run.devices) {
    given.fail("--num_processes",
               fmt::format("{} processes, and the sizes of parallelism_config make {}", run.devices,
                           ranks),
               "Accelerate wants as many: change one of them");
  }
  read_sharding(given, shard > 1, run);
  if (!p.offload_optimizer && !is_deepspeed_plugin(given) && has_one_shard(run, shard, p.dp > 0)) {
    p.zero = Zero::none;
    p.replicate = 1;
  }
  if (p.zero != Zero::none && replicate > 1) p.replicate = static_cast<int>(replicate);
  p.recompute = is_on(given, "--activation_checkpointing") ? Recompute::full : Recompute::none;
  const std::string precision = given.text("--mixed_precision").value_or("no");
  run.precision =
      parse_precision(precision == "bf16" || precision == "fp16" || precision == "fp8" ? precision
                      : contains(text, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1") ? std::string("tf32")
                                                                             : std::string("fp32"));
  // get_data_types() of DeepSpeed's engine, which is told nothing else.
  if (is_deepspeed_plugin(given)) run.precision->gradient = run.precision->weight;
  read_steps(given, run);
  if (lowered(given.text("--distributed_type").value_or("")) == "megatron_lm") {
    read_megatron_lm(given, run);
  }
  note_unmodelled(given, kUnmodelled, run);
  given.ignore(kKeysOfNoFigure);
  run.unknown = unknown_as_written(given, launched.settings);
  read_script_arguments(launched.arguments, file, run);
  return run;
}

}  // namespace braid
