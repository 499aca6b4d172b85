#include "braid/trainers/exchange/hf_arguments.h"

#include <array>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/settings.h"

namespace braid {
namespace {

constexpr std::int64_t kMostOfAnArgument = 1 << 30;

/// Tokens of a sample, as the usual scripts call them (run_clm.py, TRL, FastChat).
constexpr std::string_view kLengths[] = {"--block_size", "--max_seq_length", "--max_length",
                                         "--model_max_length"};

/// Of data, steps of the optimizer, evaluation, logs and checkpoints.
constexpr auto kOfNoFigure = std::to_array<std::string_view>({"--output_dir",
                                                              "--overwrite_output_dir",
                                                              "--do_train",
                                                              "--do_eval",
                                                              "--do_predict",
                                                              "--eval_strategy",
                                                              "--evaluation_strategy",
                                                              "--prediction_loss_only",
                                                              "--per_device_eval_batch_size",
                                                              "--eval_accumulation_steps",
                                                              "--eval_delay",
                                                              "--torch_empty_cache_steps",
                                                              "--learning_rate",
                                                              "--lr",
                                                              "--weight_decay",
                                                              "--adam_beta1",
                                                              "--adam_beta2",
                                                              "--adam_epsilon",
                                                              "--max_grad_norm",
                                                              "--num_train_epochs",
                                                              "--max_steps",
                                                              "--max_train_steps",
                                                              "--lr_scheduler_type",
                                                              "--lr_scheduler_kwargs",
                                                              "--warmup_ratio",
                                                              "--warmup_steps",
                                                              "--num_warmup_steps",
                                                              "--log_level",
                                                              "--log_level_replica",
                                                              "--log_on_each_node",
                                                              "--logging_dir",
                                                              "--logging_strategy",
                                                              "--logging_first_step",
                                                              "--logging_steps",
                                                              "--logging_nan_inf_filter",
                                                              "--save_strategy",
                                                              "--save_steps",
                                                              "--save_total_limit",
                                                              "--save_safetensors",
                                                              "--save_on_each_node",
                                                              "--save_only_model",
                                                              "--seed",
                                                              "--data_seed",
                                                              "--ddp_backend",
                                                              "--ddp_timeout",
                                                              "--ddp_find_unused_parameters",
                                                              "--eval_steps",
                                                              "--dataloader_num_workers",
                                                              "--dataloader_prefetch_factor",
                                                              "--dataloader_drop_last",
                                                              "--dataloader_pin_memory",
                                                              "--dataloader_persistent_workers",
                                                              "--run_name",
                                                              "--disable_tqdm",
                                                              "--remove_unused_columns",
                                                              "--label_names",
                                                              "--load_best_model_at_end",
                                                              "--metric_for_best_model",
                                                              "--greater_is_better",
                                                              "--ignore_data_skip",
                                                              "--report_to",
                                                              "--skip_memory_metrics",
                                                              "--push_to_hub",
                                                              "--resume_from_checkpoint",
                                                              "--hub_model_id",
                                                              "--hub_strategy",
                                                              "--hub_token",
                                                              "--hub_private_repo",
                                                              "--gradient_checkpointing_kwargs",
                                                              "--label_smoothing_factor",
                                                              "--bf16_full_eval",
                                                              "--fp16_full_eval",
                                                              "--half_precision_backend",
                                                              "--local_rank",
                                                              "--deepspeed",
                                                              "--deepspeed_config",
                                                              "--eval_on_start",
                                                              "--full_determinism",
                                                              "--config_name",
                                                              "--tokenizer_name",
                                                              "--cache_dir",
                                                              "--use_fast_tokenizer",
                                                              "--model_revision",
                                                              "--token",
                                                              "--use_auth_token",
                                                              "--trust_remote_code",
                                                              "--low_cpu_mem_usage",
                                                              "--dataset_name",
                                                              "--dataset_config_name",
                                                              "--train_file",
                                                              "--validation_file",
                                                              "--max_train_samples",
                                                              "--max_eval_samples",
                                                              "--streaming",
                                                              "--overwrite_cache",
                                                              "--validation_split_percentage",
                                                              "--preprocessing_num_workers",
                                                              "--keep_linebreaks",
                                                              "--data_path",
                                                              "--eval_data_path",
                                                              "--lazy_preprocess",
                                                              "--checkpointing_steps",
                                                              "--with_tracking"});

}  // namespace

bool is_set_for_hf(GivenArguments& given, std::string_view name) {
  return given.has(name) && (given.is_bare(name) || is_on(given, name));
}

void take_hf_arguments(GivenArguments& given, Import& run) {
  for (const std::string_view length : kLengths) {
    if (const auto tokens = given.count(length, 1, kMostOfAnArgument)) run.seq_len = *tokens;
  }
  run.model = given.text("--model_name_or_path").value_or("");
  if (is_set_for_hf(given, "--gradient_checkpointing")) run.parallel.recompute = Recompute::full;
  const std::string optimizer = lowered(given.text("--optim").value_or("adamw"));
  if (!optimizer.starts_with("adamw") || contains(optimizer, "bit") || contains(optimizer, "bnb")) {
    run.notes.push_back("--optim " + on_one_line(optimizer) + ": here state and step are Adam's");
  }
  given.ignore(kOfNoFigure);
}

std::int64_t micro_batch_of_hf(GivenArguments& given) {
  return given.count("--per_device_train_batch_size", 1, kMostOfAnArgument).value_or(0);
}

std::int64_t accumulation_of_hf(GivenArguments& given) {
  return given.count("--gradient_accumulation_steps", 1, kMostOfAnArgument).value_or(0);
}

}  // namespace braid
