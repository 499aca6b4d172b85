#include "braid/trainers/torchtitan/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid {
namespace {

[[noreturn]] void refuse(const std::string& reason, const std::string& remedy) {
  refuse_for_torchtitan(TorchtitanFormat::toml, reason, remedy);
}

void check_degrees(const Plan& plan, const TorchtitanModel& model) {
  const Parallelism& p = plan.parallel;
  const std::int64_t pieces = 2 * std::int64_t{p.tp} * p.cp;
  if (plan.seq_len % pieces != 0) {
    refuse(fmt::format("refuses a sequence of {} tokens: it must be a multiple of {}, twice the "
                       "tensor- and context-parallel ranks",
                       plan.seq_len, pieces),
           "plan with another --seq-len, --tp or --cp");
  }
  if (p.cp > 1 && !model.has_context_parallelism) {
    refuse(fmt::format("has no context parallelism for {}, whose attention is FlexAttention",
                       model.name),
           "plan with --cp 1");
  }
  if (p.pp > 1 && !model.has_pipelines) {
    refuse(fmt::format("has no pipelines for {}", model.name), "plan with --pp 1");
  }
}

/// The meshes of ParallelDims.
void check_state(const Plan& plan, const TorchtitanModel& model) {
  const Parallelism& p = plan.parallel;
  const TorchtitanReplicas replicas = torchtitan_replicas(p);
  const bool fsdp = torchtitan_has_fsdp(plan);
  if (replicas.replicate > 1 && !fsdp && (p.tp > 1 || p.pp > 1)) {
    refuse("replicates the state only where nothing else is parallel",
           "plan with --zero 2 or more (1 in pipelines)");
  }
  if ((p.offload_optimizer || p.offload_weights) && !fsdp) {
    refuse("keeps state in host memory only where it shards it",
           "plan with --zero 2 or more (1 in pipelines), or with --no-offload");
  }
  if (p.ep == 1) return;
  const std::int64_t ranks =
      std::int64_t{replicas.shard} * p.cp * (p.whole_experts ? p.tp : std::int64_t{1});
  if (ranks % p.ep != 0) {
    refuse(fmt::format("spreads experts over the {} ranks that share the state, which "
                       "expert-parallel groups of {} do not divide",
                       ranks, p.ep),
           "plan with --zero 2 or more (1 in pipelines) and an --ep that divides dp times cp");
  }
  // Only parallelize_qwen3() asks for FSDP's mesh just where there is one.
  if (!fsdp && model.name != "qwen3") {
    refuse("has expert parallelism only where it shards the state",
           "plan with data-parallel ranks and --zero 2 or more (1 in pipelines)");
  }
}

}  // namespace

bool torchtitan_has_fsdp(const Plan& plan) {
  return torchtitan_replicas(plan.parallel).shard > 1 || plan.parallel.cp > 1;
}

bool torchtitan_trains_in_bf16(const Plan& plan) {
  const Dtype matmul = plan.precision.matmul;
  const bool narrow = matmul == Dtype::bf16 || matmul == Dtype::f8;
  return narrow && !torchtitan_has_fsdp(plan) && (plan.parallel.tp > 1 || plan.parallel.pp > 1);
}

const TorchtitanModel& check_torchtitan_runs(const Plan& plan) {
  const TorchtitanModel& model = check_torchtitan_model(plan, TorchtitanFormat::toml);
  check_degrees(plan, model);
  check_state(plan, model);
  return model;
}

std::vector<std::string> torchtitan_limits(const Plan& plan, const TorchtitanModel& model) {
  std::vector<std::string> warnings = common_torchtitan_limits(plan, model);
  const bool experts = plan.shape->experts > 0;
  const Dtype matmul = plan.precision.matmul;
  if (torchtitan_trains_in_bf16(plan)) {
    warnings.emplace_back(
        "where the state is not sharded, GEMMs are in bfloat16 only with all state in it "
        "(training.dtype), gradients and optimizer state too: that takes less memory and trains "
        "less exactly; plan with data-parallel ranks and --zero 2 or more (1 in pipelines) to keep "
        "them in float32");
  } else if (plan.precision.gradient != Dtype::f32) {
    warnings.emplace_back("gradients are reduced in float32, whatever the plan says");
  }
  if (experts && (matmul == Dtype::f32 || matmul == Dtype::tf32)) {
    warnings.emplace_back("GEMMs of routed experts are in bfloat16, whatever the plan says");
  }
  const std::vector<PeakRate>& peaks = plan.system.groups.front().chip.peaks;
  if (experts && std::none_of(peaks.begin(), peaks.end(),
                              [](const PeakRate& peak) { return peak.dtype == Dtype::f8; })) {
    warnings.emplace_back(
        "below compute capability 9.0 each expert's GEMM is a kernel of its own, which takes "
        "longer");
  }
  if (plan.parallel.tp > 1 && !plan.parallel.sequence_parallel) {
    warnings.emplace_back("tensor parallelism always comes with sequence parallelism");
  }
  return warnings;
}

}  // namespace braid
