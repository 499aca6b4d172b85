#pragma once

#include <vector>

#include "braid/backend/place/candidates.h"
#include "braid/backend/placement/cheapest_placement.h"

namespace braid {

/// The values of a program that lie in other layouts than the plain one for some candidate. Formats
/// of the search are the layouts, by number.
struct LaidValues {
  std::vector<ValueId> values;          ///< By value of the search.
  std::vector<std::int32_t> number_of;  ///< By value of the program; -1 for those always plain.
};
LaidValues laid_values(const FixedProgram& fixed, const ProgramOpGraph& graph,
                       const std::vector<KernelCandidate>& candidates);

/// Which values a candidate reads that are no constants, and how these lie; each once, or twice
/// where it reads it in two layouts.
std::vector<std::pair<ValueId, ImageLayout>> layouts_read(const FixedProgram& fixed,
                                                          const ProgramOpGraph& graph,
                                                          const KernelCandidate& candidate);
/// The values that it writes: those of its last node.
std::vector<ValueId> values_written(const FixedProgram& fixed, const KernelCandidate& candidate);

/// The search's problem but for its costs.
PlacementProblem placement_problem(const FixedProgram& fixed, const ProgramOpGraph& graph,
                                   const std::vector<KernelCandidate>& candidates,
                                   const LaidValues& laid);

}  // namespace braid
