#include "braid/planners/mixed_solve.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "braid/planners/mixed_passes.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

MixedSolution solve_mixed(const MixedProblem& problem, double cutoff_s, std::int64_t most_steps,
                          const std::function<double(const MixedPipeline&)>& visit) {
  constexpr double kFine = 1e-3;
  constexpr int kMostFinePasses = 50;
  // However few those are, no more is tried in them than in all others, but for a little.
  constexpr std::int64_t kFineSteps = 100'000;
  int fine_passes = 0;
  std::int64_t fine_steps = 0;
  MixedPasses passes(problem);
  MixedSolution solution;
  /// Excesses in [low_s, high_s), whose pipelines have at least base_s.
  struct Range {
    double low_s = 0, high_s = 0, base_s = 0;
    double bound_s() const { return base_s + low_s; }
  };
  std::vector<Range> open;
  double closed_s = cutoff_s;  ///< The least bound of what is not looked at any more.
  bool spent = false;
  const auto look = [&](Range range, double excess_s) {
    // All of the range up to excess_s: what is found there splits it.
    const MixedPass pass = passes.run(excess_s, cutoff_s, most_steps - solution.steps);
    const double cutoff_then_s = cutoff_s;
    solution.steps += pass.steps;
    solution.memory_bound = solution.memory_bound || pass.memory_bound;
    if (solution.steps > most_steps) {
      spent = true;
      closed_s = std::min(closed_s, range.bound_s());
      return;
    }
    const double next_s = std::max(excess_s, pass.next_excess_s);
    if (range.high_s > next_s) open.push_back({next_s, range.high_s, range.base_s});
    for (const MixedPipeline& pipeline : pass.pipelines) {
      const bool known =
          std::any_of(solution.pipelines.begin(), solution.pipelines.end(),
                      [&](const MixedPipeline& other) { return other.stages == pipeline.stages; });
      if (known || pipeline.bound_s() > cutoff_s) continue;
      solution.pipelines.push_back(pipeline);
      cutoff_s = std::min(cutoff_s, visit(pipeline));
    }
    if (pass.pipelines.empty()) return;
    const MixedPipeline& found = pass.pipelines.front();
    const double found_s = found.base_s + found.excess_s;
    if (cutoff_s < cutoff_then_s && found_s < cutoff_s && found.end_s > cutoff_s) {
      // It ends too late by now, whatever its excess; others may not.
      open.push_back({range.low_s, std::min(range.high_s, excess_s), found.base_s});
      return;
    }
    // Between its excess and the limit there is none better than itself.
    closed_s = std::min(closed_s, found_s);
    const double nearer_s = std::min(found.excess_s, excess_s);  // But for rounding.
    if (nearer_s > range.low_s) open.push_back({range.low_s, nearer_s, found.base_s});
  };
  const double all_s = cutoff_s == kInfinity ? kInfinity : cutoff_s - passes.least_base_s();
  if (all_s < 0) {
    solution.bound_s = cutoff_s;
    return solution;
  }
  look({0, all_s, passes.least_base_s()}, all_s);
  while (!open.empty()) {
    const auto least =
        std::min_element(open.begin(), open.end(),
                         [](const Range& a, const Range& b) { return a.bound_s() < b.bound_s(); });
    const Range range = *least;
    open.erase(least);
    const double best_s = std::min(closed_s, cutoff_s);
    const bool fine = range.bound_s() >= best_s * (1 - kFine);
    // What is met between bound and time stays open anyway.
    const bool pointless = fine && (closed_s < cutoff_s || ++fine_passes > kMostFinePasses ||
                                    2 * fine_steps > solution.steps + kFineSteps);
    if (spent || pointless || range.bound_s() >= best_s) {
      closed_s = std::min(closed_s, range.bound_s());
      continue;
    }
    // What is above the best cannot be better, however long the range. Halves first, then the
    // excesses that there are, one by one.
    const double high_s = std::min(range.high_s, best_s - range.base_s);
    const double middle_s = fine ? range.low_s : range.low_s + (high_s - range.low_s) / 2;
    const std::int64_t steps = solution.steps;
    look({range.low_s, high_s, range.base_s}, middle_s);
    if (fine) fine_steps += solution.steps - steps;
  }
  solution.bound_s = std::min(closed_s, cutoff_s);
  return solution;
}

}  // namespace braid
