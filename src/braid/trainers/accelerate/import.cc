#include "braid/trainers/accelerate/import.h"

#include <array>
#include <vector>

#include "braid/base/text.h"
#include "braid/trainers/exchange/settings.h"

namespace braid {
namespace {

/// Of a Python script what stands in the brackets of Accelerate's classes; else the whole text.
std::vector<Setting> relevant(std::string_view text) {
  constexpr std::array<std::string_view, 3> kClasses = {
      "ParallelismConfig(", "FullyShardedDataParallelPlugin(", "Accelerator("};
  if (contains(text, "compute_environment:") || contains(text, "parallelism_config:")) {
    return settings_of(text);
  }
  std::vector<Setting> all;
  bool is_python = false;
  for (const std::string_view name : kClasses) {
    const std::size_t begin = text.find(name);
    if (begin == std::string_view::npos) continue;
    is_python = true;
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
std::vector<Setting> with_short_names(std::vector<Setting> settings) {
  for (Setting& each : settings) {
    for (const std::string_view prefix : {"parallelism_config_", "fsdp_", "deepspeed_"}) {
      if (each.name.starts_with(prefix)) each.name.erase(0, prefix.size());
    }
  }
  return settings;
}

/// What FSDP calls its ways to shard, by name or by the number of PyTorch's ShardingStrategy.
Zero zero_of_strategy(const std::string& strategy, Import& run) {
  if (strategy == "no_shard" || strategy == "3") return Zero::none;
  if (strategy == "false" || strategy == "shard_grad_op" || strategy == "2") return Zero::gradients;
  if (strategy.starts_with("hybrid_shard") || strategy == "4" || strategy == "5") {
    run.notes.emplace_back(
        "fsdp_sharding_strategy: state is sharded within a node and copied between nodes; here it "
        "is sharded over all ranks");
  }
  return Zero::parameters;
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
    p.zero = zero_of_strategy(strategy.empty() ? reshard : strategy, run);
  }
  const std::int64_t stage = given.count("--zero_stage", 0, 3).value_or(0);
  if (kind == "deepspeed") p.zero = static_cast<Zero>(stage);
  const auto is_moved = [&](const char* name) {
    const std::string device = lowered(given.text(name).value_or("none"));
    return device != "none";
  };
  const bool optimizer = is_moved("--offload_optimizer_device");
  const bool weights = is_moved("--offload_param_device");
  const bool all = is_on(given, "--offload_params");
  p.offload_optimizer = optimizer || all;
  if (weights || all) {
    run.notes.push_back(std::string(all ? "offload_params" : "offload_param_device") +
                        ": here the shards of parameters and gradients stay on the device");
  }
  if (given.has("--config_file")) {
    run.notes.emplace_back("deepspeed_config_file says the rest: give that file in place of this");
  }
}

}  // namespace

bool is_accelerate(std::string_view text) {
  return contains(text, "ParallelismConfig(") || contains(text, "parallelism_config") ||
         contains(text, "compute_environment:") || contains(text, "fsdp_config:");
}

Import import_accelerate(std::string_view text, const std::string& file) {
  GivenArguments given = as_arguments(with_short_names(relevant(text)), file);
  Import run;
  run.trainer = "accelerate";
  Parallelism& p = run.parallel;
  const auto degree = [&](const char* name) {
    return static_cast<int>(given.count(name, 1, 1 << 15).value_or(1));
  };
  const std::int64_t replicate = degree("--dp_replicate_size");
  const std::int64_t shard = degree("--dp_shard_size");
  p.tp = degree("--tp_size");
  p.cp = degree("--cp_size");
  if (given.has("--sp_size") && degree("--sp_size") > 1) {
    run.notes.emplace_back("sp_size: Ulysses' sequence parallelism is taken as no division");
  }
  p.dp = given.has("--dp_replicate_size") || given.has("--dp_shard_size")
             ? static_cast<int>(replicate * shard)
             : 0;
  read_sharding(given, shard > 1, run);
  if (p.zero != Zero::none) p.replicate = static_cast<int>(replicate);
  p.recompute = is_on(given, "--activation_checkpointing") ? Recompute::full : Recompute::none;
  run.devices = given.count_or("--num_processes", 0);
  const std::string precision = given.text("--mixed_precision").value_or("no");
  run.precision = parse_precision(precision == "bf16" || precision == "fp16" || precision == "fp8"
                                      ? precision
                                      : std::string("fp32"));
  p.num_micro_batches = given.count_or("--gradient_accumulation_steps", 1);
  constexpr std::array<std::string_view, 30> kIgnored = {"--compute_environment",
                                                         "--distributed_type",
                                                         "--num_machines",
                                                         "--machine_rank",
                                                         "--main_process_ip",
                                                         "--main_process_port",
                                                         "--rdzv_backend",
                                                         "--same_network",
                                                         "--state_dict_type",
                                                         "--auto_wrap_policy",
                                                         "--debug",
                                                         "--downcast_bf16",
                                                         "--main_training_function",
                                                         "--use_cpu",
                                                         "--tpu_env",
                                                         "--tpu_use_cluster",
                                                         "--tpu_use_sudo",
                                                         "--enable_cpu_affinity",
                                                         "--cpu_ram_efficient_loading",
                                                         "--cp_backend",
                                                         "--gpu_ids",
                                                         "--backward_prefetch",
                                                         "--forward_prefetch",
                                                         "--sync_module_states",
                                                         "--use_orig_params",
                                                         "--transformer_layer_cls_to_wrap",
                                                         "--transformer_cls_names_to_wrap",
                                                         "--multinode_launcher",
                                                         "--zero3_init_flag",
                                                         "--zero3_save_16bit_model"};
  given.ignore(kIgnored);
  run.unknown = unknown_settings(given);
  return run;
}

}  // namespace braid
