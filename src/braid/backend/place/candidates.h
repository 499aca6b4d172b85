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

  /// Of a backend's regions, any nodes that follow each other.
  bool is_region() const { return backend != nullptr && match.nodes.empty(); }
};

/// What the kernel of a backend's candidate is made for.
KernelJob candidate_job(const FixedProgram& fixed, const ProgramOpGraph& graph,
                        const KernelCandidate& candidate);

/// All matches that a backend or copies_backend() accepts, in order of the nodes, then of backends
/// and their patterns; those that work element by element in every layout that others have; then a
/// reference kernel for each node. The backends must outlive them.
std::vector<KernelCandidate> kernel_candidates(const FixedProgram& fixed,
                                               const ProgramOpGraph& graph,
                                               const std::vector<FoundBackend>& backends);

/// Where a single tensor goes from the nodes before to those behind, by the number of nodes before
/// it: `parts` - 1 such places at most, spread evenly over the nodes, and both ends. Ascending.
std::vector<std::size_t> cut_places(const Program& program, std::int64_t parts);

/// Regions of backends between places: every run of parts that a backend's regions accept, the
/// whole program too, in order of where they begin and end.
std::vector<KernelCandidate> region_candidates(const FixedProgram& fixed,
                                               const std::vector<FoundBackend>& backends,
                                               const std::vector<std::size_t>& places);

}  // namespace braid
