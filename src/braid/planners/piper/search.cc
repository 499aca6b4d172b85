#include "braid/planners/piper/search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/planners/piper/bisection.h"
#include "braid/planners/piper/exact_sum.h"
#include "braid/planners/piper/levels.h"
#include "braid/planners/piper/threshold.h"

namespace braid {
namespace {

/// With more downsets than this, a few are searched first.
constexpr std::size_t kManyDownsets = 1000;
/// From the time that all work takes up to what the quick bounds do not exclude.
constexpr RisingSteps kQuickSteps{0.02, 3, 1e6};
/// From there up, finely: what the quick bounds do not see makes little difference mostly.
constexpr RisingSteps kExactSteps{4e-3, 4, 1e6};

/// Raises what is excluded by the quick bounds alone, until it is near to a time that they do not
/// exclude.
void raise_bound(PiperThreshold& threshold, PiperBisection<PiperThreshold>& bisection) {
  RisingSteps steps = kQuickSteps;
  const auto next = [&](const ThresholdRange& kept) -> std::optional<double> {
    const double low = bisection.low();
    if (threshold.exhausted()) return std::nullopt;
    if (kept.high == kInfinity) return steps.next_above(low);
    if (!(low < kept.high * (1 - kNearThreshold))) return std::nullopt;
    return std::sqrt(low * kept.high);
  };
  const auto attempt = [&](double limit) -> std::optional<double> {
    if (!threshold.may_keep(limit)) {
      bisection.exclude(limit);
      return std::nullopt;
    }
    if (threshold.exhausted()) return std::nullopt;
    auto stages = threshold.bounding_stages(limit);
    if (!stages) return limit;
    bisection.take(piper_solution_of(std::move(*stages)), limit);
    return std::min(limit, bisection.high());
  };
  least_threshold({0, kInfinity}, next, attempt);
}

/// The fastest solution over the tables' suffixes, if it is faster than `solution`.
void improve(const PiperProblem& problem, PiperTables& tables, const PiperSearchLimits& limits,
             PiperSolution& solution) {
  const std::int64_t most_sum = std::min(problem.devices, problem.micro_batches);
  // Everything below is excluded, not the bound itself.
  const double low =
      std::max(tables.least_layer_time() * (1 - kSameTime), tables.least_limit(most_sum));
  PiperThreshold threshold(problem, tables, limits.work);
  PiperBisection bisection(threshold, low, limits.progress, solution);
  if (bisection.has_solution()) {
    bisection.attempt_below_high();
  } else {
    if (!threshold.may_keep(kInfinity)) return bisection.finish();
    raise_bound(threshold, bisection);
  }
  bisection.rise(kExactSteps);
  bisection.halve(true);
  bisection.finish();
}

}  // namespace

PiperSolution solve_piper(const PiperProblem& problem, const PiperSearchLimits& limits) {
  if (!problem.levels.empty()) return solve_piper_levels(problem, limits);
  if (problem.rules.sum == PiperSum::exact) return solve_exact_sum(problem, limits);
  PiperSolution solution;
  if (!has_options(problem)) return solution;
  const DownsetLattice prefixes = piper_prefixes(problem, limits);
  if (prefixes.size() > kManyDownsets) {
    // Few of them mostly hold the optimum, and proving it is easier than finding it.
    PiperTables few(problem, piper_order_prefixes(problem));
    improve(problem, few, limits, solution);
  }
  solution.downsets = static_cast<std::int64_t>(prefixes.size());
  PiperTables tables(problem, prefixes);
  improve(problem, tables, limits, solution);
  return solution;
}

namespace {

std::optional<std::vector<PiperStage>> feasible_among(const DownsetLattice& prefixes,
                                                      const PiperProblem& problem,
                                                      const PiperSearchLimits& limits) {
  PiperTables tables(problem, prefixes);
  PiperThreshold threshold(problem, tables, limits.work);
  if (!threshold.may_keep(kInfinity)) return std::nullopt;
  auto stages = threshold.bounding_stages(kInfinity);
  return stages ? stages : threshold.followed_stages(kInfinity);
}

}  // namespace

std::optional<std::vector<PiperStage>> feasible_stages(const PiperProblem& problem,
                                                       const PiperSearchLimits& limits) {
  if (!problem.levels.empty()) return feasible_level_stages(problem, limits);
  if (!has_options(problem)) return std::nullopt;
  return feasible_among(piper_prefixes(problem, limits), problem, limits);
}

std::optional<std::vector<PiperStage>> feasible_stages_soon(const PiperProblem& problem,
                                                            const PiperSearchLimits& limits) {
  if (!problem.levels.empty() || problem.one_stage) return feasible_stages(problem, limits);
  if (!has_options(problem)) return std::nullopt;
  return feasible_among(piper_order_prefixes(problem), problem, limits);
}

}  // namespace braid
