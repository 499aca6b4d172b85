#include "braid/trainers/megatron/limits.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

[[noreturn]] void refuse(const std::string& reason, const std::string& remedy) {
  throw Error("Megatron-LM " + reason, remedy);
}

bool has_engine(const System& system) {
  constexpr double kNeeded = 8.0;
  return least_compute_capability(system) >= kNeeded;
}

JobRefusal refusal_of_model(const TrainedJob& job) {
  if (job.shape == nullptr || job.seq_len == 0) {
    return {"has no script for " + on_one_line(*job.model) +
                ": pretrain_gpt.py and pretrain_hybrid.py train decoders of text, whose sizes the "
                "plan must hold",
            "plan a decoder from its config.json"};
  }
  if (!job.shape->causal) {
    return {"trains decoders of text, and the attention of " + on_one_line(*job.model) +
                " is not causal: its pretrain_bert.py is gone",
            "export a decoder"};
  }
  if (job.shape->latent_attention && job.shape->kv_rank == 0) {
    return {"must be told the ranks of latent attention, which this plan lacks",
            "plan the model from its config.json"};
  }
  if (job.shape->mtp_modules > 0 && job.shape->positions > 0) {
    return {"has multi-token prediction with rotary positions alone",
            "plan without mtp_num_layers"};
  }
  return {};
}

JobRefusal refusal_of_precision(const TrainedJob& job) {
  constexpr std::array kKnown = {Dtype::bf16, Dtype::f16, Dtype::f8, Dtype::f32, Dtype::tf32};
  const Dtype matmul = job.precision.matmul;
  if (std::find(kKnown.begin(), kKnown.end(), matmul) == kKnown.end()) {
    return {"has no argument for this precision", "plan with --precision bf16 or fp8"};
  }
  if (has_engine(*job.system)) return {};
  if (job.shape->latent_attention || matmul == Dtype::f8) {
    return {
        "needs Transformer Engine for latent attention and FP8, and that needs compute capability "
        "8.0",
        "plan for newer GPUs"};
  }
  return {};
}

void check_heads(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const ModelShape& shape = *plan.shape;
  if (shape.heads % p.tp != 0) {
    refuse(
        fmt::format("refuses {} attention heads over {} tensor-parallel ranks", shape.heads, p.tp),
        "plan with a --tp that divides the heads");
  }
  const std::int64_t groups = shape.latent_attention ? shape.heads : shape.kv_heads;
  if (groups % p.tp != 0 && p.tp % groups != 0) {
    refuse(
        fmt::format("refuses {} key and value heads over {} tensor-parallel ranks", groups, p.tp),
        "plan with a --tp that divides them or is a multiple");
  }
  if (shape.state_heads % p.tp != 0 || shape.state_groups % p.tp != 0) {
    refuse(fmt::format("refuses {} state-space heads in {} groups over {} tensor-parallel ranks",
                       shape.state_heads, shape.state_groups, p.tp),
           "plan with a --tp that divides both");
  }
}

void check_sequence(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  if (p.cp > 1 && plan.seq_len % (2 * std::int64_t{p.cp}) != 0) {
    refuse(fmt::format("refuses a sequence of {} tokens over {} context-parallel ranks: it must be "
                       "a multiple of {}",
                       plan.seq_len, p.cp, 2 * std::int64_t{p.cp}),
           "plan with another --seq-len or --cp");
  }
  if (p.cp > 1 && plan.shape->attention_sinks) {
    refuse("has no context parallelism for models with sinks, in the ring that plans have",
           "plan with --for megatron");
  }
  if (p.sequence_parallel && p.tp > 1 && plan.seq_len % p.tp != 0) {
    refuse(fmt::format("refuses a sequence of {} tokens over {} sequence-parallel ranks",
                       plan.seq_len, p.tp),
           "plan with another --seq-len or --tp");
  }
  if (has_transformer_engine(plan)) return;
  if (p.cp > 1) {
    refuse(
        "has context parallelism in Transformer Engine alone, which needs compute capability "
        "8.0",
        "plan with --cp 1");
  }
  if (p.sequence_parallel && p.tp > 1 && plan.shape->rms) {
    refuse(
        "has no sequence parallelism with PyTorch's RMS norm, which stands in for Transformer "
        "Engine's below compute capability 8.0",
        "plan with --sequence-parallel off");
  }
  if (plan.parallel.offload_activations) {
    refuse(
        "needs Transformer Engine for offloaded activations, and that needs compute capability 8.0",
        "plan for newer GPUs");
  }
}

void check_experts(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const ModelShape& shape = *plan.shape;
  if (shape.experts == 0) return;
  if (p.tp > 1 && !p.sequence_parallel) {
    refuse("trains experts over tensor-parallel ranks with sequence parallelism alone",
           "plan with --sequence-parallel on");
  }
  if ((shape.linear_bias || shape.expert_bias) && p.tp > 1 && !p.whole_experts) {
    refuse("refuses experts with biases that tensor parallelism divides",
           "plan with --tp 1, or more --ep for whole experts");
  }
}

void check_pipeline(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  if (p.pp > 1 && p.schedule == ScheduleKind::gpipe) {
    refuse("has no GPipe schedule", "plan with --schedule 1f1b");
  }
}

void check_memory(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  if (p.offload_weights) {
    refuse("cannot keep weights in host memory", "plan with --no-offload");
  }
  if (p.offload_optimizer && p.zero == Zero::none && std::int64_t{p.dp} * p.cp > 1) {
    refuse("offloads optimizer state of its distributed optimizer (ZeRO-1) alone",
           "plan with --zero 1");
  }
  if (p.zero >= Zero::gradients && p.pp > 1 && p.vp > 1) {
    refuse("has no interleaved schedule with Megatron-FSDP", "plan with --vp 1");
  }
  if (p.replicate > 1 && p.may_have_copies()) {
    refuse("is not told of copies of fully sharded state", "plan without them");
  }
}

}  // namespace

bool has_transformer_engine(const Plan& plan) { return has_engine(plan.system); }

bool can_put_data_outermost(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  // Without experts, their tensor-parallel ranks are said to be those of tp and cp.
  if (!plan.shape || plan.shape->experts == 0) return true;
  return std::int64_t{p.ep} * (p.whole_experts ? 1 : p.tp) == std::int64_t{p.tp} * p.cp;
}

JobRefusal megatron_refusal(const TrainedJob& job) {
  JobRefusal refusal = refusal_of_model(job);
  return refusal.reason.empty() ? refusal_of_precision(job) : refusal;
}

void check_megatron_runs(const Plan& plan) {
  throw_refusal("Megatron-LM", megatron_refusal(trained_job(plan)));
  check_heads(plan);
  check_sequence(plan);
  check_experts(plan);
  check_pipeline(plan);
  check_memory(plan);
}

std::vector<std::string> megatron_limits(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const ModelShape& shape = *plan.shape;
  std::vector<std::string> limits;
  if (plan.system.groups.front().chip.name.rfind("mi", 0) == 0) {
    limits.emplace_back("AMD GPUs need AMD's fork of Megatron-LM");
  }
  if (!has_transformer_engine(plan)) {
    limits.push_back(
        std::string("Transformer Engine needs compute capability 8.0: --transformer-impl local is "
                    "used, whose attention is not fused") +
        (plan.trainer.does.flash_attention ? " and takes more memory than the plan says" : ""));
  }
  if (!shape.latent_attention && p.tp > shape.kv_heads) {
    limits.push_back(
        fmt::format("{} key and value heads over {} tensor-parallel ranks need Megatron-LM core "
                    "0.16 or later",
                    shape.kv_heads, p.tp));
  }
  if (shape.window > 0 && p.cp > 1) {
    limits.emplace_back(
        "windowed attention over context-parallel ranks gathers keys and values: the ring that the "
        "plan is timed with has no windows in Transformer Engine");
  }
  return limits;
}

}  // namespace braid
