#include "braid/planners/mixed/solve.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/planners/mixed/passes.h"

namespace braid {
namespace {

/// Times that differ by less than kNearThreshold are gone through one by one, no longer halved,
/// this often,
constexpr int kMostFinePasses = 50;
/// and with no more tried than before, but for a little.
constexpr std::int64_t kFineSteps = 100'000;

class Solver {
 public:
  Solver(const MixedProblem& problem, std::vector<std::uint8_t> last_configs, double cutoff_s,
         std::int64_t most_steps, const std::function<double(const MixedPipeline&)>& visit)
      : passes_(problem, std::move(last_configs)),
        cutoff_s_(cutoff_s),
        most_steps_(most_steps),
        visit_(visit),
        closed_s_(cutoff_s) {}

  MixedSolution run() {
    const double all_s = cutoff_s_ == kInfinity ? kInfinity : cutoff_s_ - passes_.least_base_s();
    if (all_s >= 0) {
      look({0, all_s, passes_.least_base_s()}, all_s);
      search();
      look_at_ends();
    }
    solution_.bound_s = std::min(closed_s_, cutoff_s_);
    solution_.spent = spent_;
    const bool none = all_s >= 0 && !time_bound_ && !spent_;
    if (none) solution_.bound_s = kInfinity;
    return std::move(solution_);
  }

 private:
  /// Excesses in [low_s, high_s), whose pipelines have at least base_s.
  struct Range {
    double low_s = 0, high_s = 0, base_s = 0;
    double bound_s() const { return base_s + low_s; }
  };
  /// Pipelines of excesses up to limit_s none of which takes less than bound_s, perhaps more.
  struct Loose {
    double limit_s = 0, bound_s = 0;
  };

  MixedPass pass(double excess_s, double cutoff_s);
  void look(const Range& range, double excess_s);
  void search();
  void look_at_ends();
  void close(double bound_s) { closed_s_ = std::min(closed_s_, bound_s); }

  MixedPasses passes_;
  double cutoff_s_ = 0;
  std::int64_t most_steps_ = 0;
  const std::function<double(const MixedPipeline&)>& visit_;
  double closed_s_ = 0;  ///< The least bound of what is not looked at any more.
  bool spent_ = false;
  bool time_bound_ = false;  ///< Times kept some pipeline from being seen.
  int fine_passes_ = 0;
  std::int64_t fine_steps_ = 0;
  std::vector<Range> open_;
  std::vector<Loose> loose_;
  MixedSolution solution_;
};

MixedPass Solver::pass(double excess_s, double cutoff_s) {
  MixedPass pass = passes_.run(excess_s, cutoff_s, most_steps_ - solution_.steps);
  solution_.steps += pass.steps;
  solution_.memory_bound = solution_.memory_bound || pass.memory_bound;
  time_bound_ = time_bound_ || pass.time_bound || !pass.pipelines.empty();
  spent_ = spent_ || solution_.steps > most_steps_;
  for (const MixedPipeline& pipeline : pass.pipelines) {
    const bool known =
        std::any_of(solution_.pipelines.begin(), solution_.pipelines.end(),
                    [&](const MixedPipeline& other) { return other.stages == pipeline.stages; });
    if (known || pipeline.bound_s() > cutoff_s_) continue;
    solution_.pipelines.push_back(pipeline);
    cutoff_s_ = std::min(cutoff_s_, visit_(pipeline));
  }
  return pass;
}

/// All of the range up to excess_s: what is found there splits it.
void Solver::look(const Range& range, double excess_s) {
  const MixedPass found = pass(excess_s, cutoff_s_);
  if (spent_) {
    close(range.bound_s());
    return;
  }
  const double next_s = std::max(excess_s, found.next_excess_s);
  if (range.high_s > next_s) open_.push_back({next_s, range.high_s, range.base_s});
  if (found.pipelines.empty()) return;
  // Between its excess and the limit no other has less of both.
  const MixedPipeline& first = found.pipelines.front();
  const double first_s = first.base_s + first.excess_s;
  const double nearer_s = std::min(first.excess_s, excess_s);  // But for rounding.
  loose_.push_back({excess_s, first_s});
  if (nearer_s > range.low_s) open_.push_back({range.low_s, nearer_s, first.base_s});
}

/// Not a search for one threshold (base/least_threshold.h): base and excess count together, so that
/// many ranges are open, the most promising of which is halved; what remains bounds the answer.
void Solver::search() {
  while (!open_.empty()) {
    const auto least =
        std::min_element(open_.begin(), open_.end(),
                         [](const Range& a, const Range& b) { return a.bound_s() < b.bound_s(); });
    const Range range = *least;
    open_.erase(least);
    double best_s = std::min(closed_s_, cutoff_s_);
    for (const Loose& loose : loose_) best_s = std::min(best_s, loose.bound_s);
    const bool fine = range.bound_s() >= best_s * (1 - kNearThreshold);
    // What is met between bound and time stays open anyway.
    const bool pointless = fine && (best_s < cutoff_s_ || ++fine_passes_ > kMostFinePasses ||
                                    2 * fine_steps_ > solution_.steps + kFineSteps);
    if (spent_ || pointless || range.bound_s() >= best_s) {
      close(range.bound_s());
      continue;
    }
    // What is above the best cannot be better, however long the range. Halves first, then the
    // excesses that there are, one by one.
    const double high_s = std::min(range.high_s, best_s - range.base_s);
    const double middle_s = fine ? range.low_s : range.low_s + (high_s - range.low_s) / 2;
    const std::int64_t steps = solution_.steps;
    look({range.low_s, high_s, range.base_s}, middle_s);
    if (fine) fine_steps_ += solution_.steps - steps;
  }
}

/// Raises the bounds of what was found by base and excess to what its ends allow: by passes below
/// times between what is proven and what is found.
void Solver::look_at_ends() {
  for (const MixedPipeline& pipeline : solution_.pipelines) close(pipeline.bound_s());
  const std::int64_t most_steps = 2 * solution_.steps + kFineSteps;
  for (int fine = 0; !loose_.empty();) {
    const auto least =
        std::min_element(loose_.begin(), loose_.end(),
                         [](const Loose& a, const Loose& b) { return a.bound_s < b.bound_s; });
    const Loose range = *least;
    loose_.erase(least);
    const double best_s = std::min(closed_s_, cutoff_s_);
    if (is_proven(range.bound_s, best_s)) break;
    const bool near = range.bound_s >= best_s * (1 - kNearThreshold);
    if (spent_ || solution_.steps > most_steps || (near && ++fine > kMostFinePasses)) {
      close(range.bound_s);
      break;
    }
    const double below_s =
        near ? best_s * kBelowTolerance : range.bound_s + (best_s - range.bound_s) / 2;
    const MixedPass found = pass(range.limit_s, below_s);
    if (spent_) {
      close(range.bound_s);
      break;
    }
    double found_s = kInfinity;
    for (const MixedPipeline& pipeline : found.pipelines) {
      found_s = std::min(found_s, pipeline.bound_s());
    }
    if (found.pipelines.empty()) {
      loose_.push_back({range.limit_s, below_s});
    } else if (found_s <= below_s) {
      close(found_s);
      loose_.push_back(range);
    } else {
      close(range.bound_s);  // Suffixes that a list keeps as one are not told apart.
    }
  }
}

/// Kinds of devices that a config takes.
std::vector<bool> kinds_of(const MixedConfig& config) {
  std::vector<bool> kinds;
  for (const std::int32_t devices : config.takes) kinds.push_back(devices > 0);
  return kinds;
}

}  // namespace

MixedSolution solve_mixed(const MixedProblem& problem, double cutoff_s, std::int64_t most_steps,
                          const std::function<double(const MixedPipeline&)>& visit) {
  if (!problem.costs->exchanges()) return Solver(problem, {}, cutoff_s, most_steps, visit).run();
  // What the first stage exchanges with the last one depends on where that is.
  std::map<std::vector<bool>, std::vector<std::uint8_t>> configs_by_kinds;
  for (std::size_t config = 0; config < problem.configs.size(); ++config) {
    std::vector<std::uint8_t>& configs = configs_by_kinds[kinds_of(problem.configs[config])];
    configs.resize(problem.configs.size(), 0);
    configs[config] = 1;
  }
  const std::function<double(const MixedPipeline&)> lower = [&](const MixedPipeline& pipeline) {
    return cutoff_s = visit(pipeline);
  };
  MixedSolution all;
  all.bound_s = kInfinity;
  auto left = static_cast<std::int64_t>(configs_by_kinds.size());
  for (const auto& [kinds, configs] : configs_by_kinds) {
    const std::int64_t steps = std::max<std::int64_t>(0, most_steps - all.steps) / left--;
    MixedSolution found = Solver(problem, configs, cutoff_s, steps, lower).run();
    std::move(found.pipelines.begin(), found.pipelines.end(), std::back_inserter(all.pipelines));
    all.bound_s = std::min(all.bound_s, found.bound_s);
    all.memory_bound = all.memory_bound || found.memory_bound;
    all.spent = all.spent || found.spent;
    all.steps += found.steps;
  }
  return all;
}

}  // namespace braid
