#include "braid/trainers/deepspeed/ignored_keys.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

constexpr std::array<std::string_view, 20> kSections = {"activation_checkpointing",
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
                                                        "zero_optimization.leaf_module"};

constexpr std::array<std::string_view, 20> kKeys = {"communication_data_type",
                                                    "dataloader_drop_last",
                                                    "disable_allgather",
                                                    "dump_state",
                                                    "gradient_clipping",
                                                    "gradient_predivide_factor",
                                                    "log_level",
                                                    "memory_breakdown",
                                                    "prescale_gradients",
                                                    "seq_parallel_communication_data_type",
                                                    "sparse_gradients",
                                                    "steps_per_print",
                                                    "wall_clock_breakdown",
                                                    "zero_allow_untested_optimizer",
                                                    "zero_force_ds_cpu_optimizer",
                                                    "bf16.check_grad_overflow",
                                                    "bf16.immediate_grad_update",
                                                    "tensor_parallel.dtype",
                                                    "tensor_parallel.tp_overlap_comm",
                                                    "tensor_parallel.tp_grain_size"};

constexpr std::array<std::string_view, 40> kOfZero = {"allgather_bucket_size",
                                                      "allgather_partitions",
                                                      "contiguous_gradients",
                                                      "elastic_checkpoint",
                                                      "gather_16bit_weights_on_model_save",
                                                      "ignore_unused_parameters",
                                                      "load_from_fp32_weights",
                                                      "memory_efficient_linear",
                                                      "offload_optimizer.buffer_count",
                                                      "offload_optimizer.fast_init",
                                                      "offload_optimizer.nvme_path",
                                                      "offload_optimizer.pin_memory",
                                                      "offload_optimizer.pipeline_read",
                                                      "offload_optimizer.pipeline_write",
                                                      "offload_optimizer.cpuadam_cores_perc",
                                                      "offload_param.buffer_count",
                                                      "offload_param.buffer_size",
                                                      "offload_param.max_in_cpu",
                                                      "offload_param.nvme_path",
                                                      "offload_param.pin_memory",
                                                      "overlap_comm",
                                                      "override_module_apply",
                                                      "param_persistence_threshold",
                                                      "prefetch_bucket_size",
                                                      "reduce_bucket_size",
                                                      "reduce_scatter",
                                                      "round_robin_gradients",
                                                      "stage3_allgather_sequential",
                                                      "stage3_gather_16bit_weights_on_model_save",
                                                      "stage3_gather_fp16_weights_on_model_save",
                                                      "stage3_max_live_parameters",
                                                      "stage3_max_reuse_distance",
                                                      "stage3_model_persistence_threshold",
                                                      "stage3_module_granularity_threshold",
                                                      "stage3_param_persistence_threshold",
                                                      "stage3_prefetch_bucket_size",
                                                      "stage3_use_all_reduce_for_fetch_params",
                                                      "sub_group_size",
                                                      "use_all_reduce_for_fetch_params",
                                                      "use_multi_rank_bucket_allreduce"};

}  // namespace

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
