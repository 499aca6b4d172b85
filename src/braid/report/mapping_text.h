#pragma once

#include <string>

#include "braid/dataflow/dataflow_plan.h"

namespace braid {

/// A mapping for the terminal: a row for each partition with its times, what bounds it, its memory
/// and kernels; then the job's time, its parallelism and the machine's price and power.
std::string mapping_text(const DataflowPlan& plan);

/// "tensor 8 x pipeline 128" and so on, dimension by dimension with its shape.
std::string fabric_text(const Fabric& fabric);

}  // namespace braid
