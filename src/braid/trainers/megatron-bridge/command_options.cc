#include "braid/trainers/megatron-bridge/command_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

/// An option and what it sets; nothing where that changes neither time nor memory
/// (scripts/training/run_recipe.py and scripts/performance/argument_parser.py at 0.6).
struct BridgeOption {
  std::string_view option, short_form, setting;
};
constexpr BridgeOption kOptions[] = {
    {"max_steps", "ms", ""},
    {"global_batch_size", "gb", "train.global_batch_size"},
    {"micro_batch_size", "mb", "train.micro_batch_size"},
    {"seq_length", "sl", "dataset.seq_length"},
    {"tensor_model_parallel_size", "tp", "model.tensor_model_parallel_size"},
    {"pipeline_model_parallel_size", "pp", "model.pipeline_model_parallel_size"},
    {"context_parallel_size", "cp", "model.context_parallel_size"},
    {"virtual_pipeline_model_parallel_size", "vp", "model.virtual_pipeline_model_parallel_size"},
    {"expert_model_parallel_size", "ep", "model.expert_model_parallel_size"},
    {"expert_tensor_parallel_size", "etp", "model.expert_tensor_parallel_size"},
    {"expert_tensor_parallel_size", "et", "model.expert_tensor_parallel_size"},
    {"pipeline_model_parallel_layout", "", "model.pipeline_model_parallel_layout"},
    {"hidden_size", "", "model.hidden_size"},
    {"num_layers", "", "model.num_layers"},
    {"compute_dtype", "c", "mixed_precision"},
    {"use_megatron_fsdp", "", "ddp.use_megatron_fsdp"},
    {"nccl_ub", "", "ddp.nccl_ub"},
    {"cuda_graph_impl", "", "model.cuda_graph_impl"},
    {"cuda_graph_scope", "", "model.cuda_graph_scope"},
    {"moe_a2a_overlap", "", "comm_overlap.overlap_moe_expert_parallel_comm"},
    {"recompute_num_layers", "rl", "model.recompute_num_layers"},
    {"recompute_modules", "", "model.recompute_modules"},
    {"lr", "", ""},
    {"min_lr", "", ""},
    {"warmup_iters", "", ""},
    {"pretrained_checkpoint", "", ""},
    {"save_dir", "", ""},
    {"load_dir", "", ""},
    {"save_interval", "", ""},
    {"most_recent_k", "", ""},
    {"dataset", "", ""},
    {"step_func", "", ""},
    {"dry_run", "", ""},
    {"dryrun", "d", ""},
    {"dump_env", "", ""},
    {"domain", "", ""},
    {"model_family_name", "m", ""},
    {"nemo_home", "nh", ""},
    {"detach", "", ""},
    {"max_retries", "", ""},
    {"distributed_timeout_minutes", "", ""},
    {"data", "", ""},
    {"c4_root", "", ""},
    {"c4_train_shards", "", ""},
    {"dataset_paths", "", ""},
    {"dataset_root", "", ""},
    {"index_mapping_dir", "", ""},
    {"dataset_name", "", ""},
    {"head_only", "", ""},
    {"tokenizer_type", "", ""},
    {"tokenizer_model", "", ""},
    {"hf_token", "hf", ""},
    {"offline", "", ""},
    {"account", "a", ""},
    {"partition", "p", ""},
    {"time_limit", "t", ""},
    {"preempt_time", "", ""},
    {"gpus_per_node", "gn", ""},
    {"gpu", "g", ""},
    {"container_image", "i", ""},
    {"custom_mounts", "cm", ""},
    {"custom_env_vars", "ce", ""},
    {"env", "E", ""},
    {"custom_srun_args", "cs", ""},
    {"custom_bash_cmds", "cb", ""},
    {"gres", "", ""},
    {"additional_slurm_params", "", ""},
    {"packager", "", ""},
    {"enable_pct_binding", "", ""},
    {"csp", "", ""},
    {"log_dir", "l", ""},
    {"save_config_filepath", "", ""},
    {"list_config_variants", "", ""},
    {"is_long_convergence_run", "", ""},
    {"retry_on_testing_failure", "", ""},
    {"golden_values_path", "", ""},
    {"wandb_key", "wdk", ""},
    {"wandb_project_name", "wdp", ""},
    {"wandb_entity_name", "wde", ""},
    {"wandb_experiment_name", "wdj", ""},
    {"wandb_save_dir", "wds", ""},
    {"enable_nsys", "en", ""},
    {"export_nsys_sqlite", "", ""},
    {"pytorch_profiler", "pyp", ""},
    {"profiling_start_step", "", ""},
    {"profiling_stop_step", "", ""},
    {"profiling_gpu_metrics", "", ""},
    {"profiling_ranks", "", ""},
    {"record_memory_history", "mh", ""},
    {"nsys_trace", "", ""},
    {"nsys_extra_args", "", ""}};

/// Options that name the recipe whose settings the others change.
constexpr std::array<std::string_view, 4> kRecipeNames = {"model", "recipe", "model_recipe_name",
                                                          "mr"};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

/// One option with its value, if it has one.
void take_option(std::string name, const std::string& value, BridgeSource& source) {
  std::replace(name.begin(), name.end(), '-', '_');
  if (std::find(kRecipeNames.begin(), kRecipeNames.end(), name) != kRecipeNames.end()) {
    source.notes.push_back("--" + name + " " + on_one_line(value) +
                           ": the recipe's own settings are not read; what this line leaves out is "
                           "as listed above, which may be otherwise in the recipe");
    source.leaves_recipe = true;
    return;
  }
  if (is_one_of(name, {"mode", "task"})) {
    if (is_one_of(value, {"lora", "dora", "peft"})) {
      source.notes.push_back("--" + name + " " + value +
                             ": adapters alone are trained; here all weights are");
    }
    return;
  }
  if (is_one_of(name, {"num_gpus", "ng"})) {
    std::int64_t number = 0;
    constexpr std::int64_t kMostDevices = 1 << 30;
    std::from_chars(value.data(), value.data() + value.size(), number);
    source.devices = number > 0 && number <= kMostDevices ? number : 0;
    return;
  }
  // As set_user_overrides() of scripts/performance/utils/overrides.py does it.
  if (is_one_of(name, {"recompute_num_layers", "rl"})) {
    source.settings.push_back({"model.recompute_granularity", "full", 0});
    source.settings.push_back({"model.recompute_method", "block", 0});
  } else if (name == "recompute_modules") {
    source.settings.push_back({"model.recompute_granularity", "selective", 0});
  }
  for (const BridgeOption& each : kOptions) {
    if (name != each.option && (each.short_form.empty() || name != each.short_form)) continue;
    if (!each.setting.empty()) {
      source.settings.push_back({std::string(each.setting), value.empty() ? "true" : value, 0});
    }
    return;
  }
  source.unknown.push_back(on_one_line("--" + name + (value.empty() ? "" : " " + value)));
}

/// "model.seq_length=4096"; Hydra's marks of what is added, "+", say nothing more.
bool is_override(const std::string& word) {
  const std::size_t equals = word.find('=');
  return !word.starts_with('-') && equals != 0 && equals != std::string::npos;
}

}  // namespace

bool is_bridge_program(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);  // All of it where there is no '/'.
  return is_one_of(name, {"run_recipe.py", "setup_experiment.py", "run_script.py"});
}

void read_bridge_words(const ShellCommand& words, BridgeSource& source) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (is_override(word)) {
      const std::size_t equals = word.find('=');
      const std::size_t begin = std::min(word.find_first_not_of('+'), equals);
      source.settings.push_back({word.substr(begin, equals - begin), word.substr(equals + 1), 0});
      continue;
    }
    const std::size_t begin = word.find_first_not_of('-');
    if (begin == 0 || begin == std::string::npos) continue;
    std::string name = word.substr(begin);
    std::string value;
    if (const std::size_t sign = name.find('='); sign != std::string::npos) {
      value = name.substr(sign + 1);
      name.erase(sign);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with('-') &&
               !is_override(words[i + 1])) {
      value = words[++i];
    }
    take_option(std::move(name), value, source);
  }
}

}  // namespace braid
