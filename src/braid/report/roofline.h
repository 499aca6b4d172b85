#pragma once

#include <string>

#include "braid/dataflow/dataflow_plan.h"

namespace braid {

/// A roofline picture (SVG) of a mapping: operations per second over operations per byte, both
/// logarithmic, with the chip's peak, the slope of DRAM and that of the network as the mapping's
/// messages use it. Each partition is two marks at its throughput: a disc at its operations per
/// byte of DRAM traffic, a square at those per byte sent (DFModel, figure 18). Partitions without
/// traffic of a kind have no mark of it. Each mark has its partition's number and, of few, its
/// first kernel; those on one spot share a label, lines lead to labels that are not near. The
/// kernels of each number stand below. Light or dark as the viewer is. Needs a mapping.
std::string roofline_svg(const DataflowPlan& plan);

}  // namespace braid
