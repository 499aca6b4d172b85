#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

namespace braid {

/// A job with nothing left to choose but which layers are where.
struct StatedJob {
  Parallelism parallel;
  Precision precision;
  Trainer trainer;
  std::int64_t global_batch = 1;
};

/// A plan for `graph` just as `job` says, nothing searched, with its layers dealt out as trainers
/// do (layers_of_chunks in plan/dealt_layers.h). `counts`, if not empty: layers of each chunk
/// instead. On a mixed system each layer of a stage takes as long as on the slowest of the stage's
/// devices. The form fits `system`, which lists the precision's peak. Throws Error when the model
/// cannot be run so, or the system is too small. Cost: linear in layers, for each type of device.
///
/// `graph` is what the trainer runs (adapt_graph); layers cost what they do under it.
Plan direct_plan(const Graph& graph, const StatedJob& job, const System& system,
                 std::vector<std::int32_t> counts = {});

}  // namespace braid
