#include "braid/trainers/torchtitan/ignored_keys.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

/// Sections of which no figure depends (torchtitan/config/job_config.py of 0.2, the classes named
/// in torchtitan/config/configs.py of later versions).
constexpr auto kIgnoredSections = std::to_array<std::string_view>(
    {"job", "profiling", "profiler", "metrics", "lr_scheduler", "checkpoint", "comm",
     "memory_estimation", "validation", "validator", "dataloader", "tokenizer"});

constexpr auto kIgnoredKeys = std::to_array<std::string_view>({
    "model.norm_type",
    "float8.enable_float8_linear",
    "model.hf_assets_path",
    "model.tokenizer_path",
    "model.print_after_conversion",
    "optimizer.lr",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.eps",
    "optimizer.weight_decay",
    "debug.seed",
    "debug.deterministic_warn_only",
    "debug.moe_force_load_balance",
    "debug.print_config",
    "debug.save_config_file",
    "debug.enable_structured_logging",
    "debug.spmd_typechecking",
    "hf_assets_path",
    "training.dataset",
    "training.dataset_path",
    "training.max_norm",
    "training.steps",
    "training.gc_freq",
    "training.gc_debug",
    "training.dataloader.num_workers",
    "training.dataloader.persistent_workers",
    "training.dataloader.pin_memory",
    "training.dataloader.prefetch_factor",
    "parallelism.pipeline_parallel_expert_parallel_overlap",
    "parallelism.context_parallel_load_balancer",
    "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
    "activation_checkpoint.early_stop",
    "activation_checkpoint.visualize_memory_budget_pareto",
    "activation_checkpoint.preserve_rng_state",
    "activation_checkpoint.determinism_check",
    "activation_checkpoint.debug",
    "compile.backend",
    "compile.components",
    "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
    "quantize.linear.float8.recipe_name",
    "quantize.linear.float8.emulate",
    "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice",
    "quantize.linear.mx.recipe_name",
    "quantize.grouped_mm.float8.fqns",
    "quantize.grouped_mm.mx.recipe_name",
    "quantize.grouped_mm.mx.fqns",
    "fault_tolerance.process_group",
    "fault_tolerance.process_group_timeout_ms",
    "fault_tolerance.replica_id",
    "fault_tolerance.min_replica_size",
    "fault_tolerance.semi_sync_method",
    "experimental.custom_args_module",
    "training.disable_cuda_graphs",
    "parallelism.spmd_backend",
    "parallelism.context_parallel_ptrr_mask_key",
});

constexpr std::string_view kSomeInEight = "all GEMMs of the layers are in FP8";

// What is usual are the defaults of torchtitan/config/job_config.py.
constexpr Unmodelled kUnmodelled[] = {
    {"optimizer.implementation", "|fused|foreach|", "the step is a few kernels for all parameters"},
    {"debug.deterministic", "|false|", "kernels are the fastest, deterministic or not"},
    {"training.mixed_precision_reduce", "|float32|", "gradients are summed in float32"},
    {"parallelism.pipeline_parallel_schedule_csv", "||none|", "pipeline_parallel_schedule counts"},
    {"parallelism.expert_parallel_comm_backend", "|standard|none|",
     "tokens travel by NCCL's all-to-all"},
    {"parallelism.enable_fsdp_symm_mem", "|false|",
     "collectives have the rates that they have without"},
    {"activation_checkpoint.memory_budget", "|0.5|", "activation_checkpoint.mode alone counts"},
    {"quantize.linear.float8.enable_fsdp_float8_all_gather", "|false|",
     "weights are gathered in bfloat16"},
    {"quantize.linear.float8.filter_fqns", "|[]|[\"output\"]|", kSomeInEight},
    {"quantize.linear.mx.filter_fqns", "|[]|[\"output\"]|", kSomeInEight},
    {"fault_tolerance.enable", "|false|", "the devices are one group of replicas"},
    {"fault_tolerance.group_size", "|0|1|", "the devices are one group of replicas"},
    {"experimental.custom_import", "||none|", "nothing of that module is read"}};

}  // namespace

std::span<const Unmodelled> unmodelled_torchtitan_keys() { return kUnmodelled; }

bool is_ignored_by_torchtitan_reader(std::string_view key) {
  const bool is_in_section =
      std::any_of(kIgnoredSections.begin(), kIgnoredSections.end(), [&](std::string_view section) {
        return key.starts_with(section) && key.substr(section.size(), 1) == ".";
      });
  return is_in_section ||
         std::find(kIgnoredKeys.begin(), kIgnoredKeys.end(), key) != kIgnoredKeys.end();
}

}  // namespace braid
