#include "braid/trainers/megatron/export.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/plan/names.h"
#include "braid/trainers/exchange/processes.h"
#include "braid/trainers/exchange/recomputed_modules.h"
#include "braid/trainers/exchange/stage_layout.h"
#include "braid/trainers/megatron/arguments.h"
#include "braid/trainers/megatron/limits.h"
#include "braid/trainers/megatron/model_arguments.h"

namespace braid {
namespace {

using Arguments = MegatronArguments;

/// "Et*3|(tttt|)*6t*3mL": embedding, blocks, predictions and loss by virtual stage, in pipeline
/// order; the predictions are in chunk `mtp_chunk`.
std::string layout_text(const std::vector<std::int64_t>& blocks, std::int64_t mtp_modules,
                        std::size_t mtp_chunk) {
  const auto cell = [&](std::size_t chunk) {
    const std::int64_t count = blocks[chunk];
    std::string text = count == 0 ? "" : count == 1 ? "t" : fmt::format("t*{}", count);
    if (chunk == mtp_chunk) {
      for (std::int64_t i = 0; i < mtp_modules; ++i) text += "m";
    }
    return text;
  };
  std::string layout = "E" + cell(0) + "|";
  for (std::size_t i = 1; i + 1 < blocks.size();) {
    std::size_t end = i;
    while (end + 1 < blocks.size() && blocks[end] == blocks[i] && end != mtp_chunk) ++end;
    if (end - i > 1) {
      layout +=
          fmt::format("({}|)*{}", std::string(static_cast<std::size_t>(blocks[i]), 't'), end - i);
    } else {
      end = i + 1;
      layout += cell(i) + "|";
    }
    i = end;
  }
  return layout + cell(blocks.size() - 1) + "L";
}

/// Where the layers between the blocks and the loss, and those before the first, are not in the
/// chunks that Megatron-LM has them in.
void check_ends(const Plan& plan) {
  const auto& first = plan.stages.front().chunks.front().layers;
  const auto& last = plan.stages.back().chunks.back().layers;
  const ModelShape& shape = *plan.shape;
  const std::int64_t layers = std::ssize(plan.profile.layers);
  const bool begins = std::find(first.begin(), first.end(), shape.first_block - 1) != first.end();
  const bool ends = std::find(last.begin(), last.end(), layers - 1) != last.end();
  if (begins && ends) return;
  throw Error("Megatron-LM has the embedding in the first stage and the loss in the last",
              "plan with a smaller --pp");
}

void add_pipeline(const Plan& plan, Arguments& arguments) {
  const Parallelism& p = plan.parallel;
  arguments.value("--pipeline-model-parallel-size", p.pp);
  if (p.pp == 1) return;
  check_ends(plan);
  if (is_hybrid(plan)) return check_predictions_of_hybrid(plan, "megatron");
  const BlockCounts blocks = count_blocks(plan);
  const auto& counts = blocks.per_chunk;
  const std::int64_t mtp = plan.shape->mtp_modules;
  const std::size_t mtp_chunk = mtp > 0 ? chunk_of_predictions(plan) : counts.size() - 1;
  if (mtp_chunk == counts.size() - 1 && blocks.even) {
    if (p.vp > 1) arguments.value("--num-layers-per-virtual-pipeline-stage", counts.front());
    return;
  }
  const bool inner_even =
      counts.size() > 2 && std::adjacent_find(counts.begin() + 1, counts.end() - 1,
                                              std::not_equal_to<>()) == counts.end() - 1;
  const bool all_hold_blocks = std::find(counts.begin(), counts.end(), 0) == counts.end();
  if (mtp == 0 && p.vp == 1 && all_hold_blocks && (inner_even || counts.size() == 2)) {
    arguments.value("--decoder-first-pipeline-num-layers", counts.front());
    arguments.value("--decoder-last-pipeline-num-layers", counts.back());
    return;
  }
  // The layout itself says how many virtual stages there are.
  arguments.value("--pipeline-model-parallel-layout",
                  "'" + layout_text(counts, mtp, mtp_chunk) + "'");
}

/// What of the plan's selective recomputation Megatron-LM has modules for. Transformer Engine
/// computes a norm together with the GEMM behind it: only those before experts and in latent
/// attention are modules of their own.
std::string recomputed_modules(const Plan& plan) {
  const bool engine = has_transformer_engine(plan);
  const bool experts = plan.shape->experts > 0;
  const TrainerBehaviour& does = plan.trainer.does;
  std::string modules;
  const auto add = [&](bool is_recomputed, const char* module) {
    if (is_recomputed) modules += (modules.empty() ? "" : " ") + std::string(module);
  };
  add(does.selective_attention, "core_attn");
  add((does.selective_norms && (!engine || plan.shape->latent_attention)) ||
          (does.selective_expert_norms && experts),
      "layernorm");
  add(does.selective_activations && engine && experts, "moe_act");
  return modules.empty() ? "core_attn" : modules;
}

void add_recompute(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  if (plan.parallel.recompute == Recompute::selective) {
    arguments.value("--recompute-granularity", "selective");
    const std::string modules = recomputed_modules(plan);
    if (plan.precision.matmul == Dtype::f8 && modules != "core_attn") {
      // Megatron-LM's usual recipe, delayed scaling, refuses to recompute layer norms.
      arguments.value("--fp8-recipe", "tensorwise");
      warnings.emplace_back(
          "recomputing layer norms in FP8 needs Transformer Engine 2.6 or later and another recipe "
          "than delayed scaling: tensorwise is used");
    }
    arguments.value("--recompute-modules", modules);
    const std::string kept = kept_beside_plan(plan.trainer.does, has_transformer_engine(plan));
    if (!kept.empty()) {
      warnings.push_back(kept +
                         ": plan with --for megatron (or add mlp to --recompute-modules, which "
                         "takes longer)");
    }
  } else if (plan.parallel.recompute == Recompute::full) {
    arguments.value("--recompute-granularity", "full");
    arguments.value("--recompute-method", "uniform");
    arguments.value("--recompute-num-layers", 1);
  }
}

/// A single rank shards nothing.
bool is_fsdp(const Parallelism& p) {
  return p.zero >= Zero::gradients && std::int64_t{p.dp} * p.cp > 1;
}

bool has_distributed_optimizer(const Parallelism& p) {
  return is_fsdp(p) || p.zero == Zero::optimizer || p.offload_optimizer;
}

void add_data_parallel(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (is_fsdp(p)) {
    const bool parameters = p.zero == Zero::parameters;
    arguments.flag("--use-megatron-fsdp");
    arguments.value("--data-parallel-sharding-strategy",
                    parameters ? "optim_grads_params" : "optim_grads");
    arguments.flag("--no-gradient-accumulation-fusion");
    // Its own default is the weights' format.
    if (plan.precision.gradient == Dtype::f32 && plan.precision.weight != Dtype::f32) {
      arguments.value("--megatron-fsdp-main-grads-dtype", "fp32");
    }
    arguments.value("--ckpt-format", "fsdp_dtensor");
    warnings.push_back(fmt::format("ZeRO-{} needs Megatron-FSDP (Megatron-LM core 0.14 or later)",
                                   parameters ? 3 : 2));
  }
  if (has_distributed_optimizer(p)) arguments.flag("--use-distributed-optimizer");
  if (!plan.trainer.does.overlapped_gradients) return;
  arguments.flag("--overlap-grad-reduce");
  if (has_distributed_optimizer(p)) arguments.flag("--overlap-param-gather");
}

/// Transformer Engine keeps the weights in FP8 beside those in BF16, unless they are gathered in
/// FP8, which offloaded optimizer state allows with delayed scaling alone.
void add_fp8_weights(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  const bool delayed =
      p.recompute != Recompute::selective || recomputed_modules(plan) == "core_attn";
  if (p.zero >= Zero::optimizer && has_distributed_optimizer(p) &&
      (delayed || !p.offload_optimizer)) {
    arguments.flag("--fp8-param-gather");
    return;
  }
  warnings.emplace_back(
      "Transformer Engine keeps weights and their transposes in FP8 as well, about 2 bytes a "
      "parameter more than the plan says (--fp8-param-gather needs ZeRO-1)");
}

void add_precision(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  switch (plan.precision.matmul) {
    case Dtype::bf16:
      arguments.flag("--bf16");
      break;
    case Dtype::f16:
      arguments.flag("--fp16");
      break;
    case Dtype::f8:
      arguments.flag("--bf16");
      arguments.value("--fp8-format", "hybrid");
      break;
    default:
      break;
  }
  if (plan.precision.matmul == Dtype::f8) add_fp8_weights(plan, arguments, warnings);
  const bool mixed = plan.precision.matmul != Dtype::f32 && plan.precision.matmul != Dtype::tf32;
  if (mixed && plan.precision.gradient == Dtype::f32) {
    arguments.flag("--accumulate-allreduce-grads-in-fp32");
  } else if (mixed && plan.precision.matmul != Dtype::f16) {
    // Left to itself, Megatron-LM reduces the gradients of bf16 weights in f32.
    arguments.flag("--grad-reduce-in-bf16");
  }
  if (!has_transformer_engine(plan)) {
    arguments.value("--transformer-impl", "local");
    // The kernel that adds weight gradients up is an extension of Apex.
    if (!is_fsdp(plan.parallel)) arguments.flag("--no-gradient-accumulation-fusion");
  }
}

/// What the plan's trainer does otherwise than Megatron-LM by itself, where the plan is one for it.
void add_kernels(const Plan& plan, Arguments& arguments) {
  const TrainerBehaviour& does = plan.trainer.does;
  if (plan.trainer.name != "megatron") return;
  if (does.fused_loss) {
    arguments.flag("--cross-entropy-loss-fusion");
    arguments.value("--cross-entropy-fusion-impl", "te");
  }
  if (does.overlapped_dispatch) arguments.flag("--overlap-moe-expert-parallel-comm");
  if (!has_transformer_engine(plan)) return;
  if (!does.flash_attention) arguments.value("--attention-backend", "unfused");
  if (!does.fused_accumulation && !is_fsdp(plan.parallel)) {
    arguments.flag("--no-gradient-accumulation-fusion");
  }
}

void add_offload(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.offload_optimizer) {
    arguments.flag("--optimizer-cpu-offload");
    arguments.flag("--overlap-cpu-optimizer-d2h-h2d");
    arguments.flag("--use-precision-aware-optimizer");
  }
  if (!p.offload_activations) return;
  arguments.flag("--fine-grained-activation-offloading");
  const bool experts = plan.shape->experts > 0;
  arguments.value("--offload-modules",
                  std::string("qkv_linear core_attn attn_proj attn_norm mlp_norm") +
                      (experts ? " expert_fc1 moe_act" : ""));
  warnings.emplace_back(
      "offloading activations needs Megatron-LM core 0.16 or later, and moves the inputs of the "
      "modules listed, not all that the plan moves");
}

/// The axes of several ranks in the order of `axes`.
std::vector<Axis> axes_that_count(const std::vector<Axis>& axes, const Parallelism& p) {
  std::vector<Axis> order;
  for (const Axis axis : axes) {
    const int degree = axis == Axis::tp   ? p.tp
                       : axis == Axis::cp ? p.cp
                       : axis == Axis::dp ? p.dp
                                          : p.pp;
    if (degree > 1) order.push_back(axis);
  }
  return order;
}

void add_order(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  const std::vector<Axis> order = axes_that_count(p.order, p);
  if (order == axes_that_count({Axis::tp, Axis::cp, Axis::dp, Axis::pp}, p)) return;
  const bool swapped = order == axes_that_count({Axis::tp, Axis::cp, Axis::pp, Axis::dp}, p);
  if (swapped && can_put_data_outermost(plan)) {
    arguments.flag("--use-tp-pp-dp-mapping");
    // Where there are no experts, this makes their data-parallel groups as large as the others',
    // which this order asks for.
    if (plan.shape->experts == 0 && p.cp > 1) {
      arguments.value("--expert-tensor-parallel-size", std::int64_t{p.tp} * p.cp);
    }
    return;
  }
  std::string text;
  for (const Axis axis : p.order) text += (text.empty() ? "" : "-") + std::string(name_of(axis));
  warnings.push_back("the order of ranks " + text + " cannot be expressed" +
                     (swapped ? " with these degrees of experts" : "") +
                     ": tp-cp-ep-dp-pp is used, with which the time differs");
}

void add_tensor_parallel(const Plan& plan, Arguments& arguments) {
  const Parallelism& p = plan.parallel;
  arguments.value("--tensor-model-parallel-size", p.tp);
  if (p.sequence_parallel && p.tp > 1) arguments.flag("--sequence-parallel");
  if (p.cp > 1) {
    arguments.value("--context-parallel-size", p.cp);
    if (plan.shape->window > 0) arguments.value("--cp-comm-type", "all_gather");
  }
  if (plan.shape->experts > 0) {
    arguments.value("--expert-model-parallel-size", p.ep);
    arguments.value("--expert-tensor-parallel-size", p.whole_experts ? 1 : p.tp);
  }
}

/// What stands before the command: how the network is used, and the arguments that a plan cannot
/// know, with values that make the script run as it is.
std::string preamble(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::string text;
  if (is_fsdp(p)) {
    text += "unset CUDA_DEVICE_MAX_CONNECTIONS  # Megatron-FSDP overlaps over many queues\n";
  } else if (p.tp > 1 || p.cp > 1) {
    text += "export CUDA_DEVICE_MAX_CONNECTIONS=1  # communication goes ahead of computation\n";
  }
  if (plan.precision.matmul == Dtype::tf32) {
    text += "export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1  # GEMMs in TF32, not FP32\n";
  } else if (plan.precision.matmul == Dtype::f32) {
    text += "export NVIDIA_TF32_OVERRIDE=0  # GEMMs in FP32: Transformer Engine's are in TF32\n";
  }
  if (p.offload_activations) {
    text += "export NVTE_CPU_OFFLOAD_V1=1  # Transformer Engine moves activations, not weights\n";
  }
  text += "# What a plan does not say; as it stands, ten iterations on made-up data.\n";
  text += "MODEL_ARGS=${MODEL_ARGS:-}\n";
  text +=
      "DATA_ARGS=${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --train-iters 10 "
      "--eval-iters 0 --lr 1e-4}\n";
  return text;
}

/// How to start a rank of the whole job on one GPU, without the others.
std::string dry_run(const Plan& plan, const char* script) {
  return fmt::format(
      "# Dry run of rank 0 on one GPU, with its memory: WORLD_SIZE={} RANK=0 LOCAL_RANK=0\n"
      "# MASTER_ADDR=localhost MASTER_PORT=29500 python {} … --fake-process-group, the arguments\n"
      "# below in place of the dots.\n",
      plan.parallel.devices(), script);
}

}  // namespace

Export export_megatron(const Plan& plan, const std::string& file) {
  check_megatron_runs(plan);
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = file.empty() ? "megatron.sh" : file;
  out.warnings = megatron_limits(plan);
  Arguments arguments;
  add_model(plan, arguments, out.warnings);
  arguments.value("--micro-batch-size", p.micro_batch);
  arguments.value("--global-batch-size", plan.global_batch);
  add_tensor_parallel(plan, arguments);
  add_pipeline(plan, arguments);
  add_recompute(plan, arguments, out.warnings);
  add_data_parallel(plan, arguments, out.warnings);
  add_offload(plan, arguments, out.warnings);
  add_precision(plan, arguments, out.warnings);
  add_kernels(plan, arguments);
  add_order(plan, arguments, out.warnings);

  const Processes processes = processes_of(plan);
  if (!processes.note.empty()) out.warnings.push_back(processes.note);
  const char* script = is_hybrid(plan) ? "pretrain_hybrid.py" : "pretrain_gpt.py";
  out.text = "#!/usr/bin/env bash\n";
  out.text += "# " + title_of(plan) + "\n";
  for (const std::string& warning : out.warnings) out.text += "# note: " + warning + "\n";
  out.text += dry_run(plan, script);
  out.text += preamble(plan);
  out.text += fmt::format(
      "torchrun --nproc-per-node {} --nnodes {} --node-rank \"${{NODE_RANK:-0}}\" \\\n"
      "    --master-addr \"${{MASTER_ADDR:-localhost}}\" --master-port \"${{MASTER_PORT:-29500}}\" "
      "\\\n"
      "    {} $MODEL_ARGS $DATA_ARGS",
      processes.per_node, processes.nodes, script);
  out.text += arguments.text() + "\n";
  return out;
}

}  // namespace braid
