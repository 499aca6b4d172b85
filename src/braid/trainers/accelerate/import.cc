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
    for (const std::string_view prefix : {"parallelism_config_", "fsdp_"}) {
      if (each.name.starts_with(prefix)) each.name.erase(0, prefix.size());
    }
  }
  return settings;
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
  const std::string reshard = lowered(given.text("--reshard_after_forward").value_or("true"));
  const bool version =
      !given.text("--version").value_or("").empty() || given.has("--reshard_after_forward");
  const bool fsdp = shard > 1 || version;
  p.zero = !fsdp                                              ? Zero::none
           : reshard == "false" || reshard == "shard_grad_op" ? Zero::gradients
                                                              : Zero::parameters;
  if (p.zero != Zero::none) p.replicate = static_cast<int>(replicate);
  p.recompute = is_on(given, "--activation_checkpointing") ? Recompute::full : Recompute::none;
  if (is_on(given, "--offload_params")) p.offload_optimizer = p.offload_weights = true;
  run.devices = given.count_or("--num_processes", 0);
  const std::string precision = given.text("--mixed_precision").value_or("no");
  run.precision = parse_precision(precision == "bf16" || precision == "fp16" || precision == "fp8"
                                      ? precision
                                      : std::string("fp32"));
  p.num_micro_batches = given.count_or("--gradient_accumulation_steps", 1);
  constexpr std::array<std::string_view, 20> kIgnored = {"--compute_environment",
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
                                                         "--cp_backend"};
  given.ignore(kIgnored);
  run.unknown = unknown_settings(given);
  return run;
}

}  // namespace braid
