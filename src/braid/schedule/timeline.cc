#include "braid/schedule/timeline.h"

#include <algorithm>

#include "braid/plan/totals.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/plan_pipeline.h"

namespace braid {
namespace {

/// Activations that a stage holds: what stays on the device of each stash in flight, and room for
/// two stashes on their way to or from the host where they are offloaded.
class StashMemory {
 public:
  StashMemory(const Plan& plan, std::size_t stage, const MemoryBreakdown& memory) {
    constant_bytes_ = memory.device_total() - memory.activations;
    for (const Chunk& chunk : plan.stages[stage].chunks) {
      const ChunkTotals totals = totals_of(plan.profile, chunk);
      kept_bytes_.push_back(totals.stash_bytes - totals.offloaded_bytes);
      offloaded_bytes_ = std::max(offloaded_bytes_, totals.offloaded_bytes);
    }
    samples_.push_back({0, bytes()});
  }

  void start_forward(double time_s, std::int32_t chunk) { change(time_s, chunk, 1); }
  void end_backward(double time_s, std::int32_t chunk) { change(time_s, chunk, -1); }
  std::vector<MemorySample> take_samples() { return std::move(samples_); }

 private:
  double bytes() const {
    return constant_bytes_ + stash_bytes_ +
           static_cast<double>(std::min<std::int64_t>(in_flight_, 2)) * offloaded_bytes_;
  }
  void change(double time_s, std::int32_t chunk, int count) {
    in_flight_ += count;
    stash_bytes_ += count * kept_bytes_[static_cast<std::size_t>(chunk)];
    // Rounding does not leave a residue behind.
    if (in_flight_ == 0) stash_bytes_ = 0;
    if (samples_.back().time_s == time_s) {
      samples_.back().bytes = bytes();
    } else {
      samples_.push_back({time_s, bytes()});
    }
  }

  double constant_bytes_ = 0;
  double offloaded_bytes_ = 0;
  double stash_bytes_ = 0;
  std::int64_t in_flight_ = 0;
  std::vector<double> kept_bytes_;  ///< [chunk]
  std::vector<MemorySample> samples_;
};

}  // namespace

Timeline simulate(const Plan& plan) {
  const PlanPipeline timed = pipeline_of(plan, kMostPassesWithEvents);
  Evaluation evaluation = evaluate(timed.pipeline, schedule_of(timed.pipeline), Record::events);
  Timeline timeline;
  timeline.iteration_time_s = timeline.end_s = checked_time_s(evaluation.iteration_time_s);
  std::vector<StashMemory> memories;
  memories.reserve(plan.stages.size());
  const std::vector<MemoryBreakdown> totals = memory_of_stages(plan);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) memories.emplace_back(plan, s, totals[s]);
  // Passes of one device follow each other, so each stage's changes come in the order of time.
  for (const Event& event : evaluation.events) {
    StashMemory& memory = memories[static_cast<std::size_t>(event.stage)];
    if (event.kind == EventKind::forward) memory.start_forward(event.start_s, event.chunk);
    if (event.kind == EventKind::backward) memory.end_backward(event.end_s, event.chunk);
  }
  for (StashMemory& memory : memories) timeline.memory.push_back(memory.take_samples());
  timeline.events = std::move(evaluation.events);
  return timeline;
}

double simulate_time_s(const Plan& plan) {
  const PlanPipeline timed = pipeline_to_time(plan);
  PipelineWorkspace workspace;
  return checked_time_s(pipeline_time_s(timed.pipeline, workspace));
}

}  // namespace braid
