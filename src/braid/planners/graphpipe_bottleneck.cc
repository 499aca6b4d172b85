#include "braid/planners/graphpipe_bottleneck.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "braid/planners/graphpipe_read_plan.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The first from `first` on of ascending times at which something is possible that stays so.
template <class Possible>
std::size_t first_of(const std::vector<double>& times_s, std::size_t first,
                     const Possible& possible) {
  std::size_t last = times_s.size();
  if (first == last || !possible(times_s.back())) return last;
  for (--last; first < last;) {
    const std::size_t middle = first + (last - first) / 2;
    if (possible(times_s[middle])) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return last;
}

}  // namespace

GraphPipeBottleneckSearch::GraphPipeBottleneckSearch(const GraphPipeProblem& problem,
                                                     const GraphPipeShapes& form,
                                                     std::vector<PassGroup> groups)
    : problem_(problem), form_(form), search_(problem, form, std::move(groups)) {}

double GraphPipeBottleneckSearch::least_time_s(double limit_s) {
  const double least_s = search_.work_s() / static_cast<double>(problem_.devices) * (1 - 1e-9);
  std::vector<double> times_s;
  for (const GraphPipeRun& run : search_.runs().all()) {
    if (run.time_s >= least_s && run.time_s < limit_s) times_s.push_back(run.time_s);
  }
  std::sort(times_s.begin(), times_s.end());
  times_s.erase(std::unique(times_s.begin(), times_s.end()), times_s.end());
  if (times_s.empty()) return kInfinity;
  // With no more in flight than a sink has, partial plans differ in devices alone. Mostly that is
  // all there is to it.
  const auto relaxed = first_of(times_s, 0, [&](double time_s) { return has_relaxed(time_s); });
  if (relaxed == times_s.size()) return kInfinity;
  const auto possible = [&](double time_s) { return !search_.plans_at(time_s, false).empty(); };
  if (possible(times_s[relaxed])) return times_s[relaxed];
  const auto full = first_of(times_s, relaxed + 1, possible);
  return full == times_s.size() ? kInfinity : times_s[full];
}

std::optional<GraphPipeSolution> GraphPipeBottleneckSearch::plan_at(
    double time_s, const GraphPipeProblem& priced) {
  const GraphPipeFrontier found = search_.plans_at(time_s, false);
  if (found.empty()) return std::nullopt;
  const auto best = std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.out_s + a.back_s < b.out_s + b.back_s;
  });
  GraphPipeSolution solution;
  solution.stages =
      read_graphpipe_plan(problem_, form_, search_.groups(), search_.choices(), best->choice);
  const bool fits = price_graphpipe(priced, solution, time_s);
  solution.status = fits ? Status::optimal : Status::feasible;
  solution.cuts = form_.cuts;
  return solution;
}

bool GraphPipeBottleneckSearch::has_relaxed(double time_s) {
  return !search_.plans_at(time_s, true).empty();
}

std::vector<GraphPipeBottleneckSearch> graphpipe_searches(const GraphPipeProblem& problem,
                                                          const GraphPipeShapes& form) {
  std::vector<GraphPipeBottleneckSearch> searches;
  if (problem.mixed) {
    searches.emplace_back(problem, form, problem.groups);
    return searches;
  }
  std::vector<PassGroup> groups = problem.groups;
  std::stable_sort(groups.begin(), groups.end(), [](const PassGroup& a, const PassGroup& b) {
    return a.micro_batch > b.micro_batch;
  });
  searches.reserve(groups.size());
  for (const PassGroup& group : groups) searches.emplace_back(problem, form, std::vector{group});
  return searches;
}

}  // namespace braid
