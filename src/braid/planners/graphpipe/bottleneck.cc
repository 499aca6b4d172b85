#include "braid/planners/graphpipe/bottleneck.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/planners/graphpipe/pricing.h"
#include "braid/planners/graphpipe/read_plan.h"

namespace braid {
namespace {

using Times = std::vector<double>;

Times::iterator place(Times& times_s, std::size_t i) {
  return times_s.begin() + static_cast<std::ptrdiff_t>(i);
}

/// The least of times in places [first, last), none of them below those before, at which something
/// is possible that stays so: its place when they are put in order as far as is needed to find it,
/// so that none behind it is less; `last` if there is none. It halves as first_where() does, but
/// what it asks for depends on the ends, between which times are put in order.
template <class Possible>
std::size_t first_of(Times& times_s, std::size_t first, std::size_t last,
                     const Possible& possible) {
  if (first == last) return last;
  const std::size_t none = last--;
  std::iter_swap(place(times_s, last),
                 std::max_element(place(times_s, first), place(times_s, none)));
  if (!possible(times_s[last])) return none;
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    std::nth_element(place(times_s, first), place(times_s, middle), place(times_s, last));
    if (possible(times_s[middle])) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return last;
}

/// The same of all from `first` on, where it is likely to be among the least of them: looked for in
/// ever more of these.
template <class Possible>
std::size_t soon_of(Times& times_s, std::size_t first, const Possible& possible) {
  for (std::size_t more = 1; first < times_s.size(); more *= 4) {
    const std::size_t last = first + std::min(more, times_s.size() - first);
    std::nth_element(place(times_s, first), place(times_s, last - 1), times_s.end());
    const std::size_t found = first_of(times_s, first, last, possible);
    if (found < last) return found;
    first = last;
  }
  return first;
}

/// No stage is faster than each of its nodes, and all do their work with some of the strategies and
/// samples that the groups allow.
double bound_s(const GraphPipeProblem& problem, const std::vector<PassGroup>& groups) {
  const std::vector<std::int32_t> weights = graphpipe_weights(problem);
  std::vector<double> work_s(problem.kinds.size(), kInfinity);  // Weighed, per sample.
  std::vector<double> time_s(problem.kinds.size(), kInfinity);  // Of a stage of it alone.
  const auto put = [&](const PassGroup& group, std::size_t w, std::size_t u) {
    const std::int64_t replicas = group.micro_batch / problem.device_samples[u];
    const std::int64_t tensor = problem.strategies[w].tensor;
    const std::int64_t most =
        std::min(problem.pool_of(problem.strategies[w]).devices, problem.most_stage_devices);
    const double weighed =
        weights[at(problem.strategies[w].pool)] * static_cast<double>(replicas * tensor);
    if (group.micro_batch % problem.device_samples[u] != 0 || replicas > most / tensor ||
        replicas * tensor < problem.least_stage_devices ||
        replicas % problem.strategies[w].expert != 0) {
      return;
    }
    for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
      const GraphPipeCost& cost = problem.kinds[k][w];
      const double passes_s =
          (cost.forward_s[u] + cost.backward_s[u]) / static_cast<double>(group.micro_batch);
      work_s[k] = std::min(work_s[k], passes_s * weighed);
      time_s[k] = std::min(time_s[k], passes_s);
    }
  };
  for (const PassGroup& group : groups) {
    for (std::size_t w = 0; w < problem.strategies.size(); ++w) {
      for (std::size_t u = 0; u < problem.device_samples.size(); ++u) put(group, w, u);
    }
  }
  double longest_s = 0, all_s = 0;
  for (const std::int32_t kind : problem.nodes) {
    longest_s = std::max(longest_s, time_s[at(kind)]);
    all_s += work_s[at(kind)];
  }
  const auto devices = static_cast<double>(graphpipe_weighed_devices(problem));
  return std::max(longest_s, all_s / devices) * kBelowTolerance;
}

}  // namespace

GraphPipeBottleneckSearch::GraphPipeBottleneckSearch(const GraphPipeProblem& problem,
                                                     const GraphPipeShapes& form,
                                                     std::vector<PassGroup> groups)
    : problem_(problem),
      form_(form),
      groups_(std::move(groups)),
      bound_s_(bound_s(problem, groups_)) {}

GraphPipeTargetSearch& GraphPipeBottleneckSearch::search() {
  if (!search_) search_ = std::make_unique<GraphPipeTargetSearch>(problem_, form_, groups_);
  return *search_;
}

double GraphPipeBottleneckSearch::quick_time_s(double limit_s) {
  quick_s_ = relaxed_s_ = kInfinity;
  if (bound_s_ >= limit_s || !search().has_devices(std::nextafter(limit_s, 0.0))) return kInfinity;
  const auto relaxed = [&](double time_s) { return has_relaxed(time_s); };
  const auto possible = [&](double time_s) { return find(time_s, GraphPipeEffort::quick); };
  // Fewest devices first, then with the copies that stages send each other, then with all that is
  // in flight: each a bound on the next, and mostly all there is to it.
  Times times_s = search().runs().fastest_s(bound_s_, limit_s);
  const auto floor = first_of(times_s, 0, times_s.size(),
                              [&](double time_s) { return search().has_devices(time_s); });
  if (floor == times_s.size()) return kInfinity;
  const double least_s = times_s[floor];
  if (relaxed(least_s) && possible(least_s)) return quick_s_ = relaxed_s_ = least_s;
  times_s = search().runs().attained_s(least_s, limit_s);
  const auto bound = soon_of(times_s, 0, relaxed);
  if (bound == times_s.size()) return kInfinity;
  relaxed_s_ = times_s[bound];
  longest_s_ = *std::max_element(times_s.begin(), times_s.end());
  const auto full = soon_of(times_s, bound, possible);
  return quick_s_ = full == times_s.size() ? kInfinity : times_s[full];
}

double GraphPipeBottleneckSearch::least_time_s(double limit_s) {
  if (relaxed_s_ < 0) quick_time_s(limit_s);
  if (problem_.in_flight == InFlight::table || relaxed_s_ > limit_s) return quick_s_;
  double high_s = std::min(quick_s_, limit_s);
  if (high_s == kInfinity) {
    if (relaxed_s_ == kInfinity) return kInfinity;
    // A path through all stages takes each one's passes and twice its transfer, none of which takes
    // longer than its time: at such a rate no stage has more in flight than a sink.
    high_s = 3 * longest_s_ * static_cast<double>(problem_.nodes.size());
  }
  return least_below_s(relaxed_s_, high_s);
}

/// The least rate, `low_s` at least, below `high_s` or, if plans were found last at that, that;
/// infinite if there is none.
double GraphPipeBottleneckSearch::least_below_s(double low_s, double high_s) {
  const auto possible = [&](double time_s) {
    return find(time_s, GraphPipeEffort::quick) || find(time_s, GraphPipeEffort::full);
  };
  Times times_s;
  bool near = true, first = true;
  // Right below, which mostly ends it, then among the times that stages attain, then anywhere.
  const auto next = [&](const ThresholdRange& range) -> std::optional<double> {
    if (!(range.high > range.low * kAboveTolerance)) return std::nullopt;
    const double below_s = range.high * kBelowTolerance;
    std::erase_if(times_s, [&](double t) { return t <= range.low || t >= below_s; });
    if (times_s.empty()) return std::exchange(near, !near) ? below_s : range.middle();
    const std::size_t middle = times_s.size() / 2;
    std::nth_element(times_s.begin(), place(times_s, middle), times_s.end());
    return times_s[middle];
  };
  const auto attempt = [&](double time_s) -> std::optional<double> {
    const bool is_first = std::exchange(first, false);
    if (!possible(time_s)) return std::nullopt;
    // The plan found may do with less.
    double enough_s = time_s;
    const double rate_s = rate_of_found_s();
    if (rate_s < time_s && possible(rate_s)) enough_s = rate_s;
    if (is_first) times_s = search().runs().attained_s(low_s, enough_s);
    near = near || !times_s.empty();
    return enough_s;
  };
  high_s = least_threshold({low_s, high_s}, next, attempt).high;
  return found_s_ == high_s ? high_s : kInfinity;
}

bool GraphPipeBottleneckSearch::may_pass_in(double time_s) {
  return bound_s_ < time_s && search().has_devices(std::nextafter(time_s, 0.0), true);
}

bool GraphPipeBottleneckSearch::find(double time_s, GraphPipeEffort effort) {
  GraphPipeFrontier found = search().plans_at(time_s, effort);
  if (found.empty()) return false;
  found_s_ = time_s;
  found_ = std::move(found);
  search().swap_choices(choices_);
  return true;
}

GraphPipeSolution GraphPipeBottleneckSearch::shortest_found() const {
  const auto best =
      std::min_element(found_.begin(), found_.end(),
                       [](const auto& a, const auto& b) { return a.round_s < b.round_s; });
  GraphPipeSolution solution;
  solution.stages = read_graphpipe_plan(problem_, form_, groups_, choices_, best->choice);
  return solution;
}

double GraphPipeBottleneckSearch::rate_of_found_s() const {
  GraphPipeSolution solution = shortest_found();
  return graphpipe_rate_s(problem_, solution, found_s_);
}

std::optional<GraphPipeSolution> GraphPipeBottleneckSearch::plan_at(
    double time_s, const GraphPipeProblem& priced) {
  if (time_s != found_s_ && !find(time_s, GraphPipeEffort::quick)) return std::nullopt;
  GraphPipeSolution solution = shortest_found();
  const bool fits = price_graphpipe(priced, solution, time_s);
  solution.status = fits ? Status::optimal : Status::feasible;
  solution.cuts = form_.cuts;
  return solution;
}

bool GraphPipeBottleneckSearch::has_relaxed(double time_s) {
  return time_s >= bound_s_ && !search().plans_at(time_s, GraphPipeEffort::relaxed).empty();
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
