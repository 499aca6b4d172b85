#include "braid/trainers/megatron-bridge/export.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/trainers/exchange/model_names.h"
#include "braid/trainers/exchange/processes.h"
#include "braid/trainers/exchange/recomputed_modules.h"
#include "braid/trainers/exchange/stage_layout.h"

namespace braid {
namespace {

// Hugging Face's names; for models without one the script asks.
// What was published with modules for MTP has one name with them and without.
constexpr auto kModels = std::to_array<NamedModel>(
    {{"deepseek-v2", "deepseek-ai/DeepSeek-V2"},
     {"deepseek-v3", "deepseek-ai/DeepSeek-V3"},
     {"deepseek-v3-mtp", "deepseek-ai/DeepSeek-V3"},
     {"gemma-2-9b", "google/gemma-2-9b"},
     {"gemma-3-1b", "google/gemma-3-1b-pt"},
     {"gemma-7b", "google/gemma-7b"},
     {"gpt-oss-120b", "openai/gpt-oss-120b"},
     {"kimi-k2", "moonshotai/Kimi-K2-Base"},
     {"llama-2-13b", "meta-llama/Llama-2-13b-hf"},
     {"llama-2-70b", "meta-llama/Llama-2-70b-hf"},
     {"llama-2-7b", "meta-llama/Llama-2-7b-hf"},
     {"llama-3-405b", "meta-llama/Llama-3.1-405B"},
     {"llama-3-70b", "meta-llama/Meta-Llama-3-70B"},
     {"llama-3-8b", "meta-llama/Meta-Llama-3-8B"},
     {"mistral-7b", "mistralai/Mistral-7B-v0.1"},
     {"nemotron-3-nano", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"},
     {"nemotron-3-super", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"},
     {"nemotron-3-super-mtp", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"},
     {"nemotron-3.5-lightning", "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16"},
     {"nemotron-3.5-lightning-mtp", "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16"},
     {"nemotron-h-56b", "nvidia/Nemotron-H-56B-Base-8K"},
     {"nemotron-h-8b", "nvidia/Nemotron-H-8B-Base-8K"},
     {"qwen2-7b", "Qwen/Qwen2-7B"},
     {"qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"},
     {"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B"},
     {"qwen3-8b", "Qwen/Qwen3-8B"}});

std::string launch_line(const Processes& processes, const std::string& file) {
  std::string line = fmt::format("torchrun --nproc-per-node {}", processes.per_node);
  if (processes.nodes > 1) {
    line += fmt::format(" --nnodes {} --node-rank $NODE_RANK --master-addr $MASTER_ADDR",
                        processes.nodes);
  }
  return line + " " + file;
}

/// Lines of "cfg.… = …".
class Fields {
 public:
  template <typename T>
  void set(const char* name, const T& value) {
    text_ += fmt::format("cfg.{} = {}\n", name, value);
  }
  void set(const char* name, bool value) { set(name, value ? "True" : "False"); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// "'Ett|ttt|tmL'": blocks of each virtual stage, in pipeline order, and predictions in that chunk.
std::string layout_text(const std::vector<std::int64_t>& blocks, std::int64_t predictions,
                        std::size_t chunk) {
  std::string text = "'E";
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    text += (i > 0 ? "|" : "") + std::string(static_cast<std::size_t>(blocks[i]), 't');
    if (i == chunk) text += std::string(static_cast<std::size_t>(predictions), 'm');
  }
  return text + "L'";
}

void set_pipeline(const Plan& plan, Fields& fields) {
  const Parallelism& p = plan.parallel;
  fields.set("model.pipeline_model_parallel_size", p.pp);
  if (p.pp == 1) return;
  fields.set("model.pipeline_dtype",
             plan.precision.matmul == Dtype::f16 ? "torch.float16" : "torch.bfloat16");
  if (is_hybrid(plan)) {
    check_predictions_of_hybrid(plan, "megatron-bridge");
    fields.set("model.hybrid_layer_pattern", "'" + hybrid_pattern(plan) + "'");
    return;
  }
  const BlockCounts blocks = count_blocks(plan);
  const std::int64_t predictions = plan.shape->mtp_modules;
  const std::size_t chunk = predictions > 0 ? chunk_of_predictions(plan) : 0;
  if (!blocks.even || (predictions > 0 && chunk + 1 != blocks.per_chunk.size())) {
    fields.set("model.pipeline_model_parallel_layout",
               layout_text(blocks.per_chunk, predictions, chunk));
  }
  if (p.vp > 1) fields.set("model.virtual_pipeline_model_parallel_size", p.vp);
}

/// AutoBridge takes as many predictions as the model was published with
/// (num_nextn_predict_layers of its config.json).
void set_predictions(const Plan& plan, Fields& fields) {
  const ModelShape& shape = *plan.shape;
  const bool predicts = shape.mtp_modules > 0;
  if (is_hybrid(plan)) {
    fields.set("model.mtp_num_layers", shape.mtp_modules);
    fields.set("model.mtp_hybrid_override_pattern",
               predicts ? "'" + shape.mtp_pattern + "'" : "None");
  } else {
    fields.set("model.mtp_num_layers", predicts ? std::to_string(shape.mtp_modules) : "None");
  }
  if (predicts || is_hybrid(plan)) {
    fields.set("model.mtp_use_repeated_layer", predicts && shape.mtp_shared);
  }
}

void set_model(const Plan& plan, Fields& fields) {
  const Parallelism& p = plan.parallel;
  fields.set("model.seq_length", plan.seq_len);
  fields.set("model.tensor_model_parallel_size", p.tp);
  fields.set("model.sequence_parallel", p.sequence_parallel);
  fields.set("model.context_parallel_size", p.cp);
  fields.set("model.expert_model_parallel_size", p.ep);
  if (p.ep > 1) fields.set("model.expert_tensor_parallel_size", p.whole_experts ? 1 : p.tp);
  set_pipeline(plan, fields);
  set_predictions(plan, fields);
  if (p.recompute == Recompute::full) {
    fields.set("model.recompute_granularity", "'full'");
    fields.set("model.recompute_method", "'uniform'");
    fields.set("model.recompute_num_layers", 1);
  } else if (p.recompute == Recompute::selective) {
    fields.set("model.recompute_granularity", "'selective'");
    const bool norms = plan.trainer.does.selective_expert_norms && plan.shape &&
                       (plan.shape->experts > 0 || plan.shape->latent_attention);
    fields.set("model.recompute_modules", norms ? "['core_attn', 'layernorm']" : "['core_attn']");
  }
}

void set_sharding(const Plan& plan, Fields& fields, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  const bool fsdp = p.zero == Zero::parameters && std::int64_t{p.dp} * p.cp > 1;
  const bool sharded = p.zero != Zero::none;
  fields.set("ddp.use_distributed_optimizer", sharded);
  fields.set("optimizer.use_distributed_optimizer", sharded);
  fields.set("ddp.overlap_grad_reduce", p.dp * p.cp > 1);
  fields.set("ddp.overlap_param_gather", sharded && p.dp * p.cp > 1);
  if (fsdp) {
    fields.set("ddp.use_megatron_fsdp", true);
    fields.set("dist.use_megatron_fsdp", true);
    fields.set("ddp.data_parallel_sharding_strategy", "'optim_grads_params'");
    if (plan.precision.gradient == Dtype::f32) {  // Its own default is the weights' format.
      fields.set("ddp.megatron_fsdp_main_grads_dtype", "torch.float32");
    }
    fields.set("checkpoint.ckpt_format", "'fsdp_dtensor'");
    fields.set("model.gradient_accumulation_fusion", false);
  }
  if (p.offload_optimizer) {
    fields.set("optimizer.optimizer_cpu_offload", true);
    fields.set("optimizer.optimizer_offload_fraction", "1.0");
    fields.set("optimizer.use_precision_aware_optimizer", true);
  }
  const std::vector<Axis> data_outermost = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  if (p.pp > 1 && p.order == data_outermost) {
    // RankGenerator of Megatron Core wants expert-parallel groups as large as the others.
    if (p.cp > 1 || p.ep > 1) {
      warnings.emplace_back(
          "the order of ranks cannot be expressed: data-parallel ranks are outermost only without "
          "context and expert parallelism, so stages are, which takes another time");
      return;
    }
    fields.set("dist.use_tp_pp_dp_mapping", true);
  }
}

/// Empty: it has none.
std::string_view precision_name(const Precision& precision) {
  switch (precision.matmul) {
    case Dtype::bf16:
      return "bf16_mixed";
    case Dtype::f16:
      return "fp16_mixed";
    case Dtype::f8:
      return "bf16_with_fp8_current_scaling_mixed";
    default:
      return "";
  }
}

/// Trains; asked for a dry run, checks what all processes are to run with and shows it, as
/// run_recipe.py does (scripts/training/recipe_runner.py).
std::string main_part(std::int64_t devices) {
  return fmt::format(
      "\nif \"--dry-run\" in sys.argv:  # One process, without a GPU.\n"
      "    os.environ.update(WORLD_SIZE=\"{}\", RANK=\"0\")\n"
      "    runtime_config_update(cfg)\n"
      "    cfg.print_yaml()\n"
      "elif __name__ == \"__main__\":\n"
      "    pretrain(config=cfg, forward_step_func=forward_step)\n",
      devices);
}

std::string preamble(const Plan& plan) {
  const std::string_view name = their_name(kModels, plan.model_source);
  std::string text =
      "import os\nimport sys\n\nimport torch\n\nfrom megatron.bridge import AutoBridge\n"
      "from megatron.bridge.recipes.common import _pretrain_common\n"
      "from megatron.bridge.training.config import runtime_config_update\n"
      "from megatron.bridge.training.gpt_step import forward_step\n"
      "from megatron.bridge.training.mixed_precision import get_mixed_precision_config\n"
      "from megatron.bridge.training.pretrain import pretrain\n\n";
  if (name.empty()) {
    text +=
        "# A name of Hugging Face, or a folder with the model's config.json.\n"
        "HF_MODEL = os.environ[\"HF_MODEL\"]\n";
  } else {
    text += "# Or a folder with the model's config.json.\n";
    text += fmt::format("HF_MODEL = os.environ.get(\"HF_MODEL\", \"{}\")\n", name);
  }
  text +=
      "cfg = _pretrain_common()  # made-up data unless cfg.dataset.blend says where\n"
      "cfg.model = "
      "AutoBridge.from_hf_pretrained(HF_MODEL).to_megatron_provider(load_weights=False)\n";
  if (plan.shape) {
    text += fmt::format(
        "assert (cfg.model.num_layers, cfg.model.hidden_size) == ({}, {}), "
        "\"HF_MODEL is not the plan's model\"\n",
        plan.shape->blocks, plan.shape->hidden);
  }
  return text;
}

}  // namespace

JobRefusal megatron_bridge_refusal(const TrainedJob& job) {
  if (job.shape == nullptr || !job.shape->causal || job.seq_len == 0) {
    return {"builds decoders of text alone (AutoBridge, gpt_step.py), and " +
                on_one_line(*job.model) + " is none",
            "plan a decoder from its config.json"};
  }
  if (!precision_name(job.precision).empty()) return {};
  return {"has no precision " + name_of(job.precision), "plan with --precision bf16, fp16 or fp8"};
}

Export export_megatron_bridge(const Plan& plan, const std::string& file) {
  throw_refusal("the export for Megatron-Bridge", megatron_bridge_refusal(trained_job(plan)));
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = file.empty() ? "megatron_bridge.py" : file;
  const std::string kept = p.recompute == Recompute::selective
                               ? kept_beside_plan(plan.trainer.does, true)
                               : std::string();
  if (!kept.empty()) out.warnings.push_back(kept + ": plan with --for megatron-bridge");
  if (their_name(kModels, plan.model_source).empty()) {
    out.warnings.emplace_back(
        "the model's name at Hugging Face is not in the plan: set HF_MODEL to it, or to a folder "
        "with its config.json");
  }
  const Processes processes = processes_of(plan);
  if (!processes.note.empty()) out.warnings.push_back(processes.note);
  Fields fields;
  set_model(plan, fields);
  set_sharding(plan, fields, out.warnings);
  fields.set("train.micro_batch_size", p.micro_batch);
  fields.set("train.global_batch_size", plan.global_batch);
  fields.set("dataset.seq_length", plan.seq_len);
  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  text += "# " + launch_line(processes, out.suggested_file) + "\n";
  text += "# Dry run, which checks the settings: python " + out.suggested_file + " --dry-run\n";
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += preamble(plan);
  text += "\n" + fields.text();
  text += fmt::format("\ncfg.mixed_precision = get_mixed_precision_config(\"{}\")\n",
                      precision_name(plan.precision));
  text += fmt::format("cfg.mixed_precision.grad_reduce_in_fp32 = {}\n",
                      plan.precision.gradient == Dtype::f32 ? "True" : "False");
  text +=
      "\n# What a plan does not say; as it stands, ten iterations on made-up data.\n"
      "cfg.tokenizer.tokenizer_type = \"NullTokenizer\"\n"
      "cfg.tokenizer.tokenizer_model = None\n"
      "cfg.tokenizer.use_tokenizer_vocab_size = False\n"
      "cfg.tokenizer.vocab_size = cfg.model.vocab_size\n"
      "cfg.train.train_iters = 10\ncfg.validation.eval_iters = 0\n"
      "cfg.scheduler.lr_warmup_iters = 1\ncfg.checkpoint.save = None\ncfg.checkpoint.load = None\n";
  text += main_part(p.devices());
  return out;
}

}  // namespace braid
