#include "braid/trainers/megatron/export.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/plan/names.h"
#include "braid/trainers/megatron/limits.h"

namespace braid {
namespace {

/// Arguments one a line behind the torchrun line, so that people can comment and edit.
class Arguments {
 public:
  void flag(const std::string& name) { text_ += " \\\n    " + name; }
  template <typename T>
  void value(const std::string& name, const T& value) {
    text_ += fmt::format(" \\\n    {} {}", name, value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// What Megatron-LM multiplies with the tensor parallel degree to pad the vocabulary: the largest
/// power of two up to its default of 128 that pads as little as the degree allows.
std::int64_t vocabulary_multiple(std::int64_t vocab, std::int64_t tp) {
  std::int64_t multiple = 1;
  while (multiple < 128 && vocab % (2 * multiple * tp) == 0) multiple *= 2;
  return multiple;
}

void add_experts(const Plan& plan, Arguments& arguments) {
  const ModelShape& shape = *plan.shape;
  if (shape.experts == 0) return;
  arguments.value("--num-experts", shape.experts);
  arguments.value("--moe-router-topk", shape.top_k);
  // A softmax over the one expert that was chosen has no gradient, and is refused.
  if (shape.top_k == 1) arguments.flag("--moe-router-pre-softmax");
  arguments.value("--moe-ffn-hidden-size", shape.expert_inner);
  if (shape.shared_inner > 0) {
    arguments.value("--moe-shared-expert-intermediate-size", shape.shared_inner);
    if (shape.shared_gate) arguments.flag("--moe-shared-expert-gate");
  }
  if (shape.dense_blocks > 0) {
    arguments.value("--moe-layer-freq", fmt::format("'([0]*{}+[1]*{})'", shape.dense_blocks,
                                                    shape.blocks - shape.dense_blocks));
  }
  // The kernels need compute capability 8.0, as Transformer Engine does.
  if (has_transformer_engine(plan)) arguments.flag("--moe-grouped-gemm");
  arguments.value("--moe-token-dispatcher-type", "alltoall");
}

void add_shape(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  arguments.value("--num-layers", count_blocks(plan).total);
  if (!plan.shape) {
    warnings.emplace_back(
        "the plan does not hold the model's shape (hidden size, heads, vocabulary): set "
        "MODEL_ARGS, and another script where it is no GPT");
    return;
  }
  const ModelShape& shape = *plan.shape;
  arguments.value("--hidden-size", shape.hidden);
  // Megatron-LM wants a width even where every block has experts.
  arguments.value("--ffn-hidden-size", shape.inner > 0 ? shape.inner : shape.expert_inner);
  arguments.value("--num-attention-heads", shape.heads);
  if (shape.latent_attention) {
    arguments.flag("--multi-latent-attention");
    warnings.emplace_back(
        "the ranks and widths of latent attention are not in the plan: add --q-lora-rank, "
        "--kv-lora-rank, --qk-head-dim, --qk-pos-emb-head-dim and --v-head-dim to MODEL_ARGS");
  } else {
    if (shape.kv_heads != shape.heads) {
      arguments.flag("--group-query-attention");
      arguments.value("--num-query-groups", shape.kv_heads);
    }
    if (shape.head_dim * shape.heads != shape.hidden) {
      arguments.value("--kv-channels", shape.head_dim);
    }
  }
  if (shape.window > 0) arguments.value("--window-size", fmt::format("'({},0)'", shape.window));
  if (shape.qk_norm) arguments.flag("--qk-layernorm");
  if (shape.gated) arguments.flag("--swiglu");
  if (!shape.activation.empty() && shape.activation != (shape.gated ? "swiglu" : "gelu")) {
    warnings.push_back(fmt::format("the activation function {} has no argument: {} is used",
                                   on_one_line(shape.activation), shape.gated ? "SwiGLU" : "GeLU"));
  }
  if (shape.rms) arguments.value("--normalization", "RMSNorm");
  if (!shape.linear_bias) {
    arguments.flag("--disable-bias-linear");
    if (shape.qkv_bias) arguments.flag("--add-qkv-bias");
  }
  if (!shape.tied_embeddings) arguments.flag("--untie-embeddings-and-output-weights");
  arguments.value("--position-embedding-type", shape.rotary          ? "rope"
                                               : shape.positions > 0 ? "learned_absolute"
                                                                     : "none");
  if (!shape.dropout) {
    arguments.value("--attention-dropout", "0.0");
    arguments.value("--hidden-dropout", "0.0");
  }
  arguments.value("--vocab-size", shape.vocab);
  arguments.value("--make-vocab-size-divisible-by",
                  vocabulary_multiple(shape.vocab, plan.parallel.tp));
  add_experts(plan, arguments);
  if (shape.experts > 0) {
    warnings.emplace_back(
        "how the router scores and balances is not in the plan: add --moe-router-score-function, "
        "--moe-router-load-balancing-type and the like to MODEL_ARGS where they are not softmax "
        "and aux_loss");
  }
  if (shape.rotary) {
    warnings.emplace_back(
        "the rotary base and scaling are not in the plan: add --rotary-base to MODEL_ARGS where it "
        "is "
        "not 10000");
  }
  if (!shape.causal) {
    warnings.emplace_back(
        "attention is not causal: pretrain_gpt.py must give way to pretrain_bert.py");
  }
}

/// "Et*3|(tttt|)*6t*3L": embedding, blocks and loss by virtual stage, in pipeline order.
std::string layout_text(const std::vector<std::int64_t>& blocks) {
  const auto cell = [](std::int64_t count) {
    return count == 0 ? std::string() : count == 1 ? "t" : fmt::format("t*{}", count);
  };
  std::string layout = "E" + cell(blocks.front()) + "|";
  for (std::size_t i = 1; i + 1 < blocks.size();) {
    std::size_t end = i;
    while (end + 1 < blocks.size() && blocks[end] == blocks[i]) ++end;
    if (end - i > 1) {
      layout +=
          fmt::format("({}|)*{}", std::string(static_cast<std::size_t>(blocks[i]), 't'), end - i);
    } else {
      layout += cell(blocks[i]) + "|";
    }
    i = end;
  }
  return layout + cell(blocks.back()) + "L";
}

void add_pipeline(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  const BlockCounts blocks = count_blocks(plan);
  arguments.value("--pipeline-model-parallel-size", p.pp);
  if (p.pp == 1) return;
  if (p.schedule == ScheduleKind::gpipe) {
    warnings.emplace_back("Megatron-LM has no GPipe schedule: it runs 1F1B");
  }
  if (blocks.even) {
    if (p.vp > 1)
      arguments.value("--num-layers-per-virtual-pipeline-stage", blocks.per_chunk.front());
    return;
  }
  const auto& counts = blocks.per_chunk;
  const bool inner_even =
      counts.size() > 2 && std::adjacent_find(counts.begin() + 1, counts.end() - 1,
                                              std::not_equal_to<>()) == counts.end() - 1;
  const bool ends_hold_blocks = counts.front() > 0 && counts.back() > 0;
  if (p.vp == 1 && ends_hold_blocks && (inner_even || counts.size() == 2)) {
    arguments.value("--decoder-first-pipeline-num-layers", counts.front());
    arguments.value("--decoder-last-pipeline-num-layers", counts.back());
    return;
  }
  // The layout itself says how many virtual stages there are.
  arguments.value("--pipeline-model-parallel-layout", "'" + layout_text(counts) + "'");
  warnings.emplace_back(
      "uneven stages need --pipeline-model-parallel-layout (Megatron-LM core 0.13 or later)");
}

void add_recompute(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  if (plan.parallel.recompute == Recompute::selective) {
    arguments.value("--recompute-granularity", "selective");
    const bool experts = plan.shape && plan.shape->experts > 0 && has_transformer_engine(plan);
    if (plan.precision.matmul == Dtype::f8) {
      // Megatron-LM's usual recipe, delayed scaling, refuses to recompute layer norms.
      arguments.value("--fp8-recipe", "tensorwise");
      warnings.emplace_back(
          "recomputing layer norms in FP8 needs Transformer Engine 2.6 or later and another recipe "
          "than delayed scaling: tensorwise is used");
    }
    arguments.value("--recompute-modules",
                    experts ? "core_attn layernorm moe_act" : "core_attn layernorm");
    if (!experts) {
      warnings.emplace_back(
          "the activation function alone cannot be recomputed: its input stays in memory, which "
          "takes "
          "more than the plan says (or add mlp to --recompute-modules, which takes longer)");
    }
  } else if (plan.parallel.recompute == Recompute::full) {
    arguments.value("--recompute-granularity", "full");
    arguments.value("--recompute-method", "uniform");
    arguments.value("--recompute-num-layers", 1);
  }
}

bool is_fsdp(const Parallelism& p) { return p.zero >= Zero::gradients; }

void add_data_parallel(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (is_fsdp(p)) {
    const bool parameters = p.zero == Zero::parameters;
    arguments.flag("--use-megatron-fsdp");
    arguments.value("--data-parallel-sharding-strategy",
                    parameters ? "optim_grads_params" : "optim_grads");
    arguments.flag("--use-distributed-optimizer");
    arguments.flag("--no-gradient-accumulation-fusion");
    arguments.value("--ckpt-format", "fsdp_dtensor");
    warnings.push_back(fmt::format("ZeRO-{} needs Megatron-FSDP (Megatron-LM core 0.12 or later)",
                                   parameters ? 3 : 2));
    if (p.pp > 1) {
      warnings.emplace_back("Megatron-FSDP does not run with pipeline parallelism in all versions");
    }
  } else if (p.zero == Zero::optimizer || p.offload_optimizer) {
    arguments.flag("--use-distributed-optimizer");
  }
  if (std::int64_t{p.dp} * p.cp == 1) return;
  arguments.flag("--overlap-grad-reduce");
  if (p.zero != Zero::none || p.offload_optimizer) arguments.flag("--overlap-param-gather");
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
    case Dtype::f32:
    case Dtype::tf32:
      break;
    default:
      warnings.push_back("precision " + name_of(plan.precision) + " has no Megatron-LM argument");
  }
  const bool mixed = plan.precision.matmul != Dtype::f32 && plan.precision.matmul != Dtype::tf32;
  if (mixed && plan.precision.gradient == Dtype::f32) {
    arguments.flag("--accumulate-allreduce-grads-in-fp32");
  } else if (mixed && plan.precision.matmul != Dtype::f16) {
    // Left to itself, Megatron-LM reduces the gradients of bf16 weights in f32.
    arguments.flag("--grad-reduce-in-bf16");
  }
  if (!has_transformer_engine(plan)) arguments.value("--transformer-impl", "local");
}

void add_offload(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.offload_optimizer) {
    arguments.flag("--optimizer-cpu-offload");
    arguments.flag("--overlap-cpu-optimizer-d2h-h2d");
    arguments.flag("--use-precision-aware-optimizer");
    if (p.zero == Zero::none) {
      warnings.emplace_back(
          "offloading the optimizer state needs the distributed optimizer (ZeRO-1)");
    }
  }
  if (p.offload_weights) warnings.emplace_back("offloading weights cannot be expressed");
  if (p.offload_activations) warnings.emplace_back("offloading activations cannot be expressed");
}

void add_order(const Parallelism& p, Arguments& arguments, std::vector<std::string>& warnings) {
  // Axes of one rank have no place in the order.
  std::vector<Axis> order;
  std::vector<Axis> usual;
  const auto degree = [&p](Axis axis) {
    return axis == Axis::tp ? p.tp : axis == Axis::cp ? p.cp : axis == Axis::dp ? p.dp : p.pp;
  };
  for (const Axis axis : p.order) {
    if (degree(axis) > 1) order.push_back(axis);
  }
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    if (degree(axis) > 1) usual.push_back(axis);
  }
  if (order == usual) return;
  std::vector<Axis> swapped = usual;  // tp, cp, pp, dp
  if (swapped.size() > 1) std::swap(swapped.back(), swapped[swapped.size() - 2]);
  if (p.dp > 1 && p.pp > 1 && order == swapped) {
    arguments.flag("--use-tp-pp-dp-mapping");
    return;
  }
  std::string text;
  for (const Axis axis : p.order) text += (text.empty() ? "" : "-") + std::string(name_of(axis));
  warnings.push_back("the order of ranks " + text + " cannot be expressed: tp-cp-ep-dp-pp is used");
}

void add_tensor_parallel(const Plan& plan, Arguments& arguments,
                         std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  arguments.value("--tensor-model-parallel-size", p.tp);
  const bool experts = p.ep > 1 || (plan.shape && plan.shape->experts > 0);
  if (p.sequence_parallel) {
    arguments.flag("--sequence-parallel");
  } else if (experts && p.tp > 1) {
    arguments.flag("--sequence-parallel");
    warnings.emplace_back(
        "experts with tensor parallelism need sequence parallelism, which the plan lacks: it is "
        "on");
  }
  if (p.cp > 1) {
    arguments.value("--context-parallel-size", p.cp);
    if (plan.shape && plan.shape->window > 0) arguments.value("--cp-comm-type", "all_gather");
  }
  if (experts) {
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
  }
  text += "# What a plan does not say; as it stands, ten iterations on made-up data.\n";
  text += "MODEL_ARGS=${MODEL_ARGS:-}\n";
  text +=
      "DATA_ARGS=${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --train-iters 10 "
      "--eval-iters 0 --lr 1e-4}\n";
  return text;
}

}  // namespace

Export export_megatron(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = "megatron.sh";
  out.warnings = megatron_limits(plan);
  Arguments arguments;
  add_shape(plan, arguments, out.warnings);
  if (plan.seq_len > 0) {
    arguments.value("--seq-length", plan.seq_len);
    const std::int64_t learned = plan.shape ? plan.shape->positions : 0;
    arguments.value("--max-position-embeddings", std::max(plan.seq_len, learned));
  } else {
    out.warnings.emplace_back(
        "pretrain_gpt.py trains language models, and this model has no sequence: only the degrees "
        "carry over");
  }
  arguments.value("--micro-batch-size", p.micro_batch);
  arguments.value("--global-batch-size", plan.global_batch);
  add_tensor_parallel(plan, arguments, out.warnings);
  add_pipeline(plan, arguments, out.warnings);
  add_recompute(plan, arguments, out.warnings);
  add_data_parallel(plan, arguments, out.warnings);
  add_offload(plan, arguments, out.warnings);
  add_precision(plan, arguments, out.warnings);
  add_order(p, arguments, out.warnings);

  const std::int64_t per_node = std::min(plan.system.groups.front().devices_per_node, p.devices());
  if (p.devices() % per_node != 0) {
    out.warnings.push_back(
        fmt::format("the last node is partly filled: start {} processes there, not {}",
                    p.devices() % per_node, per_node));
  }
  out.text = "#!/usr/bin/env bash\n";
  out.text += "# " + title_of(plan) + "\n";
  for (const std::string& warning : out.warnings) out.text += "# note: " + warning + "\n";
  out.text += preamble(plan);
  out.text += fmt::format(
      "torchrun --nproc-per-node {} --nnodes {} --node-rank \"${{NODE_RANK:-0}}\" \\\n"
      "    --master-addr \"${{MASTER_ADDR:-localhost}}\" --master-port \"${{MASTER_PORT:-29500}}\" "
      "\\\n"
      "    pretrain_gpt.py $MODEL_ARGS $DATA_ARGS",
      per_node, (p.devices() + per_node - 1) / per_node);
  out.text += arguments.text() + "\n";
  return out;
}

}  // namespace braid
