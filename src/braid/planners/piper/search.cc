#include "braid/planners/piper/search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/planners/piper/exact_sum.h"
#include "braid/planners/piper/levels.h"
#include "braid/planners/piper/threshold.h"
#include "braid/search/rounding.h"

namespace braid {
namespace {

/// With more downsets than this, a few are searched first.
constexpr std::size_t kManyDownsets = 1000;

double slowest(const std::vector<PiperStage>& stages) {
  double time = 0;
  for (const PiperStage& stage : stages) time = std::max(time, stage.time);
  return time;
}

/// Narrows down the least threshold that can be kept.
class Bisection {
 public:
  Bisection(const PiperProblem& problem, PiperTables& tables, const PiperSearchLimits& limits,
            PiperSolution& solution)
      : threshold_(problem, tables, limits.work), progress_(limits.progress), solution_(solution) {
    const std::size_t whole = tables.size() - 1;
    const std::int64_t most_suffix = std::min(problem.devices, problem.micro_batches);
    low_ = std::max({tables.least_layer_time(),
                     tables.least_work(whole) / static_cast<double>(problem.devices),
                     tables.least_time(whole) / static_cast<double>(most_suffix)});
    if (!solution.stages.empty()) high_ = solution.time;
    low_ *= 1 - kSameTime;  // Everything below is excluded, not the bound itself.
  }

  void run() {
    if (high_ < kInfinity) {
      attempt(high_ * (1 - kSameTime));
    } else {
      if (!threshold_.may_keep(kInfinity)) return finish();
      raise_bound();
    }
    // What the bounds do not see makes little difference mostly.
    for (double step = 4e-3; high_ == kInfinity && step < 1e6 && low_ > 0; step *= 4) {
      if (threshold_.exhausted()) return finish();
      attempt(low_ * (1 + step));
    }
    if (high_ == kInfinity) attempt(kInfinity);
    while (high_ < kInfinity && is_open() && !threshold_.exhausted()) {
      // When the ends are close the upper one is probably the optimum. If not, it may be far.
      const double before = high_;
      if (low_ <= 0 || low_ > high_ * (1 - 1e-3)) attempt(high_ * (1 - kSameTime));
      if (high_ < before || low_ <= high_ * (1 - 1e-3)) {
        if (is_open() && low_ > 0) attempt(std::sqrt(low_ * high_));
      }
    }
    finish();
  }

 private:
  bool is_open() const { return low_ < high_ * (1 - kSameTime); }
  /// Keeps the stages if they are the fastest so far.
  void take(std::vector<PiperStage> stages, double limit) {
    const double time = slowest(stages);
    if (time < high_) {
      high_ = time;
      solution_.stages = std::move(stages);
      show();
    } else {
      low_ = std::max(low_, limit);  // Rounding: what was found is what is known.
    }
  }

  /// Bisection by the quick bounds alone.
  void raise_bound() {
    double kept = kInfinity;  // Not excluded.
    for (double step = 0.02; kept == kInfinity && low_ > 0 && step < 1e6; step *= 3) {
      try_bound(low_ * (1 + step), kept);
      if (threshold_.exhausted()) return;
    }
    while (kept < kInfinity && low_ < kept * (1 - 1e-3) && !threshold_.exhausted()) {
      try_bound(std::sqrt(low_ * kept), kept);
    }
  }
  void try_bound(double limit, double& kept) {
    if (!threshold_.may_keep(limit)) {
      low_ = std::max(low_, limit);
      return;
    }
    if (threshold_.exhausted()) return;
    kept = std::min(kept, limit);
    if (auto stages = threshold_.bounding_stages(limit)) {
      take(std::move(*stages), limit);
      kept = std::min(kept, high_);
    }
  }

  void attempt(double limit) {
    if (threshold_.may_keep(limit) && !threshold_.exhausted()) {
      auto stages = threshold_.bounding_stages(limit);
      if (!stages) stages = threshold_.keep(limit);
      if (stages) return take(std::move(*stages), limit);
    }
    if (!threshold_.exhausted()) low_ = std::max(low_, limit);
    show();
  }

  void show() const {
    if (progress_) progress_(high_, std::min(low_, high_), solution_.work + threshold_.work());
  }

  void finish() {
    const bool complete = !threshold_.exhausted() && threshold_.proven();
    solution_.work += threshold_.work();
    if (high_ == kInfinity) {
      solution_.status = complete ? Status::infeasible : Status::budget_exhausted;
      return;
    }
    solution_.time = high_;
    solution_.status = complete ? Status::optimal : Status::feasible;
    solution_.bound = complete ? high_ : std::min(low_, high_);
  }

  PiperThreshold threshold_;
  const SearchProgress& progress_;
  PiperSolution& solution_;
  double low_ = 0, high_ = kInfinity;
};

}  // namespace

PiperSolution solve_piper(const PiperProblem& problem, const PiperSearchLimits& limits) {
  if (!problem.levels.empty()) return solve_piper_levels(problem, limits);
  if (problem.rules.sum == PiperSum::exact) return solve_exact_sum(problem, limits);
  PiperSolution solution;
  if (!has_options(problem)) return solution;
  const std::vector<Bitset> prefixes = piper_prefixes(problem, limits);
  if (prefixes.size() > kManyDownsets) {
    // Few of them mostly hold the optimum, and proving it is easier than finding it.
    PiperTables few(problem, piper_order_prefixes(problem));
    Bisection(problem, few, limits, solution).run();
  }
  solution.downsets = static_cast<std::int64_t>(prefixes.size());
  PiperTables tables(problem, prefixes);
  Bisection(problem, tables, limits, solution).run();
  return solution;
}

namespace {

std::optional<std::vector<PiperStage>> feasible_among(const std::vector<Bitset>& prefixes,
                                                      const PiperProblem& problem,
                                                      const PiperSearchLimits& limits) {
  PiperTables tables(problem, prefixes);
  PiperThreshold threshold(problem, tables, limits.work);
  if (!threshold.may_keep(kInfinity)) return std::nullopt;
  auto stages = threshold.bounding_stages(kInfinity);
  return stages ? stages : threshold.keep(kInfinity);
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
