#include "braid/planners/job/job_layers.h"

#include <cassert>

#include "braid/base/rounding.h"
#include "braid/plan/blank_plan.h"
#include "braid/profile/estimated_layers.h"

namespace braid {

std::shared_ptr<const LayerOptions> layer_options(const Job& job) {
  // Whoever gave the layers keeps them.
  if (job.layers != nullptr) return {std::shared_ptr<const LayerOptions>(), job.layers};
  assert(job.graph != nullptr);
  return std::make_shared<EstimatedLayers>(*job.graph, job.sharding, job.nests);
}

Plan blank_plan(const Job& job, const LayerOptions& layers, const System& system) {
  Plan plan;
  if (job.graph != nullptr) {
    plan = blank_plan(*job.graph, job.precision, job.global_batch, system);
  } else {
    plan.model = layers.layers().model;
    plan.model_parameters = layers.parameters();
    plan.seq_len = layers.layers().seq_len;
    plan.global_batch = job.global_batch;
    plan.precision = job.precision;
    plan.system = system;
  }
  plan.model_source = job.model_source;
  plan.trainer = job.trainer;
  plan.profile = layers.layers();
  return plan;
}

LowerBound lower_bound(const Job& job, const System& system) {
  if (job.graph != nullptr) {
    return lower_bound(*job.graph, job.precision, job.global_batch, system, job.sharding);
  }
  LowerBound bound;
  bound.compute_s = layer_options(job)->least_work_s() * static_cast<double>(job.global_batch) /
                    static_cast<double>(system.device_count) * kBelowTolerance;
  bound.time_s = bound.compute_s;
  bound.binding = "the layers' quickest options";
  return bound;
}

}  // namespace braid
