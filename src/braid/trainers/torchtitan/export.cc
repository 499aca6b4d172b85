#include "braid/trainers/torchtitan/export.h"

#include <fmt/format.h>

#include "braid/trainers/torchtitan/launch.h"
#include "braid/trainers/torchtitan/limits.h"

namespace braid {
namespace {

/// One line of module names for each virtual stage, in pipeline order.
std::string modules_text(const Plan& plan) {
  std::string text = "module_fqns_per_model_part = [\n";
  for (const std::vector<std::string>& part : torchtitan_modules(plan, "output")) {
    std::string names;
    for (const std::string& name : part) {
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
    }
    text += "  [" + names + "],\n";
  }
  return text + "]\n";
}

/// Whether tensor parallelism is told to hide behind GEMMs, as a plan for torchtitan may have it.
bool has_async_tensor_parallel(const Plan& plan) {
  return plan.parallel.tp > 1 && plan.trainer.name == "torchtitan" &&
         plan.trainer.does.overlapped_tensor_parallel;
}

std::string model_text(const Plan& plan, const TorchtitanModel& model) {
  std::string text =
      fmt::format("\n[model]\nname = \"{}\"\nflavor = \"{}\"\n", model.name, model.flavor);
  const bool narrow = plan.precision.matmul == Dtype::f8;
  if (narrow) text += "converters = [\"quantize.linear.float8\"]\n";
  // The compiler alone fuses FP8's casts with what surrounds them, and hides communication.
  if (narrow || has_async_tensor_parallel(plan)) text += "\n[compile]\nenable = true\n";
  return text;
}

std::string training_text(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::string text =
      fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                  p.pp > 1 ? p.micro_batch * p.num_micro_batches : std::int64_t{p.micro_batch},
                  plan.global_batch, plan.seq_len);
  const bool full = plan.precision.matmul == Dtype::f32 || plan.precision.matmul == Dtype::tf32;
  if (torchtitan_trains_in_bf16(plan)) text += "dtype = \"bfloat16\"\n";
  text += fmt::format("mixed_precision_param = \"{}\"\nmixed_precision_reduce = \"float32\"\n",
                      full ? "float32" : "bfloat16");
  if (p.offload_optimizer || p.offload_weights) text += "enable_cpu_offload = true\n";
  return text +
         "# What a plan does not say; as it stands, ten steps on torchtitan's own test data.\n"
         "steps = 10\n";
}

std::string parallelism_text(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const TorchtitanReplicas replicas = torchtitan_replicas(p);
  std::string text = fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\ncontext_parallel_degree = {}\npipeline_parallel_degree = {}\n",
      replicas.replicate, replicas.shard, p.tp, p.cp, p.pp);
  if (torchtitan_has_fsdp(plan)) {
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        p.zero == Zero::parameters ? "always" : "never");
  }
  if (has_async_tensor_parallel(plan)) text += "enable_async_tensor_parallel = true\n";
  // The default gathers keys and values at once; this passes them on from rank to rank.
  if (p.cp > 1) text += "context_parallel_rotate_method = \"alltoall\"\n";
  if (p.ep > 1) {
    // Unless it is told, torchtitan spreads whole experts over the tensor-parallel ranks.
    text += fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = {}\n", p.ep,
                        p.whole_experts ? 1 : p.tp);
  }
  if (p.pp == 1) return text;
  text +=
      fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                  torchtitan_schedule(p.schedule), p.micro_batch);
  // Left to itself, torchtitan gives the first and the last stage a block less.
  return text + modules_text(plan);
}

std::string_view recomputation_text(Recompute recompute) {
  return recompute == Recompute::none   ? "\n[activation_checkpoint]\nmode = \"none\"\n"
         : recompute == Recompute::full ? "\n[activation_checkpoint]\nmode = \"full\"\n"
                                        : "\n[activation_checkpoint]\nmode = \"selective\"\n"
                                          "selective_ac_option = \"op\"\n";
}

}  // namespace

Export export_torchtitan(const Plan& plan, const std::string& file) {
  const TorchtitanModel& model = check_torchtitan_runs(plan);
  const Processes processes = processes_of(plan);
  Export out;
  out.suggested_file = file.empty() ? "torchtitan.toml" : file;
  out.warnings = torchtitan_limits(plan, model);
  if (!processes.note.empty()) out.warnings.push_back(processes.note);
  const std::string arguments = "--job.config_file " + out.suggested_file;
  out.launch = torchtitan_launch(plan, processes, arguments);

  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  text += "# For torchtitan 0.2.2, in its folder: later versions take Python recipes.\n";
  text += "# " + out.launch + "\n";
  text += torchtitan_dry_run(plan, arguments);
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += model_text(plan, model);
  text += training_text(plan);
  text += parallelism_text(plan);
  text += recomputation_text(plan.parallel.recompute);
  return out;
}

}  // namespace braid
