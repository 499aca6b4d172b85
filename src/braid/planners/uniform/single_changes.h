#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/job/assess.h"
#include "braid/planners/job/space.h"
#include "braid/planners/uniform/best_plans.h"

namespace braid {

// The last step of a search over configurations: its best plans, one change at a time.

/// Configurations of the space that differ from one in a single respect: an offload, recomputation,
/// the ZeRO stage, the form of tensor parallelism, the order of axes, the schedule, the size of
/// micro-batches or the number of chunks.
std::vector<Configuration> single_changes(const Configuration& configuration,
                                          const SpaceLimits& limits, const SpaceOptions& options,
                                          bool has_host);

/// What single_changes() keeps to.
struct ChangeSpace {
  const SpaceLimits& limits;
  const SpaceOptions& options;
};

/// The plan after the single change that makes it fastest, again and again until none makes it
/// faster: a layer moved over a cut, or another configuration of single_changes() with the layers
/// as they are (where it has as many chunks) and as assess() deals them. `timed` counts what is
/// looked at.
FoundPlan with_single_changes(const ChainJob& chain, LayerTables& tables, FoundPlan plan,
                              const ChangeSpace& space, std::int64_t& timed,
                              AssessmentScratch& scratch);

/// The same with layers moved over cuts alone.
FoundPlan with_moved_layers(const ChainJob& chain, LayerTables& tables, FoundPlan plan,
                            std::int64_t& timed, AssessmentScratch& scratch);

}  // namespace braid
