#include "braid/trainers/deepspeed/export.h"

#include "braid/base/json.h"

namespace braid {

namespace {

void write_precision(const Plan& plan, Json& json, std::vector<std::string>& warnings) {
  if (plan.precision.matmul == Dtype::f16) {
    json["fp16"]["enabled"] = true;
  } else if (plan.precision.matmul != Dtype::f32 && plan.precision.matmul != Dtype::tf32) {
    json["bf16"]["enabled"] = true;
    if (plan.precision.matmul != Dtype::bf16) {
      warnings.push_back("precision " + name_of(plan.precision) +
                         " cannot be expressed: bf16 is used");
    }
  }
  // deepspeed/runtime/engine.py: without ZeRO, gradients of bf16 weights are kept in f32 and those
  // of f16 weights in f16, and anything else is refused.
  const bool replicated = plan.parallel.zero == Zero::none;
  const bool f32_gradients = plan.precision.gradient == Dtype::f32;
  const bool bf16 = json.contains("bf16");
  const bool fp16 = json.contains("fp16");
  if (replicated && bf16 && !f32_gradients) {
    warnings.emplace_back("DeepSpeed keeps gradients in float32 where there is no ZeRO");
  }
  if (replicated && fp16 && f32_gradients) {
    warnings.emplace_back(
        "DeepSpeed keeps gradients in float16 where there is no ZeRO: plan with --zero 1 or more");
  }
  if ((bf16 && (f32_gradients || replicated)) || (fp16 && f32_gradients && !replicated)) {
    json["data_types"]["grad_accum_dtype"] = "fp32";
  }
}

void write_zero(const Parallelism& p, Json& json, std::vector<std::string>& warnings) {
  Json& zero = json["zero_optimization"];
  zero["stage"] = static_cast<int>(p.zero);
  if (p.zero != Zero::none) {
    zero["overlap_comm"] = true;
    zero["contiguous_gradients"] = true;
  }
  if (p.offload_optimizer) {
    zero["offload_optimizer"]["device"] = "cpu";
    zero["offload_optimizer"]["pin_memory"] = true;
    if (p.zero == Zero::none) {
      warnings.emplace_back("offloading the optimizer state needs ZeRO-1 or more");
    }
  }
  if (p.offload_weights) {
    zero["offload_param"]["device"] = "cpu";
    zero["offload_param"]["pin_memory"] = true;
    if (p.zero != Zero::parameters) warnings.emplace_back("offloading weights needs ZeRO-3");
  }
}

void write_recomputation(const Parallelism& p, Json& json, std::vector<std::string>& warnings) {
  if (p.recompute != Recompute::none || p.offload_activations) {
    Json& checkpointing = json["activation_checkpointing"];
    checkpointing["partition_activations"] = p.tp > 1;
    checkpointing["cpu_checkpointing"] = p.offload_activations;
    warnings.emplace_back(
        "which layers recompute is set in the model's code, by deepspeed.checkpointing.checkpoint");
  }
  if (p.recompute == Recompute::selective) {
    warnings.emplace_back("selective recomputation cannot be expressed: wrap the attention only");
  }
}

void write_degrees(const Plan& plan, Json& json, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.tp > 1) {
    json["tensor_parallel"]["autotp_size"] = p.tp;
    if (p.zero == Zero::parameters) {
      warnings.emplace_back("DeepSpeed's tensor parallel training excludes ZeRO-3");
    }
    if (p.sequence_parallel) {
      warnings.emplace_back("sequence parallelism beside tensor parallelism cannot be expressed");
    }
  }
  if (p.pp > 1) {
    warnings.push_back("pipeline stages are set in the model's code: PipelineModule(num_stages=" +
                       std::to_string(p.pp) + ")");
    if (p.schedule != ScheduleKind::one_f_one_b) {
      warnings.emplace_back("the schedule cannot be expressed: DeepSpeed runs 1F1B");
    }
    if (p.zero >= Zero::gradients) {
      warnings.emplace_back("DeepSpeed's pipelines exclude ZeRO-2 and ZeRO-3");
    }
    if (!count_blocks(plan).even) {
      warnings.emplace_back("uneven stages need PipelineModule(partition_method=...) of one's own");
    }
  }
  if (p.cp > 1) warnings.emplace_back("context parallelism cannot be expressed");
  if (p.ep > 1) {
    warnings.push_back(
        "expert parallelism is set in the model's code: MoE(ep_size=" + std::to_string(p.ep) + ")");
  }
}

}  // namespace

Export export_deepspeed(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = "ds_config.json";
  if (const auto chip = chip_without_trainer(plan)) {
    out.warnings.push_back("DeepSpeed runs on GPUs, and the plan is for " + *chip +
                           ": only the degrees carry over");
  }
  Json json = Json::object();
  json["train_batch_size"] = plan.global_batch;
  json["train_micro_batch_size_per_gpu"] = p.micro_batch;
  json["gradient_accumulation_steps"] = p.num_micro_batches;
  write_precision(plan, json, out.warnings);
  write_zero(p, json, out.warnings);
  write_recomputation(p, json, out.warnings);
  write_degrees(plan, json, out.warnings);
  out.text = to_text(json);
  return out;
}

}  // namespace braid
