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

/// What no plan with these candidates can do without.
struct PhazeSums {
  std::vector<double> before_s;  ///< Least sum of the loads of the stages before each cut.
  double all_s = 0;              ///< Least sum of all loads.
  double gradients_s = 0;        ///< Least sum of all stages' gradients_s.
  double backward_share = 0;     ///< Largest part of a load that is the backward pass.
};
PhazeSums phaze_sums(const PhazeCandidates& candidates, std::size_t cuts);

/// All that a search over one width works with.
struct PhazeSpace {
  const PhazeProblem* problem = nullptr;
  const PhazeCandidates* candidates = nullptr;
  const PhazeTable* table = nullptr;
  const PhazeSums* sums = nullptr;
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
/// All that have enough devices and a dp that no smaller one replaces (as few micro-batches), by
/// rising dp and stages.
std::vector<PhazeCombination> phaze_combinations(const PhazeSpace& space);

/// The best by PhazeObjective::flush of a combination, if it is below `below_s`.
std::optional<PhazeFound> best_by_flush(const PhazeSpace& space,
                                        const PhazeCombination& combination, double below_s);

}  // namespace braid
