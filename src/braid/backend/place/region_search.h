#pragma once

#include <vector>

#include "braid/backend/place/place_program.h"
#include "braid/backend/placement/evolution.h"

namespace braid {

/// Regions between more places than can be measured all: each part of the program is run by
/// kernels or by a backend's regions, neighbours of one backend as one region, by an evolutionary
/// search (evolution.h) that measures `options.evolved_regions` of them at most. What is chosen for
/// each part, the rest is placed exactly. It begins with `seed`, which is kernels alone or has
/// regions, and is never slower by its parts than that; `measured` counts what the search did.
ProgramPlacement evolved_placement(const FixedProgram& fixed,
                                   const std::vector<FoundBackend>& backends, CostStore* store,
                                   const PlaceOptions& options, const ProgramPlacement& seed,
                                   const EvolutionOptions& evolution = {});

}  // namespace braid
