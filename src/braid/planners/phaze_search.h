#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/planners/phaze_table.h"

namespace braid {

/// What a search over one width finds: the stages' candidates in pipeline order.
struct PhazeFound {
  double objective_s = 0;
  std::int64_t dp = 1;
  std::vector<PhazeCandidate> stages;
};

/// All that a search over one width works with.
struct PhazeSpace {
  const PhazeProblem* problem = nullptr;
  const PhazeCandidates* candidates = nullptr;
  const PhazeTable* table = nullptr;
  std::size_t cuts = 0;
};

/// The best by PhazeObjective::program that is below `below_s`: among equals the least dp, then the
/// fewest stages.
std::optional<PhazeFound> best_by_program(const PhazeSpace& space, double below_s);

/// A combination with a lower bound on its flush time.
struct PhazeCombination {
  double bound_s = 0;
  std::int64_t dp = 1;
  std::int64_t stages = 1;
};
/// All that are feasible and whose bound is below `below_s`, by rising bound.
std::vector<PhazeCombination> phaze_combinations(const PhazeSpace& space, double below_s);

/// The best by PhazeObjective::flush of a combination, if it is below `below_s`.
std::optional<PhazeFound> best_by_flush(const PhazeSpace& space,
                                        const PhazeCombination& combination, double below_s);

}  // namespace braid
