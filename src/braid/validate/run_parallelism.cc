#include "braid/validate/run_parallelism.h"

#include <algorithm>
#include <string_view>

#include "braid/base/text.h"
#include "braid/validate/run_trainer.h"
#include "braid/validate/run_words.h"

namespace braid {
namespace {

int chunks_of(const MeasuredRun& run, std::int64_t layers, bool interleaved) {
  if (run.vp > 0) return static_cast<int>(std::min<std::int64_t>(run.vp, layers));
  if (!interleaved || run.pp <= 1) return 1;
  if (usual_of(run).one_layer_chunks) {
    return static_cast<int>(std::max<std::int64_t>(1, (layers + 2) / run.pp));
  }
  // Interleaved, but not how often: as little as can be.
  for (std::int64_t vp = 2; vp * run.pp <= layers + 2; ++vp) {
    if (layers % (vp * run.pp) == 0 || (layers + 2) % (vp * run.pp) == 0) {
      return static_cast<int>(vp);
    }
  }
  return 1;
}

std::string read_degrees(const MeasuredRun& run, std::int64_t layers, Parallelism& parallel) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  for (const std::int64_t degree : {run.tp, run.pp, run.dp, run.cp, run.ep, run.vp, run.micro_batch,
                                    run.devices, run.global_batch}) {
    if (degree > kMost) return "a degree or batch is out of range";
  }
  const auto or_one = [](std::int64_t degree) {
    return static_cast<int>(std::max<std::int64_t>(1, degree));
  };
  parallel.tp = or_one(run.tp);
  parallel.pp = or_one(run.pp);
  parallel.cp = or_one(run.cp);
  parallel.ep = or_one(run.ep);
  const double model_devices = static_cast<double>(parallel.tp) * parallel.pp * parallel.cp;
  if (model_devices > static_cast<double>(kMost)) return "the degrees are out of range";
  const std::int64_t replica = std::int64_t{parallel.tp} * parallel.pp * parallel.cp;
  if (run.devices % replica != 0 || (run.dp > 0 && run.devices / replica != run.dp)) {
    return "tp x pp x cp x dp = " + std::to_string(replica) + " x " +
           (run.dp > 0 ? std::to_string(run.dp) : "dp") + " is not " + std::to_string(run.devices) +
           " devices";
  }
  parallel.dp = static_cast<int>(run.devices / replica);
  parallel.whole_experts = parallel.ep > 1 && parallel.tp > 1 && usual_of(run).whole_experts;
  if (parallel.expert_axis() % parallel.ep != 0) {
    return "ep " + std::to_string(parallel.ep) +
           " does not divide dp x cp = " + std::to_string(std::int64_t{parallel.dp} * parallel.cp) +
           (parallel.whole_experts
                ? " times tp = " + std::to_string(parallel.tp)
                : std::string(", and experts are not spread over tensor-parallel ranks"));
  }
  if (run.global_batch == 0) return "the global batch is not said";
  if (run.global_batch % parallel.dp != 0) return "dp does not divide the global batch";
  const std::int64_t rank_batch = run.global_batch / parallel.dp;
  std::int64_t micro_batch = run.micro_batch;
  if (micro_batch == 0) micro_batch = parallel.pp > 1 ? 1 : rank_batch;
  if (rank_batch % micro_batch != 0) return "dp x mbs does not divide the global batch";
  parallel.micro_batch = static_cast<int>(micro_batch);
  parallel.num_micro_batches = rank_batch / micro_batch;
  if (parallel.pp > layers) return "there are more stages than layers";
  return "";
}

}  // namespace

RunParallelism parallelism_of(const MeasuredRun& run, std::int64_t layers) {
  RunParallelism result;
  Parallelism& parallel = result.parallel;
  if (!run.lists.empty()) {
    result.reason = run.lists.front() + " differs from stage to stage";
    return result;
  }
  const TrainerUsual usual = usual_of(run);
  parallel.zero = usual.zero;
  parallel.recompute = usual.recompute;
  result.half_recompute = recomputes_every_second(run.recompute);
  if (result.half_recompute) parallel.recompute = Recompute::none;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  if (!read_sharding(run.sharding, parallel.zero, parallel.offload_optimizer)) {
    result.reason = "sharding " + in_quotes(run.sharding) + " is not known";
  } else if (!result.half_recompute && !read_recompute(run.recompute, parallel.recompute)) {
    result.reason = "recomputation " + in_quotes(run.recompute) + " is not known";
  } else if (!read_precision(run.precision, result.precision)) {
    result.reason = "precision " + in_quotes(run.precision) + " is not known";
  } else if (!read_schedule(run.schedule, schedule) && run.pp > 1) {
    result.reason = "schedule " + in_quotes(run.schedule) + " is not known";
  } else if (run.tp == 0 && run.pp == 0 && run.dp == 0 && run.devices > 1 &&
             usual.zero != Zero::parameters) {
    result.reason = "how the model was split is not said";
  } else {
    result.reason = read_degrees(run, layers, parallel);
  }
  if (!result.reason.empty()) return result;
  parallel.sequence_parallel =
      parallel.tp > 1 &&
      (usual.sequence_parallel || contains(lowered(run.recompute), "sequence parallel"));
  parallel.schedule = ScheduleKind::one_f_one_b;
  // Chunks of one stage run one behind the other.
  if (parallel.pp == 1) return result;
  if (schedule == ScheduleKind::gpipe) {
    parallel.schedule = schedule;
    return result;
  }
  parallel.vp = chunks_of(run, layers, schedule == ScheduleKind::interleaved);
  if (parallel.vp > 1) parallel.schedule = ScheduleKind::interleaved;
  return result;
}

}  // namespace braid
