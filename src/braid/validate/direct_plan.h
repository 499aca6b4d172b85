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

/// A plan for `graph` just as `job` says, nothing searched, with its layers dealt out as
/// trainers do: the same number of blocks to every chunk, the embedding to the first, the head to
/// the last; where blocks do not divide evenly, embedding and head count as blocks; where that does
/// not help either, the first chunks get one more. `counts`, if not empty: layers of each chunk
/// instead. On a mixed system each layer of a stage takes as long as on the slowest of the stage's
/// devices. The form fits `system`, which lists the precision's peak. Throws Error when the model
/// cannot be run so, or the system is too small. Cost: linear in layers, for each type of device.
///
/// `graph` is what the trainer runs (adapt_graph); layers cost what they do under it.
Plan direct_plan(const Graph& graph, const StatedJob& job, const System& system,
                 std::vector<std::int32_t> counts = {});

/// Layers of each chunk in model order, by the rule above; `layers` counts embedding and head. With
/// `heavy_end`, where the layer before the head predicts further tokens, the embedding does not
/// count and all chunks but the last get as many, so that this gets what is left: Megatron-Bridge's
/// layouts of DeepSeek-V3, such as 61 blocks in 16 chunks as 15 times 4 and one with the two ends.
std::vector<std::int32_t> layers_of_chunks(std::int32_t layers, std::int32_t chunks,
                                           bool heavy_end = false);

}  // namespace braid
