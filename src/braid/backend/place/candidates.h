#pragma once

#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/place/fixed_program.h"

namespace braid {

/// A kernel that could compute some nodes of a program.
struct KernelCandidate {
  const Backend* backend = nullptr;  ///< nullptr: the reference kernel of the one node.
  const BackendPattern* pattern = nullptr;
  PatternMatch match;         ///< In `graph`; of backends alone.
  std::vector<NodeId> nodes;  ///< Ascending.
  KernelLayouts layouts = {};
};

/// All matches that a backend or copies_backend() accepts, in order of the nodes, then of backends
/// and their patterns; those that work element by element in every layout that others have; then a
/// reference kernel for each node. The backends must outlive them.
std::vector<KernelCandidate> kernel_candidates(const FixedProgram& fixed,
                                               const ProgramOpGraph& graph,
                                               const std::vector<FoundBackend>& backends);

}  // namespace braid
