#pragma once

#include <cstdint>

#include "braid/planners/amp/mixed_parts.h"
#include "braid/planners/amp/mixed_placement.h"
#include "braid/search/progress.h"

namespace braid {

/// Steps of assign_graph() after which no more placements are tried: seconds.
inline constexpr std::int64_t kMostGraphSteps = 500'000'000;

/// The strategy of least cost with the model cut as a graph, over all placements of all
/// configurations: never worse than the best of `in_order`, whose placements are tried first, each
/// configuration's as far as it might be shown; then search_placements() over nodes with up to
/// `most_states` partial ones. The bound of these is what the stages' paces allow, in parts
/// (least_pipeline_s), the least that any cuts hand over and the least synchronisation; each
/// complete one is assigned exactly. What is left out beyond `most_steps` of assign_graph() counts
/// in the bound.
AmpMixedPlacements place_amp_mixed_as_graph(AmpMixedParts& parts, AmpMixedPlacements in_order,
                                            std::int64_t most_states, const Progress& progress = {},
                                            std::int64_t most_steps = kMostGraphSteps);

/// Adds to `found`, strategies of a job, what cutting branches makes better where that would be
/// shown, the cheap ones first, until `steps` exceed `most_steps`. Their number of tries.
std::int64_t cut_branches(AmpMixedJob& job, std::vector<AmpMixedAssignment>& found,
                          std::int64_t& steps, std::int64_t most_steps = kMostGraphSteps);

}  // namespace braid
