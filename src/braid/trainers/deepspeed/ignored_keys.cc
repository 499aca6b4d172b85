#include "braid/trainers/deepspeed/ignored_keys.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

constexpr auto kSections = std::to_array<std::string_view>({"activation_checkpointing",
                                                            "aio",
                                                            "autotuning",
                                                            "checkpoint",
                                                            "comet",
                                                            "comms_logger",
                                                            "csv_monitor",
                                                            "data_efficiency",
                                                            "data_sampling",
                                                            "elasticity",
                                                            "fp16",
                                                            "flops_profiler",
                                                            "nebula",
                                                            "optimizer",
                                                            "pipeline",
                                                            "scheduler",
                                                            "tensorboard",
                                                            "timers",
                                                            "wandb",
                                                            "zero_optimization.leaf_module"});

constexpr auto kKeys = std::to_array<std::string_view>(
    {"dataloader_drop_last", "dump_state", "gradient_clipping", "gradient_predivide_factor",
     "log_level", "memory_breakdown", "prescale_gradients", "seq_parallel_communication_data_type",
     "steps_per_print", "wall_clock_breakdown", "zero_allow_untested_optimizer",
     "zero_force_ds_cpu_optimizer", "bf16.check_grad_overflow", "bf16.immediate_grad_update",
     "tensor_parallel.dtype", "tensor_parallel.tp_grain_size"});

constexpr auto kOfZero =
    std::to_array<std::string_view>({"allgather_bucket_size",
                                     "contiguous_gradients",
                                     "elastic_checkpoint",
                                     "gather_16bit_weights_on_model_save",
                                     "ignore_unused_parameters",
                                     "load_from_fp32_weights",
                                     "offload_optimizer.buffer_count",
                                     "offload_optimizer.fast_init",
                                     "offload_optimizer.nvme_path",
                                     "offload_optimizer.pin_memory",
                                     "offload_optimizer.pipeline_read",
                                     "offload_optimizer.pipeline_write",
                                     "offload_optimizer.cpuadam_cores_perc",
                                     "offload_param.buffer_count",
                                     "offload_param.buffer_size",
                                     "offload_param.nvme_path",
                                     "offload_param.pin_memory",
                                     "override_module_apply",
                                     "reduce_bucket_size",
                                     "round_robin_gradients",
                                     "stage3_allgather_sequential",
                                     "stage3_gather_16bit_weights_on_model_save",
                                     "stage3_gather_fp16_weights_on_model_save",
                                     "stage3_module_granularity_threshold",
                                     "sub_group_size",
                                     "use_multi_rank_bucket_allreduce"});

constexpr std::string_view kGathered = "the weights of one layer are gathered ahead, and let go";
constexpr std::string_view kAllSharded = "all parameters are sharded";

// What is usual are defaults of runtime/zero/config.py, and "auto", which Hugging Face's Trainer
// fills in.
constexpr Unmodelled kUnmodelled[] = {
    {"communication_data_type", "|null|none|", "gradients travel as they are summed up"},
    {"disable_allgather", "|false|", "updated weights are gathered at once"},
    {"sparse_gradients", "|false|", "gradients are dense"},
    {"fp16.fp16_master_weights_and_grads", "|false|", "the optimizer has weights in FP32"},
    {"elasticity.enabled", "|false|", "batch and devices are those that are given"},
    {"data_efficiency.enabled", "|false|", "every sample has all of its tokens in all layers"},
    {"curriculum_learning.enabled", "|false|", "every sample has all of its tokens"},
    {"pipeline.activation_checkpoint_interval", "|0|", "--recompute says what is recomputed"},
    {"tensor_parallel.tp_overlap_comm", "|false|", "sums over ranks wait for their GEMM"},
    {"zero_optimization.allgather_partitions", "|true|", "updated weights are gathered at once"},
    {"zero_optimization.reduce_scatter", "|true|", "gradients are scattered to their shards"},
    {"zero_optimization.memory_efficient_linear", "|true|", "GEMMs keep no gathered weights"},
    {"zero_optimization.offload_param.max_in_cpu", "|null|1000000000|auto|",
     "all that is moved is on the host"},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", "|false|", kGathered},
    {"zero_optimization.use_all_reduce_for_fetch_params", "|false|", kGathered},
    {"zero_optimization.stage3_max_live_parameters", "|auto|1e9|", kGathered},
    {"zero_optimization.stage3_max_reuse_distance", "|auto|1e9|", kGathered},
    {"zero_optimization.stage3_prefetch_bucket_size", "|auto|5e7|", kGathered},
    {"zero_optimization.prefetch_bucket_size", "|auto|5e7|", kGathered},
    {"zero_optimization.stage3_param_persistence_threshold", "|auto|1e5|", kAllSharded},
    {"zero_optimization.param_persistence_threshold", "|auto|1e5|", kAllSharded},
    {"zero_optimization.stage3_model_persistence_threshold", "|auto|", kAllSharded}};

}  // namespace

std::span<const Unmodelled> unmodelled_deepspeed_keys() { return kUnmodelled; }

bool is_ignored_by_deepspeed_reader(std::string_view key) {
  const auto is_in = [key](std::string_view section) {
    return key == section || (key.starts_with(section) && key[section.size()] == '.');
  };
  if (std::any_of(kSections.begin(), kSections.end(), is_in)) return true;
  if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) return true;
  constexpr std::string_view kZero = "zero_optimization.";
  if (!key.starts_with(kZero)) return false;
  key.remove_prefix(kZero.size());
  return std::find(kOfZero.begin(), kOfZero.end(), key) != kOfZero.end();
}

}  // namespace braid
