#pragma once

#include <optional>
#include <vector>

#include "braid/backend/place/candidate_costs.h"
#include "braid/backend/place/place_program.h"
#include "braid/backend/place/placement_problem.h"

namespace braid {

/// Places one program again and again with other regions; kernels are measured once.
class ProgramPlacer {
 public:
  /// All that is given must outlive this.
  ProgramPlacer(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                std::vector<KernelCandidate> regions, CostStore* store,
                const PlaceOptions& options);

  const std::vector<KernelCandidate>& candidates() const { return candidates_; }
  /// The number of the first region among the candidates; they are the last of them.
  std::size_t first_region() const { return first_region_; }
  bool is_free(std::size_t candidate) { return costs_.is_free(candidate); }
  const ProgramPlacement& counts() const { return counts_; }

  /// The cheapest of all.
  CheapestPlacement placed();
  /// The cheapest in which these regions, of different nodes, run what they hold, and kernels the
  /// rest; nullopt where a region cannot be made.
  std::optional<CheapestPlacement> placed_with(const std::vector<std::size_t>& regions);

  ProgramPlacement answer(const CheapestPlacement& placement);

 private:
  double turning_s(std::int32_t value, int from, int to);

  const FixedProgram& fixed_;
  const PlaceOptions& options_;
  ProgramOpGraph graph_;
  std::vector<KernelCandidate> candidates_;
  std::size_t first_region_ = 0;
  ProgramPlacement counts_;
  CandidateCosts costs_;
  LaidValues laid_;
  PlacementProblem problem_;
};

}  // namespace braid
