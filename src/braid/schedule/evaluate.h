#pragma once

#include <cstdint>
#include <vector>

#include "braid/schedule/pipeline.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid {

//   const WorkOrder order = schedule_of(pipeline);             // 1F1B on four equal stages,
//   evaluate(pipeline, order, Record::times).iteration_time_s; // eight micro-batches: 11 (f + b)
//   simulate(plan).events;                                     // the same of a plan, timeline.h

enum class Record : std::uint8_t { times, events };

struct Evaluation {
  double iteration_time_s = 0;
  std::vector<StageTiming> stages;  ///< [stage]
  std::vector<Event> events;        ///< When asked for: by start, then stage, then end.
};

/// Order of passes that the pipeline's kind of schedule prescribes for the form of its stages: 1F1B
/// and GPipe with one chunk per stage follow the stage graph, anything else is taken as a chain.
/// Stages with passes of their own run these; such a pipeline has warm-ups too.
WorkOrder schedule_of(const Pipeline& pipeline);

/// Times of all passes of `pipeline` when each device keeps to `order`, which has every pass once:
/// the least solution of the constraints in docs/timeline.md, by run_order (order_run.h). Transfers
/// may join the chunks in any way. Throws Error naming a stage and pass when the order contradicts
/// the dependencies, so that nothing could ever move on. Cost: linear in passes and transfers; for
/// events, their sorting.
Evaluation evaluate(const Pipeline& pipeline, const WorkOrder& order, Record record);

}  // namespace braid
