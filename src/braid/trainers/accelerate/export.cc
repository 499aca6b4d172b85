#include "braid/trainers/accelerate/export.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/trainers/exchange/processes.h"

namespace braid {
namespace {

/// Empty: it has none.
std::string_view precision_name(const Precision& precision) {
  switch (precision.matmul) {
    case Dtype::bf16:
      return "bf16";
    case Dtype::f16:
      return "fp16";
    case Dtype::f8:
      return "fp8";
    case Dtype::f32:
    case Dtype::tf32:
      return "'no'";
    default:
      return "";
  }
}

void refuse(const Parallelism& p) {
  // ParallelismConfig.__post_init__; of ZeRO-0 the catalogue says it.
  if (p.replicate > 1 && p.replicate == p.dp && (p.tp > 1 || p.cp > 1)) {
    throw Error("Accelerate refuses replicas whose state is not sharded beside other parallelism",
                "plan with fewer replicas");
  }
}

}  // namespace

JobRefusal accelerate_refusal(const TrainedJob& job) {
  if (!precision_name(job.precision).empty()) return {};
  return {"has no precision " + name_of(job.precision),
          "plan with --precision bf16, fp16, fp8 or fp32"};
}

Export export_accelerate(const Plan& plan, const std::string& file) {
  throw_refusal("Accelerate", accelerate_refusal(trained_job(plan)));
  const Parallelism& p = plan.parallel;
  refuse(p);
  const Processes processes = processes_of(plan);
  Export out;
  out.suggested_file = file.empty() ? "accelerate.yaml" : file;
  const bool sharded = p.zero != Zero::none;
  out.warnings.push_back(
      fmt::format("batches are the script's: DataLoader(batch_size={}) and "
                  "Accelerator(gradient_accumulation_steps={}) with {} tokens a sample",
                  p.micro_batch, p.num_micro_batches, plan.seq_len));
  if (p.tp > 1) {
    out.warnings.emplace_back(
        "the script loads the model with tp_plan=\"auto\" and the accelerator's device mesh");
  }
  const bool fsdp = sharded || p.tp > 1 || p.cp > 1;
  if (p.recompute == Recompute::full && !fsdp) {
    out.warnings.emplace_back(
        "without FSDP recomputation is the script's: model.gradient_checkpointing_enable()");
  }
  if (!processes.note.empty()) out.warnings.push_back(processes.note);
  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  // The variable that lets GEMMs of FP32 run in TF32.
  const bool tf32 = plan.precision.matmul == Dtype::tf32;
  text += fmt::format("# {}accelerate launch --config_file {} train.py\n",
                      tf32 ? "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 " : "", out.suggested_file);
  if (processes.nodes > 1) {
    text += "# on every machine, with --machine_rank, --main_process_ip and --main_process_port\n";
  }
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += "compute_environment: LOCAL_MACHINE\n";
  text += fmt::format("distributed_type: {}\n", fsdp              ? "FSDP"
                                                : p.devices() > 1 ? "MULTI_GPU"
                                                                  : "'NO'");
  text += fmt::format("mixed_precision: {}\nnum_machines: {}\nnum_processes: {}\n",
                      precision_name(plan.precision), processes.nodes, p.devices());
  if (!fsdp) return out;
  text += fmt::format(
      "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: {}\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_state_dict_type: "
      "SHARDED_STATE_DICT\n"
      "  fsdp_activation_checkpointing: {}\n  fsdp_offload_params: false\n",
      p.zero == Zero::parameters, p.recompute == Recompute::full);
  text += fmt::format(
      "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n"
      "  parallelism_config_dp_shard_size: {}\n  parallelism_config_tp_size: {}\n"
      "  parallelism_config_cp_size: {}\n",
      sharded ? p.replicate : p.dp, sharded ? p.dp / p.replicate : 1, p.tp, p.cp);
  return out;
}

}  // namespace braid
