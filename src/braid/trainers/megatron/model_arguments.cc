#include "braid/trainers/megatron/model_arguments.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "braid/trainers/exchange/export.h"
#include "braid/trainers/exchange/stage_layout.h"
#include "braid/trainers/megatron/limits.h"

namespace braid {
namespace {

using Warnings = std::vector<std::string>;

/// What Megatron-LM multiplies with the tensor parallel degree to pad the vocabulary: the largest
/// power of two up to its default of 128 that pads as little as the degree allows.
std::int64_t vocabulary_multiple(std::int64_t vocab, std::int64_t tp) {
  std::int64_t multiple = 1;
  while (multiple < 128 && vocab % (2 * multiple * tp) == 0) multiple *= 2;
  return multiple;
}

/// "1110" as '([1]*3+[0]*1)', the list that Megatron-LM evaluates.
std::string list_of_marks(const std::string& marks) {
  std::string text;
  for (std::size_t i = 0; i < marks.size();) {
    const std::size_t end = std::min(marks.find_first_not_of(marks[i], i), marks.size());
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", marks[i], end - i);
    i = end;
  }
  return "'(" + text + ")'";
}

void add_latent_attention(const ModelShape& shape, MegatronArguments& arguments) {
  arguments.flag("--multi-latent-attention");
  if (shape.q_rank > 0) arguments.value("--q-lora-rank", shape.q_rank);
  arguments.value("--kv-lora-rank", shape.kv_rank);
  arguments.value("--qk-head-dim", shape.qk_dim - shape.rotary_dim);
  arguments.value("--qk-pos-emb-head-dim", shape.rotary_dim);
  arguments.value("--v-head-dim", shape.head_dim);
  // The norms of the compressed queries, keys and values.
  arguments.flag("--qk-layernorm");
}

void add_attention(const ModelShape& shape, MegatronArguments& arguments) {
  arguments.value("--num-attention-heads", shape.heads);
  const bool odd = shape.head_dim * shape.heads != shape.hidden;
  if (odd) arguments.value("--kv-channels", shape.head_dim);
  if (shape.latent_attention) {
    add_latent_attention(shape, arguments);
  } else {
    if (shape.kv_heads != shape.heads) {
      arguments.flag("--group-query-attention");
      arguments.value("--num-query-groups", shape.kv_heads);
    }
    if (shape.qk_norm) arguments.flag("--qk-layernorm");
  }
  if (shape.window > 0) {
    arguments.value("--window-size", fmt::format("'({},0)'", shape.window));
    if (!shape.windowed_blocks.empty()) {
      arguments.value("--window-attn-skip-freq", list_of_marks(shape.windowed_blocks));
    }
  }
  if (shape.attention_sinks) arguments.value("--softmax-type", "learnable");
}

/// yarn's figures in the names of latent attention, and of the other kinds.
void add_yarn(const ModelShape& shape, MegatronArguments& arguments, Warnings& warnings) {
  const RotaryScaling& scaling = shape.rotary_scaling;
  arguments.value("--rotary-scaling-factor", scaling.factor);
  arguments.value("--mscale", scaling.mscale);
  arguments.value("--mscale-all-dim", scaling.mscale_all_dim);
  if (!shape.latent_attention) {
    if (scaling.original_positions > 0) {
      arguments.value("--yarn-original-max-position-embeddings", scaling.original_positions);
    }
    arguments.value("--yarn-beta-fast", scaling.beta_fast);
    arguments.value("--yarn-beta-slow", scaling.beta_slow);
    return;
  }
  const bool usual = (scaling.original_positions == 0 || scaling.original_positions == 4096) &&
                     scaling.beta_fast == 32 && scaling.beta_slow == 1;
  if (!usual) {
    warnings.emplace_back(
        "yarn's original positions and betas have no argument with latent attention: 4096, 32 and "
        "1 are used");
  }
}

void add_rotation(const Plan& plan, MegatronArguments& arguments, Warnings& warnings) {
  const ModelShape& shape = *plan.shape;
  const RotaryScaling& scaling = shape.rotary_scaling;
  const bool yarn = scaling.kind == "yarn";
  arguments.value("--position-embedding-type", yarn && !shape.latent_attention ? "yarn" : "rope");
  if (shape.rotary_base > 0) {
    arguments.value("--rotary-base", static_cast<std::int64_t>(std::llround(shape.rotary_base)));
  } else {
    warnings.emplace_back(
        "the rotary base is not in the plan: add --rotary-base to MODEL_ARGS where it is not "
        "10000");
  }
  if (shape.latent_attention) arguments.value("--rope-type", yarn ? "yarn" : "rope");
  if (!shape.latent_attention && shape.rotary_dim > 0 && shape.rotary_dim != shape.head_dim) {
    arguments.value("--rotary-percent",
                    static_cast<double>(shape.rotary_dim) / static_cast<double>(shape.head_dim));
  }
  if (yarn) {
    add_yarn(shape, arguments, warnings);
  } else if (scaling.kind == "llama3") {
    arguments.flag("--use-rope-scaling");
    arguments.value("--rope-scaling-factor", scaling.factor);
  } else if (scaling.kind == "linear" && scaling.factor == std::floor(scaling.factor)) {
    arguments.value("--rotary-seq-len-interpolation-factor",
                    static_cast<std::int64_t>(scaling.factor));
  } else if (!scaling.kind.empty()) {
    warnings.push_back("rotary scaling " + on_one_line(scaling.kind) +
                       " has no argument: left out");
  }
  // The fused kernels are Transformer Engine's; latent attention has one for yarn alone.
  const bool fused = has_transformer_engine(plan) && (!shape.latent_attention || yarn);
  if (!fused) arguments.flag("--no-rope-fusion");
}

void add_positions(const Plan& plan, MegatronArguments& arguments, Warnings& warnings) {
  const ModelShape& shape = *plan.shape;
  if (shape.rotary) {
    add_rotation(plan, arguments, warnings);
  } else {
    arguments.value("--position-embedding-type", shape.positions > 0 ? "learned_absolute" : "none");
  }
  arguments.value("--seq-length", plan.seq_len);
  arguments.value("--max-position-embeddings", std::max(plan.seq_len, shape.positions));
}

void add_activation(const ModelShape& shape, MegatronArguments& arguments, Warnings& warnings) {
  const std::string& name = shape.activation;
  if (shape.expert_clamp) {
    arguments.flag("--quick-geglu");
    arguments.value("--glu-linear-offset", "1.0");
    arguments.value("--activation-func-clamp-value", "7.0");
  } else if (name == "geglu") {
    arguments.flag("--quick-geglu");
    warnings.emplace_back("GeGLU has no argument: its approximation by a sigmoid is used");
  } else if (name == "relu_squared") {
    arguments.flag("--squared-relu");
    // The fused kernels of biases know GeLU and SiLU.
    if (shape.linear_bias) arguments.flag("--no-bias-gelu-fusion");
  } else if (shape.gated) {
    arguments.flag("--swiglu");
  }
  const bool known = name.empty() || name == "geglu" || name == "relu_squared" ||
                     name == (shape.gated ? "swiglu" : "gelu");
  if (!known) {
    warnings.push_back(fmt::format("the activation function {} has no argument: {} is used",
                                   on_one_line(name), shape.gated ? "SwiGLU" : "GeLU"));
  }
}

void add_norms(const Plan& plan, MegatronArguments& arguments, Warnings& warnings) {
  const ModelShape& shape = *plan.shape;
  if (shape.rms) arguments.value("--normalization", "RMSNorm");
  if (shape.norm_epsilon > 0) arguments.value("--norm-epsilon", shape.norm_epsilon);
  const bool engine = has_transformer_engine(plan);
  if (shape.norm_from_one && engine) arguments.flag("--apply-layernorm-1p");
  // PyTorch's RMS norm stands in for Transformer Engine's.
  if (shape.rms && !engine) arguments.flag("--no-persist-layer-norm");
  if (shape.norms == "around") {
    warnings.emplace_back(
        "norms behind attention and feed-forward network have no argument: the model is trained "
        "without them");
  } else if (shape.norms == "parallel") {
    warnings.emplace_back(
        "attention and feed-forward network side by side have no argument: the model is trained "
        "with one behind the other");
  } else if (shape.norms == "after") {
    warnings.emplace_back(
        "norms behind the shortcuts have no argument: the model is trained with norms before each "
        "half");
  }
  if (shape.embedding_width > 0) {
    warnings.push_back(
        fmt::format("an embedding of width {} has no argument: it is as wide as the hidden size",
                    shape.embedding_width));
  }
  if (shape.soft_capped) {
    warnings.emplace_back("soft caps on scores and logits have no argument: left out");
  }
}

void add_router(const ModelShape& shape, MegatronArguments& arguments, Warnings& warnings) {
  arguments.value("--moe-router-topk", shape.top_k);
  if (shape.router_score.empty()) {
    warnings.emplace_back(
        "how the router scores is not in the plan: add --moe-router-score-function and the like to "
        "MODEL_ARGS where it is not a softmax over the chosen experts");
  } else {
    arguments.value("--moe-router-score-function", shape.router_score);
  }
  // A softmax over the one expert that was chosen has no gradient, and is refused.
  const bool softmax = shape.router_score != "sigmoid";
  if (softmax && (shape.top_k == 1 || shape.router_all_experts)) {
    arguments.flag("--moe-router-pre-softmax");
  }
  if (shape.router_groups > 0) {
    arguments.value("--moe-router-num-groups", shape.router_groups);
    arguments.value("--moe-router-group-topk", shape.router_top_groups);
  }
  if (shape.router_scaling != 1) {
    arguments.value("--moe-router-topk-scaling-factor", shape.router_scaling);
  }
  if (shape.router_bias) {
    arguments.flag("--moe-router-enable-expert-bias");
    arguments.value("--moe-router-load-balancing-type", "none");
    arguments.value("--moe-router-dtype", "fp32");
  }
}

void add_experts(const Plan& plan, MegatronArguments& arguments, Warnings& warnings) {
  const ModelShape& shape = *plan.shape;
  if (shape.experts == 0) return;
  arguments.value("--num-experts", shape.experts);
  add_router(shape, arguments, warnings);
  arguments.value("--moe-ffn-hidden-size", shape.expert_inner);
  if (shape.expert_latent > 0) arguments.value("--moe-latent-size", shape.expert_latent);
  if (shape.shared_inner > 0) {
    arguments.value("--moe-shared-expert-intermediate-size", shape.shared_inner);
    if (shape.shared_gate) arguments.flag("--moe-shared-expert-gate");
  }
  if (!shape.expert_blocks.empty()) {
    arguments.value("--moe-layer-freq", list_of_marks(shape.expert_blocks));
  } else if (shape.dense_blocks > 0) {
    arguments.value("--moe-layer-freq", fmt::format("'([0]*{}+[1]*{})'", shape.dense_blocks,
                                                    shape.blocks - shape.dense_blocks));
  }
  // The kernels need compute capability 8.0, as Transformer Engine does.
  if (has_transformer_engine(plan)) arguments.flag("--moe-grouped-gemm");
  arguments.value("--moe-token-dispatcher-type", "alltoall");
}

void add_hybrid(const Plan& plan, MegatronArguments& arguments) {
  const ModelShape& shape = *plan.shape;
  std::string pattern = hybrid_pattern(plan);
  for (std::int64_t i = 0; i < shape.mtp_modules; ++i) pattern += "/" + shape.mtp_pattern;
  arguments.value("--hybrid-layer-pattern", "'" + pattern + "'");
  arguments.value("--mamba-num-heads", shape.state_heads);
  arguments.value("--mamba-head-dim", shape.state_head_dim);
  arguments.value("--mamba-state-dim", shape.state_size);
  arguments.value("--mamba-num-groups", shape.state_groups);
}

}  // namespace

void add_model(const Plan& plan, MegatronArguments& arguments, Warnings& warnings) {
  const ModelShape& shape = *plan.shape;
  if (is_hybrid(plan)) {
    add_hybrid(plan, arguments);
  } else {
    arguments.value("--num-layers", shape.blocks);
  }
  arguments.value("--hidden-size", shape.hidden);
  // Megatron-LM wants a width even where every block has experts.
  arguments.value("--ffn-hidden-size", shape.inner > 0 ? shape.inner : shape.expert_inner);
  add_attention(shape, arguments);
  add_activation(shape, arguments, warnings);
  add_norms(plan, arguments, warnings);
  if (!shape.linear_bias && !shape.expert_bias) {
    arguments.flag("--disable-bias-linear");
    if (shape.qkv_bias) arguments.flag("--add-qkv-bias");
  }
  if (!shape.tied_embeddings) arguments.flag("--untie-embeddings-and-output-weights");
  add_positions(plan, arguments, warnings);
  if (!shape.dropout) {
    arguments.value("--attention-dropout", "0.0");
    arguments.value("--hidden-dropout", "0.0");
  }
  arguments.value("--vocab-size", shape.vocab);
  arguments.value("--make-vocab-size-divisible-by",
                  vocabulary_multiple(shape.vocab, plan.parallel.tp));
  add_experts(plan, arguments, warnings);
  if (shape.mtp_modules > 0) {
    arguments.value("--mtp-num-layers", shape.mtp_modules);
    if (shape.mtp_shared) arguments.flag("--mtp-use-repeated-layer");
  }
}

}  // namespace braid
