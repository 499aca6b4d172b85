#include "braid/trainers/deepspeed/export.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/trainers/exchange/processes.h"

namespace braid {

namespace {

/// A single rank shards nothing: it may have the stage of ZeRO that its offload needs.
Zero stage_of(const Parallelism& p) {
  if (p.dp * std::int64_t{p.cp} > 1) return p.zero;
  if (p.offload_weights && p.pp == 1) return Zero::parameters;
  return p.offload_optimizer ? std::max(p.zero, Zero::optimizer) : p.zero;
}

/// Refuses what DeepSpeed ends with an error for, or leaves out of what the plan's memory depends
/// on. Facts of 0.19: PipelineEngine.__init__, DeepSpeedEngine._do_optimizer_sanity_check,
/// validate_folding_global in module_inject/auto_ep_folding.py.
void refuse_what_cannot_run(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  if (p.pp > 1 && p.zero >= Zero::gradients) {
    throw Error("DeepSpeed's pipelines exclude ZeRO-2 and ZeRO-3", "plan with --for deepspeed");
  }
  if (p.pp > 1 && p.cp > 1) {
    throw Error("DeepSpeed's pipelines have no sequence parallel groups, and the plan has --cp " +
                    std::to_string(p.cp),
                "plan with --for deepspeed");
  }
  if (p.offload_optimizer && stage_of(p) == Zero::none) {
    throw Error("DeepSpeed keeps the optimizer's state in host memory only under ZeRO",
                "plan with --zero 1, or with --for deepspeed");
  }
  if (p.offload_weights && stage_of(p) != Zero::parameters) {
    throw Error("DeepSpeed keeps weights in host memory only under ZeRO-3",
                "plan with --zero 3, or with --for deepspeed");
  }
  const bool splits_layers = p.tp > 1 || p.cp > 1;
  if (p.ep > 1 && p.zero == Zero::parameters && splits_layers) {
    throw Error(
        "DeepSpeed's expert parallelism under ZeRO-3 excludes tensor and sequence "
        "parallelism",
        "plan with --tp 1 --cp 1, or with --zero 2");
  }
  if (p.ep > 1 && p.tp > 1 && p.cp > 1) {
    throw Error("DeepSpeed's expert parallelism excludes tensor beside sequence parallelism",
                "plan with --tp 1 or --cp 1");
  }
  if (p.ep > 1 && p.tp > 1 && (p.offload_optimizer || p.offload_weights)) {
    throw Error("DeepSpeed's expert parallelism beside tensor parallelism excludes offload",
                "plan with --no-offload");
  }
}

void write_precision(const Plan& plan, Json& json, std::vector<std::string>& warnings) {
  if (plan.precision.matmul == Dtype::f16) json["fp16"]["enabled"] = true;
  if (plan.precision.matmul == Dtype::bf16) json["bf16"]["enabled"] = true;
  // Without ZeRO, gradients have the format of the weights: the engine refuses anything else.
  const bool narrow = json.contains("bf16") || json.contains("fp16");
  if (!narrow || plan.precision.gradient != Dtype::f32) return;
  if (stage_of(plan.parallel) == Zero::none) {
    warnings.emplace_back(
        "DeepSpeed keeps gradients in the weights' format where there is no ZeRO: plan with "
        "--zero 1 or more");
  } else {
    json["data_types"]["grad_accum_dtype"] = "fp32";
  }
}

void write_zero(const Plan& plan, Json& json, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  Json& zero = json["zero_optimization"];
  const Zero stage = stage_of(p);
  zero["stage"] = static_cast<int>(stage);
  if (stage != Zero::none) {
    zero["overlap_comm"] = stage != Zero::optimizer || plan.trainer.does.overlapped_gradients;
    zero["contiguous_gradients"] = true;
  }
  if (p.offload_optimizer) {
    zero["offload_optimizer"]["device"] = "cpu";
    zero["offload_optimizer"]["pin_memory"] = true;
    // Named here, DeepSpeed makes it the one that runs on CPUs.
    json["optimizer"]["type"] = "AdamW";
    json["optimizer"]["params"]["lr"] = 1e-4;
    warnings.emplace_back("the learning rate, 1e-4, stands for yours");
  }
  if (p.offload_weights) {
    zero["offload_param"]["device"] = "cpu";
    zero["offload_param"]["pin_memory"] = true;
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

void write_pipeline(const Plan& plan, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.pp == 1) return;
  warnings.push_back("pipeline stages are set in the model's code: PipelineModule(num_stages=" +
                     std::to_string(p.pp) + ")");
  if (p.schedule != ScheduleKind::one_f_one_b) {
    warnings.emplace_back("the schedule cannot be expressed: DeepSpeed runs 1F1B");
  }
  if (!count_blocks(plan).even) {
    warnings.emplace_back("uneven stages need PipelineModule(partition_method=...) of one's own");
  }
}

void write_degrees(const Plan& plan, Json& json, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.tp > 1) {
    json["tensor_parallel"]["autotp_size"] = p.tp;
    if (p.sequence_parallel) {
      warnings.emplace_back("sequence parallelism beside tensor parallelism cannot be expressed");
    }
  }
  if (p.cp > 1) {
    json["sequence_parallel_size"] = p.cp;
    warnings.emplace_back(
        "context parallelism becomes Ulysses, which exchanges heads in place of keys and values: "
        "wrap the attention in DistributedAttention");
  }
  if (p.ep > 1 && p.pp == 1) {
    json["expert_parallel"]["enabled"] = true;
    json["expert_parallel"]["autoep_size"] = p.ep;
  } else if (p.ep > 1) {
    warnings.push_back(
        "expert parallelism is set in the model's code: MoE(ep_size=" + std::to_string(p.ep) + ")");
  }
  write_pipeline(plan, warnings);
}

/// The variable that lets GEMMs of FP32 run in TF32, where the plan's do.
constexpr std::string_view kTf32 = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1";

/// Computers of a plan have one size, but the last may have fewer processes.
std::string launch_of(const Plan& plan, const std::string& file) {
  const std::int64_t devices = plan.parallel.devices();
  const std::int64_t per_host = devices_of_computer(plan.system.groups.front());
  const bool tf32 = plan.precision.matmul == Dtype::tf32;
  const std::string run = "train.py --deepspeed --deepspeed_config " + file;
  if (devices <= per_host) {
    return fmt::format("{}{}deepspeed --num_gpus={} {}", tf32 ? kTf32 : "", tf32 ? " " : "",
                       devices, run);
  }
  const std::int64_t full = devices / per_host, left = devices % per_host;
  // The launcher hands on to other computers what stands in .deepspeed_env.
  return fmt::format("deepspeed --hostfile=hostfile {}  # hostfile: {} \"HOST slots={}\"{}{}", run,
                     full == 1 ? "a line" : fmt::format("{} lines", full), per_host,
                     left > 0 ? fmt::format(", then \"HOST slots={}\"", left) : "",
                     tf32 ? fmt::format("; .deepspeed_env: {}", kTf32) : "");
}

}  // namespace

JobRefusal deepspeed_refusal(const TrainedJob& job) {
  constexpr std::array kKnown = {Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::tf32};
  if (std::find(kKnown.begin(), kKnown.end(), job.precision.matmul) != kKnown.end()) return {};
  return {"has no precision " + name_of(job.precision),
          "plan with --precision bf16, fp16, tf32 or fp32"};
}

Export export_deepspeed(const Plan& plan, const std::string& file) {
  throw_refusal("DeepSpeed", deepspeed_refusal(trained_job(plan)));
  refuse_what_cannot_run(plan);
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = file.empty() ? "ds_config.json" : file;
  Json json = Json::object();
  // DeepSpeed's train_batch_size counts tensor-parallel ranks as replicas; it follows from these.
  json["train_micro_batch_size_per_gpu"] = p.micro_batch;
  json["gradient_accumulation_steps"] = p.num_micro_batches;
  write_precision(plan, json, out.warnings);
  write_zero(plan, json, out.warnings);
  write_recomputation(p, json, out.warnings);
  write_degrees(plan, json, out.warnings);
  out.text = to_text(json);
  out.launch = launch_of(plan, out.suggested_file);
  return out;
}

}  // namespace braid
