#include "braid/schedule/timeline.h"

#include <algorithm>

#include "braid/plan/totals.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/held_stashes.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/schedule/plan_pipeline.h"

namespace braid {
namespace {

/// What a stage holds from moment to moment.
class StageMemory {
 public:
  StageMemory(const Plan& plan, std::size_t stage, const MemoryBreakdown& memory) {
    double offloaded_bytes = 0;
    for (const Chunk& chunk : plan.stages[stage].chunks) {
      const ChunkStash stash = totals_of(plan.profile, chunk).stash();
      kept_bytes_.push_back(stash.kept_bytes);
      offloaded_bytes = std::max(offloaded_bytes, stash.offloaded_bytes);
    }
    held_.add_stage(memory.device_total() - memory.activations, offloaded_bytes);
    samples_.push_back({0, held_.bytes()});
  }

  void start_forward(double time_s, std::int32_t chunk) {
    held_.take(kept_bytes_[static_cast<std::size_t>(chunk)]);
    sample(time_s);
  }
  void end_backward(double time_s, std::int32_t chunk) {
    held_.drop(kept_bytes_[static_cast<std::size_t>(chunk)]);
    sample(time_s);
  }
  std::vector<MemorySample> take_samples() { return std::move(samples_); }

 private:
  void sample(double time_s) {
    if (samples_.back().time_s != time_s) samples_.push_back({time_s, 0});
    samples_.back().bytes = held_.bytes();
  }

  HeldStashes held_;
  std::vector<double> kept_bytes_;  ///< [chunk]
  std::vector<MemorySample> samples_;
};

}  // namespace

Timeline simulate(const Plan& plan) {
  const PlanPipeline timed = pipeline_of(plan, kMostPassesWithEvents);
  Evaluation evaluation = evaluate(timed.pipeline, schedule_of(timed.pipeline), Record::events);
  Timeline timeline;
  timeline.iteration_time_s = timeline.end_s = checked_time_s(evaluation.iteration_time_s);
  std::vector<StageMemory> memories;
  memories.reserve(plan.stages.size());
  const std::vector<MemoryBreakdown> totals = memory_of_stages(plan);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) memories.emplace_back(plan, s, totals[s]);
  // Passes of one device follow each other, so each stage's changes come in the order of time.
  for (const Event& event : evaluation.events) {
    StageMemory& memory = memories[static_cast<std::size_t>(event.stage)];
    if (event.kind == EventKind::forward) memory.start_forward(event.start_s, event.chunk);
    if (event.kind == EventKind::backward) memory.end_backward(event.end_s, event.chunk);
  }
  for (StageMemory& memory : memories) timeline.memory.push_back(memory.take_samples());
  timeline.events = std::move(evaluation.events);
  return timeline;
}

double simulate_time_s(const Plan& plan) {
  const PlanPipeline timed = pipeline_to_time(plan);
  PipelineWorkspace workspace;
  return checked_time_s(pipeline_time_s(timed.pipeline, workspace));
}

}  // namespace braid
