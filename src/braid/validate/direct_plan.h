#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

namespace braid {

/// A plan for `graph` just as `parallel` says, nothing searched, with its layers dealt out as
/// trainers do (layers_of_chunks in plan/dealt_layers.h). `counts`, if not empty: layers of each
/// chunk instead. On a mixed system each layer of a stage takes as long as on the slowest of the
/// stage's devices. `parallel` fits `system`, which lists the precision's peak. Throws Error when
/// the model cannot be run so, or the system is too small. Cost: linear in layers, for each type of
/// device.
Plan direct_plan(const Graph& graph, const Parallelism& parallel, const Precision& precision,
                 std::int64_t global_batch, const System& system,
                 std::vector<std::int32_t> counts = {});

}  // namespace braid
