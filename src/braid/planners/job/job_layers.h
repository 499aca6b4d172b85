#pragma once

#include <memory>

#include "braid/planners/job/job.h"
#include "braid/profile/layer_options.h"

namespace braid {

/// What the layers of a job can do and cost: job.layers, or the estimator over job.graph.
std::shared_ptr<const LayerOptions> layer_options(const Job& job);

/// A plan for the job on `system` that says only what is to be trained and on what: its layers with
/// no options, without planner, parallel form and stages.
Plan blank_plan(const Job& job, const LayerOptions& layers, const System& system);

/// What no plan for the job on `system` can beat: that of its graph; without one, all passes of the
/// layers' options that take least device time, on all devices.
LowerBound lower_bound(const Job& job, const System& system);

}  // namespace braid
