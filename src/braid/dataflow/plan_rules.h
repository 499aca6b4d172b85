#pragma once

#include "braid/chip/kernel_mapper.h"
#include "braid/chip/mapping.h"
#include "braid/dataflow/dataflow_job.h"

namespace braid {

/// How a setup is to be mapped.
struct DataflowPlanRules {
  JobRules job;
  MappingRules mapping;
  bool kernel_by_kernel = false;  ///< One kernel per partition instead of the best mapping.
  MapperBudget budget;
};

}  // namespace braid
