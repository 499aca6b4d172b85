#include "braid/planners/piper/exact_sum.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/piper/bisection.h"
#include "braid/planners/piper/tables.h"

namespace braid {
namespace {

constexpr std::int64_t kTooMany = std::int64_t{1} << 60;
constexpr double kMostSumSteps = 4e9;
constexpr double kMostStages = 4e6;
constexpr double kMostSumStates = 5e7;

class ExactSum {
 public:
  ExactSum(const PiperProblem& problem, const DownsetLattice& prefixes,
           const PiperSearchLimits& limits)
      : problem_(problem),
        pricer_(problem),
        tables_(problem, prefixes),
        most_work_(limits.work),
        sums_(static_cast<std::size_t>(problem.micro_batches) + 1) {
    const auto sets = static_cast<double>(tables_.size());
    const auto degrees = static_cast<double>(tables_.degrees().size());
    const auto sums = static_cast<double>(sums_);
    const double pairs = sets * sets / 2 * degrees;
    if (pairs > kMostStages || sets * sums > kMostSumStates ||
        pairs * static_cast<double>(tables_.dp_degrees().size()) * sums > kMostSumSteps) {
      throw Error(
          "the graph, the devices and the micro-batches are too many for an exact sum of "
          "data-parallel degrees",
          "let them sum to at most the micro-batches");
    }
    for (std::size_t outer = 1; outer < tables_.size(); ++outer) {
      first_.push_back(stages_.size());
      for (std::size_t inner = 0; inner < outer; ++inner) {
        if (!tables_.is_subset(inner, outer)) continue;
        for (std::size_t degree = 0; degree < tables_.degrees().size(); ++degree) {
          PiperStageSums sum = tables_.sums(inner, outer, static_cast<std::int32_t>(degree));
          if (sum.possible) stages_.push_back(sum);
        }
      }
    }
    first_.push_back(stages_.size());
  }

  /// No threshold below can be kept.
  double least_limit() const { return tables_.least_limit(problem_.micro_batches); }
  bool exhausted() const { return most_work_ > 0 && work_ >= most_work_; }
  bool proven() const { return tables_.proven(); }
  std::int64_t work() const { return work_; }

  /// Stages that keep the limit; nullopt when there are none.
  std::optional<PiperSolution> keep(double limit) {
    links_.assign(tables_.size() * sums_, {});
    link(0, 0).devices = 0;
    for (std::size_t outer = 1; outer < tables_.size() && !exhausted(); ++outer) {
      for (std::size_t i = first_[outer - 1]; i < first_[outer]; ++i) extend(i, limit);
    }
    std::vector<PiperStage> stages;
    std::size_t set = tables_.size() - 1;
    std::int64_t sum = problem_.micro_batches;
    if (link(set, sum).stage < 0) return std::nullopt;
    while (set != 0) {
      const Link& here = link(set, sum);
      const PiperStageSums& sums = stages_[static_cast<std::size_t>(here.stage)];
      const auto dp = static_cast<std::size_t>(here.dp);
      const std::int64_t replicas = tables_.dp_degrees()[dp];
      stages.push_back(tables_.choose(sums, dp, in_flight(sum, replicas)));
      stages.back().suffix = sum;
      pricer_.price(stages.back());
      set = static_cast<std::size_t>(sums.inner);
      sum -= replicas;
    }
    return piper_solution_of(std::move(stages));
  }

 private:
  /// The first stage of a suffix's stages.
  struct Link {
    std::int64_t devices = kTooMany;
    std::int32_t stage = -1, dp = -1;  ///< In stages_ and the tables.
  };

  Link& link(std::size_t set, std::int64_t sum) {
    return links_[set * sums_ + static_cast<std::size_t>(sum)];
  }
  static std::int64_t in_flight(std::int64_t sum, std::int64_t dp) { return (sum + dp - 1) / dp; }

  void extend(std::size_t number, double limit) {
    PiperStageSums& stage = stages_[number];
    const auto inner = static_cast<std::size_t>(stage.inner);
    const auto outer = static_cast<std::size_t>(stage.outer);
    const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(stage.degree)];
    const auto dps = tables_.dp_degrees();
    for (std::size_t d = 0; d < dps.size(); ++d) {
      ++work_;
      if (tables_.share(d) * stage.time + tables_.sync_factor(d) * stage.sync_time > limit)
        continue;
      for (std::int64_t sum = dps[d]; sum < static_cast<std::int64_t>(sums_); ++sum) {
        const std::int64_t devices = link(inner, sum - dps[d]).devices + dps[d] * tp;
        if (devices > problem_.devices || devices >= link(outer, sum).devices) continue;
        if (!tables_.keeps(stage, tables_.share(d), tables_.sync_factor(d), in_flight(sum, dps[d]),
                           limit)) {
          continue;
        }
        link(outer, sum) = {devices, static_cast<std::int32_t>(number),
                            static_cast<std::int32_t>(d)};
      }
    }
  }

  const PiperProblem& problem_;
  PiperStagePricer pricer_;
  PiperTables tables_;
  std::int64_t most_work_, work_ = 0;
  std::size_t sums_;  ///< 0 … micro_batches.
  std::vector<PiperStageSums> stages_;
  std::vector<std::size_t> first_;  ///< Stages of each suffix but the empty one.
  std::vector<Link> links_;         ///< [suffix][sum]
};

}  // namespace

PiperSolution solve_exact_sum(const PiperProblem& problem, const PiperSearchLimits& limits) {
  assert(problem.rules.knapsack == PiperKnapsack::exact);
  PiperSolution solution;
  if (!has_options(problem)) return solution;
  if (problem.micro_batches > problem.devices) {
    solution.reason = "data-parallel degrees that sum to exactly " +
                      std::to_string(problem.micro_batches) + " need as many devices, there are " +
                      std::to_string(problem.devices);
    return solution;
  }
  const DownsetLattice prefixes = piper_prefixes(problem, limits);
  ExactSum search(problem, prefixes, limits);
  PiperBisection bisection(search, search.least_limit(), limits.progress, solution);
  bisection.attempt(kInfinity);
  bisection.halve(false);
  bisection.finish();
  if (solution.status == Status::infeasible) {
    solution.reason = "no stages whose data-parallel degrees sum to exactly " +
                      std::to_string(problem.micro_batches) + " fit the devices and memory";
  }
  solution.downsets = static_cast<std::int64_t>(prefixes.size());
  return solution;
}

}  // namespace braid
