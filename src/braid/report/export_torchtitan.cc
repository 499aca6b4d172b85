#include <fmt/format.h>

#include "braid/report/export.h"

namespace braid {

Export export_torchtitan(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = "torchtitan.toml";
  const bool sharded = p.zero == Zero::parameters || p.zero == Zero::gradients;
  if (p.zero == Zero::optimizer) {
    out.warnings.emplace_back(
        "ZeRO-1 cannot be expressed: parameters are replicated, which takes more memory");
  }
  if (p.zero == Zero::gradients) {
    out.warnings.emplace_back("ZeRO-2 is expressed as FSDP that keeps gathered parameters");
  }
  if (p.tp > 1 && !p.sequence_parallel) {
    out.warnings.emplace_back("tensor parallelism always comes with sequence parallelism");
  }
  if (p.offload_optimizer || p.offload_weights) {
    out.warnings.emplace_back(
        "only offloading of parameters, gradients and optimizer together can be expressed");
  }
  if (p.offload_activations)
    out.warnings.emplace_back("offloading activations cannot be expressed");
  if (p.recompute == Recompute::selective) {
    out.warnings.emplace_back(
        "selective recomputation chooses its operators differently (saves matrix products)");
  }
  if (p.order != std::vector<Axis>{Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    out.warnings.emplace_back(
        "the order of ranks cannot be expressed: pp, dp, cp, tp from the outermost is used");
  }
  if (p.pp > 1 && !count_blocks(plan).even) {
    out.warnings.emplace_back("uneven stages need module_fqns_per_model_part in the model's code");
  }

  if (plan.seq_len == 0) {
    out.warnings.emplace_back(
        "torchtitan trains language models, and this model has no sequence: only the degrees carry "
        "over");
  }

  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\n",
                      p.pp > 1 ? p.micro_batch * p.num_micro_batches : std::int64_t{p.micro_batch},
                      plan.global_batch);
  if (plan.seq_len > 0) text += fmt::format("seq_len = {}\n", plan.seq_len);
  if (sharded) {
    text += fmt::format("mixed_precision_param = \"{}\"\nmixed_precision_reduce = \"{}\"\n",
                        plan.precision.weight == Dtype::f32 ? "float32" : "bfloat16",
                        plan.precision.gradient == Dtype::f32 ? "float32" : "bfloat16");
  }
  if (p.offload_optimizer || p.offload_weights) text += "enable_cpu_offload = true\n";
  text += fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\ncontext_parallel_degree = {}\npipeline_parallel_degree = {}\n",
      sharded ? 1 : p.dp, sharded ? p.dp : 1, p.tp, p.cp, p.pp);
  if (sharded) {
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        p.zero == Zero::parameters ? "always" : "never");
  }
  if (p.ep > 1) text += fmt::format("expert_parallel_degree = {}\n", p.ep);
  if (p.pp > 1) {
    const char* schedule = p.schedule == ScheduleKind::gpipe         ? "GPipe"
                           : p.schedule == ScheduleKind::interleaved ? "Interleaved1F1B"
                                                                     : "1F1B";
    text +=
        fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                    schedule, p.micro_batch);
  }
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n",
                      p.recompute == Recompute::none   ? "none"
                      : p.recompute == Recompute::full ? "full"
                                                       : "selective");
  if (p.recompute == Recompute::selective) text += "selective_ac_option = \"op\"\n";
  if (plan.precision.matmul == Dtype::f8) {
    text += "\n[model]\nconverters = [\"float8\"]\n";
  }
  return out;
}

}  // namespace braid
