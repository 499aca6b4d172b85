#pragma once

#include <span>

#include "braid/dataflow/dataflow_plan.h"

namespace braid {

/// The fastest plan of a graph of a whole model (DataflowJob::whole_model) over these shardings of
/// its kernels, of which there is at least one: kernels go to the stages of the pipeline as
/// find_stages() says, and each stage's onto its chips as if they were all there is. A backward
/// kernel goes where the last forward kernel is that it reads from, or before; as published
/// (JobRules::plain_pipeline false), to a stage of the later half, and whole tensors are sent.
/// Tensors between stages go from chip to chip and not through DRAM; a change of layout is its
/// reader's.
///
/// Where the slowest stage takes longer than its sums of compute, memory and messages say, kernels
/// are weighed by the time of their partitions and split anew, a few times, and the fastest kept.
/// The outcome has the partitions of all stages, its time is that of the slowest stage, and its
/// bound that of find_stages(): it is of the sharding of kernels among chips that was taken.
DataflowPlan plan_stages(const DataflowSetup& setup, const DataflowPlanRules& rules,
                         std::span<const Sharding> shardings);

}  // namespace braid
