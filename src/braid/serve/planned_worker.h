#pragma once

#include <memory>

#include "braid/serve/serving_plan.h"
#include "braid/serve/step_model.h"

namespace braid {

/// A worker of a plan with what it refers to; must stay where it is, and the plan and job too.
struct PlannedWorker {
  PlannedWorker(const WorkerPlan& of, const ServingJob& job);
  PlannedWorker(const PlannedWorker&) = delete;
  PlannedWorker& operator=(const PlannedWorker&) = delete;

  std::unique_ptr<DraftModel> draft;  ///< nullptr: none.
  Worker worker;
};

}  // namespace braid
