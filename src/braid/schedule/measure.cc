#include <algorithm>
#include <cstdint>

#include "braid/base/rounding.h"
#include "braid/plan/stage_context.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/plan_pipeline.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// Times of one stage over the iteration, but for what depends on other stages.
Metrics busy_times(const StageLoad& load, const StageSync& sync, const StageTiming& timing,
                   double micro_batches) {
  Metrics metrics;
  for (const ChunkLoad& chunk : load.chunks) {
    for (const PassTime* pass : {&chunk.forward, &chunk.backward_input, &chunk.backward_weight}) {
      metrics.compute_s += micro_batches * pass->compute_s;
      metrics.tp_comm_s += micro_batches * pass->tp_comm_s;
      metrics.cp_comm_s += micro_batches * pass->cp_comm_s;
      metrics.ep_comm_s += micro_batches * pass->ep_comm_s;
      metrics.offload_s += micro_batches * pass->offload_s;
    }
    metrics.recompute_s += micro_batches * chunk.recompute.total_s();
    metrics.dp_comm_s += micro_batches * (chunk.dp_forward_s + chunk.dp_backward_s);
  }
  // Between two times that are mostly equal: what rounding leaves is nothing.
  const double tail_s = timing.end_s - timing.passes_end_s - sync.optimizer_s;
  metrics.dp_comm_s +=
      timing.parameter_wait_s + (tail_s > kRoundingShare * timing.end_s ? tail_s : 0.0);
  metrics.optimizer_s = sync.optimizer_s;
  return metrics;
}

double busy_s(const Metrics& metrics) {
  return metrics.compute_s + metrics.tp_comm_s + metrics.cp_comm_s + metrics.ep_comm_s +
         metrics.offload_s + metrics.recompute_s + metrics.dp_comm_s + metrics.optimizer_s;
}

/// Times of the stage with most to do.
Metrics busiest_times(const PlanPipeline& timed, const std::vector<StageTiming>& timings) {
  Metrics busiest;
  for (std::size_t s = 0; s < timed.loads.size(); ++s) {
    const auto micro_batches = static_cast<double>(timed.pipeline.micro_batches_of(s));
    Metrics metrics = busy_times(timed.loads[s], timed.pipeline.sync[s], timings[s], micro_batches);
    metrics.busiest_stage = s;
    if (s == 0 || busy_s(metrics) > busy_s(busiest)) busiest = metrics;
  }
  return busiest;
}

/// Sum of the matmul peaks of the plan's devices; 0 when one of them lists none.
double peak_flops_per_s(const Plan& plan, double devices) {
  if (plan.system.groups.empty()) return 0;
  if (plan.system.groups.size() == 1) {
    return devices *
           matmul_peak(plan.system.groups.front().chip, plan.precision.matmul).value_or(0);
  }
  double sum = 0;
  for (const Stage& stage : plan.stages) {
    for (const std::int64_t device : stage.devices) {
      const auto peak = matmul_peak(chip_at(plan.system, device), plan.precision.matmul);
      if (!peak) return 0;
      sum += *peak;
    }
  }
  return sum;
}

}  // namespace

Metrics measure(const Plan& plan) {
  PlanPipeline timed = pipeline_to_time(plan);
  PipelineWorkspace workspace;
  const double time_s = checked_time_s(pipeline_time_s(timed.pipeline, workspace));
  Metrics metrics = busiest_times(timed, workspace.stages());
  metrics.iteration_time_s = time_s;
  leave_out_transfers(timed);
  // Neither is negative: without transfers the stage would still be busy for as long. What rounding
  // leaves is nothing.
  const auto rest = [time_s](double left_s) {
    return left_s > kRoundingShare * time_s ? left_s : 0.0;
  };
  metrics.pp_comm_s = rest(time_s - pipeline_time_s(timed.pipeline, workspace));
  metrics.bubble_s = rest(time_s - busy_s(metrics) - metrics.pp_comm_s);

  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  double devices = 0;
  double flops = 0;
  double least_room = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const double stage_devices = static_cast<double>(stage.dp) * stage.tp * stage.cp;
    const auto micro_batches = static_cast<double>(timed.pipeline.micro_batches_of(s));
    devices += stage_devices;
    for (const ChunkLoad& chunk : timed.loads[s].chunks) {
      flops += stage_devices * chunk.model_flops * micro_batches;
    }
    const double needed = memory[s].device_total();
    metrics.peak_memory_bytes = std::max(metrics.peak_memory_bytes, needed);
    const double room = usable_bytes_of_stage(plan, s) - needed;
    if (s == 0 || room < least_room) {
      least_room = room;
      metrics.tightest_stage = s;
      metrics.tightest_memory = memory[s];
    }
  }
  if (time_s > 0) {
    const auto tokens_per_sample = static_cast<double>(std::max<std::int64_t>(1, plan.seq_len));
    metrics.tokens_per_s = static_cast<double>(plan.global_batch) * tokens_per_sample / time_s;
    metrics.model_flops_per_s_per_device = flops / devices / time_s;
    const double peak = peak_flops_per_s(plan, devices);
    if (peak > 0) metrics.mfu = flops / time_s / peak;
  }
  return metrics;
}

}  // namespace braid
