#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/planners/phaze/table.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/search/one_f_one_b_turns.h"

namespace braid {

/// What a search over one width finds: the stages' candidates in pipeline order.
struct PhazeSequence {
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

/// A combination with a lower bound on the time that its plans take.
struct PhazeCombination {
  double bound_s = 0;
  std::int64_t dp = 1;
  std::int64_t stages = 1;
};
/// All that have enough devices and a dp that no smaller one replaces (as few micro-batches), by
/// rising dp and stages.
std::vector<PhazeCombination> phaze_combinations(const PhazeSpace& space, PhazeObjective objective);

/// The best by PhazeObjective::program of a combination, if it is below `below_s`.
std::optional<PhazeSequence> best_by_program(const PhazeSpace& space,
                                             const PhazeCombination& combination, double below_s);
/// The best by PhazeObjective::program of all combinations, if it is below `below_s`: among equals
/// the least dp, then the fewest stages.
std::optional<PhazeSequence> best_by_program(const PhazeSpace& space, double below_s);

/// The best by PhazeObjective::flush of a combination, if it is below `below_s`.
std::optional<PhazeSequence> best_by_flush(const PhazeSpace& space,
                                           const PhazeCombination& combination, double below_s);

/// The plan of a combination whose path_bound_s() is least, if that is below `below_s`; objective_s
/// is this bound.
std::optional<PhazeSequence> best_by_path(const PhazeSpace& space,
                                          const PhazeCombination& combination, double below_s);

/// What is known of the best plan of a combination by simulation.
struct PhazeSimulated {
  std::optional<PhazeSequence> best;  ///< objective_s is its simulated time, below what was asked.
  double bound_s = 0;      ///< No plan of the combination takes less; the best's time when proven.
  std::int64_t plans = 0;  ///< Partial plans looked through.
};
/// The best by PhazeObjective::simulated of a combination, if it is below `below_s`. The plan of
/// least path bound comes first; where it takes longer than its bound, all others whose bound is
/// below the best time are looked through, depth first, up to `most_plans` partial ones.
PhazeSimulated best_by_simulation(const PhazeSpace& space, const PhazeCombination& combination,
                                  double below_s, std::int64_t most_plans);

/// Times of an iteration with such stages, in pipeline order, by both formulas.
struct PhazeFormulas {
  double program_s = 0, flush_s = 0;
};
PhazeFormulas phaze_formulas(const PhazeProblem& problem, std::int64_t dp,
                             const std::vector<PhazeCandidate>& stages);

/// The time of flushed 1F1B with such stages, in pipeline order.
double phaze_simulated_s(const PhazeProblem& problem, std::int64_t dp,
                         const std::vector<PhazeCandidate>& stages, PipelineWorkspace& workspace);

// Pieces of the searches.

/// Smallest n with n · b ≥ a.
std::int64_t ceiling(std::int64_t a, std::int64_t b);
/// Share of weights / bandwidth that synchronising dp replicas takes.
double sync_factor(std::int64_t dp);
/// A stage by its place from the end of the pipeline.
double load_of(const PhazeCandidate& candidate, std::int64_t from_end);
double backward_of(const PhazeCandidate& candidate, std::int64_t from_end);

/// Lengths of paths through the 1F1B schedule beyond the sum of all loads, of which none is longer
/// than the simulated time: of any stage OneFOneBTurns::rising_excess_s, as synchronisation comes
/// behind the last micro-batch's way up. `longest` is the longest so far.
struct PhazePath {
  double longest_s = 0;
  double sum_s = 0;  ///< Of the loads.

  /// Puts a stage, the s-th from the end, before those there are.
  void prepend(double forward_s, double backward_s, std::int64_t from_end,
               std::int64_t micro_batches);
};

/// Sum of loads and paths, and by how much some stage's synchronisation outlasts the backward
/// passes of the stages before it: at most the simulated time, and nearly always equal to it for
/// plans that are any good.
double path_bound_s(const PhazeProblem& problem, std::int64_t dp,
                    const std::vector<PhazeCandidate>& stages);

}  // namespace braid
