#include "braid/serve/stated_times.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "braid/serve/planned_worker.h"
#include "braid/serve/worker_rates.h"

namespace braid {
namespace {

WorkerRoom room_of(const Worker& worker, const BatchLimits& limits, const ServingJob& job) {
  const Engine& engine = *worker.engine;
  const double kept = kept_tokens(engine, job.input_tokens, job.output_tokens);
  WorkerRoom room;
  room.memory = worker_memory(worker, limits.chunk_tokens);
  room.request_bytes = room.memory.of_sequence(kept, engine.block_tokens);
  room.held = held_sequences(worker, room.memory, kept);
  if (room.held < 1) room.missing_bytes = room.request_bytes - room.memory.room_bytes;
  return room;
}

/// A worker of the service, the room that it has, and what its steps take.
class WorkerFigures {
 public:
  WorkerFigures(const WorkerPlan& of, const ServingJob& job, bool disaggregated)
      : of_(of), stated_(of, job), room_(room_of(stated_.worker, of.limits, job)) {
    const StepModel& step = *(step_ = std::make_unique<StepModel>(stated_.worker));
    if (room_.held < 1) return;
    most_ = std::min(of.limits.sequences, room_.held);
    steps_ = std::make_unique<WorkerSteps>(
        &step, RequestShape{job.input_tokens, job.output_tokens, job.cached_share},
        BatchLimits{of.limits.chunk_tokens, room_.held});
    factors_ = factors_of(of.engine->corrections, corrected_runs_of(stated_.worker, disaggregated));
  }

  const WorkerRoom& room() const { return room_; }
  const WorkerSteps& steps() const { return *steps_; }
  const TimeFactors& factors() const { return factors_; }
  double most() const { return most_; }
  double workers() const { return static_cast<double>(of_.workers); }
  std::vector<double> batches() const {
    std::vector<double> all = batch_sizes(most_);
    if (all.empty() || all.back() < most_) all.push_back(most_);
    return all;
  }
  double decode_s(double batch) const {
    return factors_.tpot * steps_->decode_s(batch, steps_->step().figures());
  }

 private:
  const WorkerPlan& of_;
  PlannedWorker stated_;
  WorkerRoom room_;
  std::unique_ptr<StepModel> step_;
  std::unique_ptr<WorkerSteps> steps_;
  TimeFactors factors_;
  double most_ = 0;
};

void time_aggregated(const WorkerFigures& all, const ServingJob& job, StatedTimes& times) {
  times.full_batch = all.most();
  times.alone = batch_times(all.steps(), 1, all.factors());
  times.full = batch_times(all.steps(), all.most(), all.factors());
  for (const double batch : all.batches()) {
    const ServingTimes found = batch_times(all.steps(), batch, all.factors());
    const double rate = found.requests_per_s * all.workers();
    if (found.ttft_s > job.ttft_s || found.tpot_s > job.tpot_s) continue;
    if (rate <= times.plan.requests_per_s) continue;
    times.sequences = batch;
    times.plan.requests_per_s = rate;
    times.plan.decode.requests_per_s = found.requests_per_s;
    times.plan.ttft_s = found.ttft_s;
    times.plan.tpot_s = found.tpot_s;
  }
}

void time_disaggregated(const WorkerFigures& prefill, const WorkerFigures& decode,
                        const ServingJob& job, StatedTimes& times) {
  times.full_batch = decode.most();
  times.alone.ttft_s = prompt_alone_s(prefill.steps(), prefill.factors());
  times.alone.tpot_s = decode.decode_s(1);
  times.full.tpot_s = decode.decode_s(decode.most());
  const double prompts =
      prompts_rate(prefill.steps(), job.ttft_s, prefill.factors()) * prefill.workers();
  double rate = 0;
  for (const double batch : decode.batches()) {
    const double decode_s = decode.decode_s(batch);
    const double found = decode.workers() * batch / (job.output_tokens * decode_s);
    if (decode_s > job.tpot_s || found <= rate) continue;
    rate = found;
    times.sequences = batch;
    times.plan.tpot_s = decode_s;
  }
  times.plan.requests_per_s = std::min(rate, prompts);
  times.plan.decode.requests_per_s = rate / decode.workers();
  times.plan.prefill.requests_per_s = prompts / prefill.workers();
  // Prefill workers that wait for decode ones have a shorter queue than the target leaves room for.
  times.plan.ttft_s = prompts_ttft_s(prefill.steps(), times.plan.requests_per_s / prefill.workers(),
                                     prefill.factors());
}

}  // namespace

WorkerRoom worker_room(const WorkerPlan& of, const ServingJob& job) {
  const PlannedWorker stated(of, job);
  return room_of(stated.worker, of.limits, job);
}

StatedTimes stated_times(const ServingPlan& stated, const ServingJob& job) {
  StatedTimes times;
  times.plan = stated;
  times.plan.requests_per_s = times.plan.ttft_s = times.plan.tpot_s = 0;
  const bool two = stated.disaggregated;
  times.plan.devices = stated.decode.workers * stated.decode.layout.devices() +
                       (two ? stated.prefill.workers * stated.prefill.layout.devices() : 0);
  const WorkerFigures decode(stated.decode, job, two);
  times.decode = decode.room();
  if (!two) {
    if (times.fits()) time_aggregated(decode, job, times);
    return times;
  }
  const WorkerFigures prefill(stated.prefill, job, two);
  times.prefill = prefill.room();
  if (times.fits()) time_disaggregated(prefill, decode, job, times);
  return times;
}

}  // namespace braid
