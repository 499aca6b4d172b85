#include "braid/trainers/accelerate/megatron_config.h"

#include <array>
#include <string>
#include <string_view>

#include "braid/base/text.h"
#include "braid/trainers/exchange/expert_shards.h"
#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/recomputed_modules.h"
#include "braid/trainers/exchange/settings.h"

namespace braid {
namespace {

constexpr std::int64_t kMostRanks = 1 << 15;

int ranks(GivenArguments& given, const char* name, int otherwise = 1) {
  return static_cast<int>(given.count(name, 1, kMostRanks).value_or(otherwise));
}

void read_state(GivenArguments& given, Import& run) {
  Parallelism& p = run.parallel;
  p.zero = is_on(given, "--use_distributed_optimizer") ? Zero::optimizer : Zero::none;
  if (is_on(given, "--use_custom_fsdp")) p.zero = Zero::parameters;
  p.offload_optimizer = is_on(given, "--optimizer_cpu_offload");
  if (is_on(given, "--use_precision_aware_optimizer")) {
    run.notes.emplace_back(
        "megatron_lm_use_precision_aware_optimizer: here the optimizer keeps FP32 beside the "
        "weights");
  }
  const std::string granularity = lowered(given.text("--recompute_granularity").value_or(""));
  const bool recomputes = is_on(given, "--recompute_activations");
  p.recompute = granularity == "full"                      ? Recompute::full
                : granularity == "selective" || recomputes ? Recompute::selective
                                                           : Recompute::none;
  if (p.recompute == Recompute::selective) take_recomputed_modules("core_attn", "", run);
}

}  // namespace

void read_megatron_lm(GivenArguments& given, Import& run) {
  run.trainer = "megatron";
  Parallelism& p = run.parallel;
  p.tp = ranks(given, "--tp_degree");
  p.pp = ranks(given, "--pp_degree");
  p.cp = ranks(given, "--context_parallel_size");
  p.ep = ranks(given, "--expert_model_parallel_size");
  const int experts_tp = ranks(given, "--expert_tensor_parallel_size", p.tp);
  if (p.ep > 1) take_expert_shards(given, "--expert_tensor_parallel_size", experts_tp, run);
  p.sequence_parallel = is_on(given, "--sequence_parallelism") && p.tp > 1;
  read_state(given, run);
  if (const auto last = given.text("--decoder_last_pipeline_num_layers")) {
    run.notes.push_back("megatron_lm_decoder_last_pipeline_num_layers " + on_one_line(*last) +
                        ": here stages are as even as Megatron-LM deals layers");
  }
  const std::int64_t steps = given.count_or("--num_micro_batches", 1);
  run.says_micro_batch = false;
  run.steps_of_batch = run.accumulation = steps;
  constexpr std::array<std::string_view, 13> kIgnored = {"--gradient_clipping",
                                                         "--recompute_method",
                                                         "--recompute_num_layers",
                                                         "--attention_backend",
                                                         "--attention_dropout",
                                                         "--hidden_dropout",
                                                         "--attention_softmax_in_fp32",
                                                         "--calculate_per_token_loss",
                                                         "--use_rotary_position_embeddings",
                                                         "--no_load_optim",
                                                         "--no_save_optim",
                                                         "--eod_mask_loss",
                                                         "--overlap_cpu_optimizer_d2h_h2d"};
  given.ignore(kIgnored);
}

}  // namespace braid
