#include "braid/trainers/torchtitan/recipe.h"

#include <fmt/format.h>

#include "braid/trainers/torchtitan/common_limits.h"
#include "braid/trainers/torchtitan/launch.h"

namespace braid {
namespace {

[[noreturn]] void refuse_recipe(const std::string& reason, const std::string& remedy) {
  refuse_for_torchtitan(TorchtitanFormat::recipe, reason, remedy);
}

/// Facts of torchtitan/trainer.py, models/common/decoder.py (update_from_config) and
/// distributed/parallel_dims.py.
const TorchtitanModel& check_recipe_runs(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const TorchtitanModel& model = check_torchtitan_model(plan, TorchtitanFormat::recipe);
  const std::int64_t tokens = p.micro_batch * plan.seq_len;
  const std::int64_t pieces =
      (p.sequence_parallel ? std::int64_t{p.tp} : 1) * (p.cp > 1 ? 2 * std::int64_t{p.cp} : 1);
  if (tokens % pieces != 0) {
    refuse_recipe(fmt::format("refuses micro-batches of {} tokens: they must be a multiple of {}",
                              tokens, pieces),
                  "plan with another --seq-len, --tp or --cp");
  }
  if (p.pp > 1 && plan.shape->tied_embeddings) {
    refuse_recipe("has no pipelines for models whose embeddings are tied", "plan with --pp 1");
  }
  if (p.ep == 1) return model;
  if (p.tp > 1 && !p.whole_experts) {
    refuse_recipe(
        "spreads whole experts over tensor-parallel ranks too, and the plan's are sharded",
        "plan with --tp 1 or --ep 1, or use --to torchtitan");
  }
  const std::int64_t ranks = std::int64_t{torchtitan_replicas(p).shard} * p.cp * p.tp;
  if (ranks % p.ep != 0) {
    refuse_recipe(
        fmt::format("spreads experts over the {} ranks that share the state, which "
                    "expert-parallel groups of {} do not divide",
                    ranks, p.ep),
        "plan with --zero 2 or more (1 in pipelines) and an --ep that divides dp times cp");
  }
  return model;
}

std::vector<std::string> recipe_limits(const Plan& plan, const TorchtitanModel& model) {
  std::vector<std::string> warnings = common_torchtitan_limits(plan, model);
  if (plan.parallel.cp > 1) {
    warnings.emplace_back(
        "context parallelism gathers all keys and values at once, in place of a ring");
  }
  if (plan.precision.gradient != Dtype::f32) {
    warnings.emplace_back("gradients are reduced in float32, whatever the plan says");
  }
  return warnings;
}

std::string imports_text(const Plan& plan, const TorchtitanModel& model) {
  std::string text =
      "from torchtitan.components.data import ConcatThenSplitPackingConfig, GrainDataLoader\n"
      "from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss\n"
      "from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw\n";
  const bool eight = plan.precision.matmul == Dtype::f8;
  if (eight) text += "from torchtitan.components.quantization import Float8LinearConverter\n";
  text += eight ? "from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig\n"
                : "from torchtitan.config import ParallelismConfig, TrainingConfig\n";
  if (plan.parallel.recompute != Recompute::none) {
    text += fmt::format("from torchtitan.distributed.activation_checkpoint import {}\n",
                        plan.parallel.recompute == Recompute::full ? "FullAC" : "SelectiveAC");
  }
  return text + fmt::format(
                    "from torchtitan.hf_datasets.text_datasets import DATASETS\n"
                    "from torchtitan.models.common.config_utils import decoder_vocab_size\n"
                    "from torchtitan.models.{} import model_registry\n"
                    "from torchtitan.trainer import Trainer\n\n\n",
                    model.name);
}

std::string registry_text(const Plan& plan, const TorchtitanModel& model) {
  std::string text = fmt::format(
      "    model_spec = model_registry(\n        \"{}\",\n"
      // Context parallelism is in this backend alone.
      "        attn_backend=\"flex\",\n",
      model.flavor);
  if (plan.precision.matmul == Dtype::f8) {
    text += "        converters=[Float8LinearConverter.Config(model_compile_enabled=True)],\n";
  }
  return text + "    )\n";
}

std::string training_config(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const bool full = plan.precision.matmul == Dtype::f32 || plan.precision.matmul == Dtype::tf32;
  std::string text = fmt::format(
      "        training=TrainingConfig(\n"
      "            num_tokens_per_microbatch_per_dp_rank={} * {},\n"
      "            num_tokens_per_train_step={} * {},\n            max_context_length={},\n"
      "            mixed_precision_param=\"{}\",\n            mixed_precision_reduce=\"float32\",\n"
      // Captured graphs exclude pipelines and most of expert parallelism, and plans are without.
      "            disable_cuda_graphs=True,\n",
      p.micro_batch, plan.seq_len, plan.global_batch, plan.seq_len, plan.seq_len,
      full ? "float32" : "bfloat16");
  if (p.offload_optimizer || p.offload_weights) {
    text += "            enable_cpu_offload=True,\n";
  }
  return text + "            steps=10,\n        ),\n";
}

std::string parts_text(const Plan& plan) {
  std::string text = "            module_fqns_per_model_part=[\n";
  for (const std::vector<std::string>& part : torchtitan_modules(plan, "lm_head")) {
    text += "                [";
    for (std::size_t i = 0; i < part.size(); ++i) {
      text += fmt::format("{}\"{}\"", i > 0 ? ", " : "", part[i]);
    }
    text += "],\n";
  }
  return text + "            ],\n";
}

std::string parallelism_config(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const TorchtitanReplicas replicas = torchtitan_replicas(p);
  std::string text = fmt::format(
      "        parallelism=ParallelismConfig(\n"
      "            data_parallel_replicate_degree={},\n            data_parallel_shard_degree={},\n"
      "            fsdp_reshard_after_forward=\"{}\",\n            tensor_parallel_degree={},\n"
      "            enable_sequence_parallel={},\n            context_parallel_degree={},\n"
      "            expert_parallel_degree={},\n            pipeline_parallel_degree={},\n",
      replicas.replicate, replicas.shard, p.zero == Zero::parameters ? "always" : "never", p.tp,
      p.sequence_parallel || p.tp == 1 ? "True" : "False", p.cp, p.ep, p.pp);
  if (p.pp > 1) {
    text += fmt::format(
        "            pipeline_parallel_schedule=\"{}\",\n            num_pp_microbatches={},\n",
        torchtitan_schedule(p.schedule), p.num_micro_batches);
    text += parts_text(plan);
  }
  return text + "        ),\n";
}

std::string_view recomputation_config(Recompute recompute) {
  return recompute == Recompute::none   ? "        activation_checkpoint=None,\n"
         : recompute == Recompute::full ? "        activation_checkpoint=FullAC.Config(),\n"
                                        : "        activation_checkpoint=SelectiveAC.Config(),\n";
}

}  // namespace

Export export_torchtitan_recipe(const Plan& plan, const std::string& file) {
  const TorchtitanModel& model = check_recipe_runs(plan);
  const Processes processes = processes_of(plan);
  Export out;
  out.suggested_file = file.empty() ? "torchtitan_recipe.py" : file;
  out.warnings = recipe_limits(plan, model);
  if (!processes.note.empty()) out.warnings.push_back(processes.note);
  const std::string name = out.suggested_file.substr(out.suggested_file.find_last_of('/') + 1);
  const std::string arguments =
      "--module " + name.substr(0, name.find_last_of('.')) + " --config braid";
  out.launch = torchtitan_launch(plan, processes, arguments);

  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  text += "# For torchtitan after 0.2, as " + name + " in its folder.\n";
  text += "# " + out.launch + "\n";
  text += torchtitan_dry_run(plan, arguments);
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += "\n" + imports_text(plan, model) + "def braid() -> Trainer.Config:\n";
  text += registry_text(plan, model);
  text +=
      "    return Trainer.Config(\n        model_spec=model_spec,\n"
      "        # What a plan does not say; as it stands, ten steps on torchtitan's own test data.\n"
      "        hf_assets_path=\"./tests/assets/tokenizer\",\n"
      "        dataloader=GrainDataLoader.Config(\n"
      "            dataset=ConcatThenSplitPackingConfig(dataset=DATASETS[\"c4_test\"]),\n"
      "        ),\n"
      "        loss=ChunkedLossWrapper.Config(\n"
      "            loss_fn=CrossEntropyLoss.Config(\n"
      "                global_vocab_size=decoder_vocab_size(model_spec),\n            ),\n"
      "        ),\n        optimizer=default_adamw(lr=3e-4),\n"
      "        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=2),\n";
  text += training_config(plan);
  text += parallelism_config(plan);
  text += recomputation_config(plan.parallel.recompute);
  if (plan.precision.matmul == Dtype::f8) text += "        compile=CompileConfig(enable=True),\n";
  text += "    )\n";
  return out;
}

}  // namespace braid
