#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/amp/amp_mixed_job.h"
#include "braid/search/progress.h"

namespace braid {

struct AmpMixedPlacements {
  std::vector<AmpMixedAssignment> found;  ///< The best that was met of each configuration.
  double bound_s = 0;                     ///< No strategy of the job costs less, by AMP's cost.
  std::int64_t states = 0;                ///< Partial placements made.
};

/// The strategy of least cost over all placements of all configurations. The order of ranks, each
/// order of the groups and that of the best order of paces are tried first; then
/// search_placements() over nodes. The bound of a partial placement is the exact assignment of
/// layers with the stages still to come on the fastest free devices behind the fastest links, plus
/// the least that synchronisation takes however the parameters lie on the stages; that of a whole
/// configuration knows that slow devices are used too (assign_layers_and_types). Devices of a node
/// are taken for alike.
///
/// Models that are cut as graphs are placed with their layers in order first, then as graphs
/// (planners/amp/mixed_graph_placement.h), each with as many partial placements.
AmpMixedPlacements place_amp_mixed(AmpMixedJob& job, std::int64_t most_states,
                                   const Progress& progress = {});

}  // namespace braid
