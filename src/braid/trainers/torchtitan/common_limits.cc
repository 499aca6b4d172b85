#include "braid/trainers/torchtitan/common_limits.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

const char* called(TorchtitanFormat form) {
  return form == TorchtitanFormat::toml ? "torchtitan 0.2.2" : "torchtitan";
}

/// The flavor of that shape, if that version has it; else null.
const TorchtitanModel* model_of(const ModelShape* shape, TorchtitanFormat form) {
  const TorchtitanModel* model = shape != nullptr ? torchtitan_model_of(*shape) : nullptr;
  const bool has = model != nullptr && (model->older || form == TorchtitanFormat::recipe);
  return has ? model : nullptr;
}

JobRefusal refusal_of_model(const TrainedJob& job, TorchtitanFormat form) {
  const std::string name = on_one_line(*job.model);
  if (job.seq_len == 0 || (job.shape != nullptr && !job.shape->causal)) {
    return {"trains decoders of text, and " + name +
                (job.seq_len == 0 ? " has no sequence" : "'s attention is not causal"),
            "export a decoder"};
  }
  if (model_of(job.shape, form) != nullptr) return {};
  const bool predicts = job.shape != nullptr && job.shape->mtp_modules > 0;
  return {fmt::format("has no model of {}'s sizes{}", name,
                      predicts ? ", with multi-token prediction" : ""),
          predicts
              ? "plan without mtp_num_layers"
              : "plan one that it has: " + torchtitan_model_names(form == TorchtitanFormat::toml)};
}

void check_heads(const Plan& plan, TorchtitanFormat form) {
  const ModelShape& shape = *plan.shape;
  const int tp = plan.parallel.tp;
  const std::int64_t groups = shape.latent_attention ? shape.heads : shape.kv_heads;
  if (groups % tp == 0) return;
  refuse_for_torchtitan(form,
                        fmt::format("divides whole heads, and {} of keys and values do not go over "
                                    "{} tensor-parallel ranks",
                                    groups, tp),
                        "plan with a --tp that divides them");
}

void check_experts(const Plan& plan, TorchtitanFormat form) {
  const Parallelism& p = plan.parallel;
  if (plan.shape->experts == 0 || p.tp == 1 || p.ep > 1 || !p.whole_experts) return;
  refuse_for_torchtitan(form, "divides experts that are not spread, and the plan's are whole",
                        "plan with --tp 1 or more --ep");
}

void check_micro_batches(const Plan& plan, TorchtitanFormat form) {
  // Schedule1F1B in torch/distributed/pipelining/schedules.py.
  const Parallelism& p = plan.parallel;
  if (p.pp == 1 || p.schedule != ScheduleKind::one_f_one_b || p.num_micro_batches >= p.pp) return;
  refuse_for_torchtitan(form,
                        fmt::format("runs 1F1B with as many micro-batches as stages or more, and "
                                    "the plan has {} for {} stages",
                                    p.num_micro_batches, p.pp),
                        "plan with --schedule gpipe, fewer stages or a smaller --micro-batch");
}

void check_offload(const Plan& plan, TorchtitanFormat form) {
  if (plan.parallel.offload_activations) {
    refuse_for_torchtitan(form, "keeps activations on the device", "plan with --no-offload");
  }
}

/// A stage without modules has nothing to optimise.
void check_stages(const Plan& plan, TorchtitanFormat form) {
  const std::int64_t first = plan.shape->first_block;
  const std::int64_t last = first + plan.shape->blocks;
  const auto has_modules = [&](std::int32_t layer) {
    return layer == 0 || (layer >= first && layer <= last);
  };
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      if (std::any_of(chunk.layers.begin(), chunk.layers.end(), has_modules)) continue;
      refuse_for_torchtitan(form,
                            "wants a module of the model on every stage, and the plan has one "
                            "without",
                            "plan with a smaller --pp or --vp");
    }
  }
}

bool has_usual_order(const Parallelism& p) {
  const auto is_one = [&p](Axis axis) {
    return (axis == Axis::tp   ? p.tp
            : axis == Axis::cp ? p.cp
            : axis == Axis::dp ? p.dp
                               : p.pp) == 1;
  };
  std::vector<Axis> order = p.order;
  std::vector<Axis> usual = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};
  std::erase_if(order, is_one);
  std::erase_if(usual, is_one);
  return order == usual;
}

/// When gradients are summed (train_step() in torchtitan/train.py, backward_maybe_with_nosync() in
/// torch/distributed/pipelining/stage.py).
void add_limits_of_sharding(const Parallelism& p, std::vector<std::string>& warnings) {
  if (p.zero == Zero::optimizer || p.zero == Zero::gradients) {
    warnings.push_back(fmt::format(
        "ZeRO-{} is expressed as FSDP that keeps gathered parameters{}", static_cast<int>(p.zero),
        p.pp == 1 && p.zero == Zero::optimizer
            ? ": it shards the gradients too, and sums them with each micro-batch"
            : ""));
  }
  if (p.pp > 1 && p.zero >= Zero::gradients) {
    warnings.emplace_back(
        "with pipelines gradients and gathered weights stay whole until the last backward pass, "
        "which takes more memory than the plan says");
  }
  if (p.pp == 1 && p.zero == Zero::none && p.num_micro_batches > 1) {
    warnings.emplace_back(
        "gradients are summed with each micro-batch, which takes longer than the plan says");
  }
}

}  // namespace

void refuse_for_torchtitan(TorchtitanFormat form, const std::string& reason,
                           const std::string& remedy) {
  throw Error(std::string(called(form)) + " " + reason, remedy);
}

JobRefusal torchtitan_refusal(const TrainedJob& job, TorchtitanFormat form) {
  if (JobRefusal refusal = refusal_of_model(job, form); !refusal.reason.empty()) return refusal;
  constexpr std::array kKnown = {Dtype::bf16, Dtype::f8, Dtype::f32, Dtype::tf32};
  if (std::find(kKnown.begin(), kKnown.end(), job.precision.matmul) == kKnown.end()) {
    return {"has no precision " + name_of(job.precision),
            "plan with --precision bf16, fp8, tf32 or fp32"};
  }
  const TorchtitanModel& model = *model_of(job.shape, form);
  if (form == TorchtitanFormat::toml || job.seq_len <= model.longest) return {};
  return {fmt::format("takes sequences of up to {} tokens for {}/{}", model.longest, model.name,
                      model.flavor),
          "plan with a smaller --seq-len"};
}

const TorchtitanModel& check_torchtitan_model(const Plan& plan, TorchtitanFormat form) {
  throw_refusal(called(form), torchtitan_refusal(trained_job(plan), form));
  const TorchtitanModel& model = *model_of(&*plan.shape, form);
  check_offload(plan, form);
  check_heads(plan, form);
  check_experts(plan, form);
  check_micro_batches(plan, form);
  check_stages(plan, form);
  return model;
}

TorchtitanReplicas torchtitan_replicas(const Parallelism& p) {
  if (p.zero == Zero::none) return {p.dp, 1};
  const int replicate = p.may_have_copies() ? p.replicate : 1;
  return {replicate, p.dp / replicate};
}

std::vector<std::string> common_torchtitan_limits(const Plan& plan, const TorchtitanModel& model) {
  const Parallelism& p = plan.parallel;
  std::vector<std::string> warnings;
  std::string differences;
  for (const std::string& each : torchtitan_differences(model, *plan.shape)) {
    differences += (differences.empty() ? "" : ", ") + each;
  }
  if (!differences.empty()) {
    warnings.push_back(fmt::format(
        "{}/{} has {}, which this model has otherwise: that costs neither time nor memory",
        model.name, model.flavor, differences));
  }
  if (p.dp * p.cp > 1) add_limits_of_sharding(p, warnings);
  if (p.zero == Zero::none && p.cp > 1) {
    warnings.emplace_back(
        "context parallel ranks always share the state among them, which takes less memory");
  }
  if (p.offload_optimizer || p.offload_weights) {
    warnings.emplace_back(
        "parameters, gradients and optimizer state are offloaded together: only that can be "
        "expressed");
  }
  if (p.recompute == Recompute::selective) {
    warnings.emplace_back(
        "selective recomputation repeats every second GEMM as well, which takes less memory and "
        "longer than the plan says");
  }
  const Dtype matmul = plan.precision.matmul;
  if (plan.shape->experts > 0 && matmul == Dtype::f8) {
    warnings.emplace_back("GEMMs of routed experts stay in bfloat16: only linear layers are FP8");
  }
  if (!has_usual_order(p)) {
    warnings.emplace_back(
        "the order of ranks cannot be expressed: pp, dp, cp, tp from the outermost is used");
  }
  return warnings;
}

}  // namespace braid
