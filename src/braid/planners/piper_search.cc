#include "braid/planners/piper_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "braid/base/error.h"
#include "braid/graph/downsets.h"
#include "braid/planners/piper_threshold.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Thresholds closer than this, relatively, are not told apart.
constexpr double kSameTime = 1e-11;
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
      : threshold_(problem, tables, limits.work), solution_(solution) {
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
    for (double step = 1e-3; high_ == kInfinity && step < 1e6 && low_ > 0; step *= 4) {
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
  PiperSolution& solution_;
  double low_ = 0, high_ = kInfinity;
};

/// The first layer without an option for so few devices; -1 when every layer has one.
std::int32_t layer_without_option(const PiperProblem& problem) {
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const std::vector<PiperDegree>& degrees = problem.nodes[v].degrees;
    if (degrees.empty() || degrees.front().tp > problem.devices) {
      return static_cast<std::int32_t>(v);
    }
  }
  return -1;
}

/// The layers in topological order: of those that are ready the first, the last, the one that has
/// been so longest, or shortest.
std::vector<std::int32_t> order_of(const PiperProblem& problem, int choice) {
  std::vector<std::vector<std::int32_t>> successors(problem.nodes.size());
  std::vector<std::int32_t> waits(problem.nodes.size(), 0), ready, order;
  for (const PiperEdge& edge : problem.edges) {
    successors[static_cast<std::size_t>(edge.source)].push_back(edge.target);
    ++waits[static_cast<std::size_t>(edge.target)];
  }
  for (std::size_t v = 0; v < waits.size(); ++v) {
    if (waits[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
  }
  while (!ready.empty()) {
    const auto next = choice == 0   ? std::min_element(ready.begin(), ready.end())
                      : choice == 1 ? std::max_element(ready.begin(), ready.end())
                      : choice == 2 ? ready.begin()
                                    : ready.end() - 1;
    const std::int32_t v = *next;
    ready.erase(next);
    order.push_back(v);
    for (const std::int32_t w : successors[static_cast<std::size_t>(v)]) {
      if (--waits[static_cast<std::size_t>(w)] == 0) ready.push_back(w);
    }
  }
  return order;
}

/// The downsets that some topological orders pass through, ordered as downsets() orders them.
std::vector<Bitset> prefixes_of_orders(const PiperProblem& problem) {
  std::vector<Bitset> prefixes;
  for (const int choice : {0, 1, 2, 3}) {
    Bitset prefix(problem.nodes.size());
    prefixes.push_back(prefix);
    for (const std::int32_t v : order_of(problem, choice)) {
      prefix.set(static_cast<std::size_t>(v));
      prefixes.push_back(prefix);
    }
  }
  std::sort(prefixes.begin(), prefixes.end(), [](const Bitset& a, const Bitset& b) {
    const std::size_t in_a = a.count(), in_b = b.count();
    return in_a != in_b ? in_a < in_b : a < b;
  });
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  return prefixes;
}

std::vector<Bitset> prefixes_of(const PiperProblem& problem, const PiperSearchLimits& limits) {
  const std::size_t nodes = problem.nodes.size();
  if (problem.one_stage) {
    Bitset all(nodes);
    for (std::size_t v = 0; v < nodes; ++v) all.set(v);
    return {Bitset(nodes), all};
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  for (const PiperEdge& edge : problem.edges) edges.emplace_back(edge.source, edge.target);
  auto found = downsets(make_dag(nodes, edges), limits.downsets);
  if (!found) {
    throw Error("the layer graph has more than " + std::to_string(limits.downsets) +
                    " downsets: too many parallel branches",
                "merge layers of parallel branches");
  }
  return std::move(*found);
}

}  // namespace

PiperSolution solve_piper(const PiperProblem& problem, const PiperSearchLimits& limits) {
  PiperSolution solution;
  if (layer_without_option(problem) >= 0) return solution;
  const std::vector<Bitset> prefixes = prefixes_of(problem, limits);
  if (prefixes.size() > kManyDownsets) {
    // Few of them mostly hold the optimum, and proving it is easier than finding it.
    PiperTables few(problem, prefixes_of_orders(problem));
    Bisection(problem, few, limits, solution).run();
  }
  solution.downsets = static_cast<std::int64_t>(prefixes.size());
  PiperTables tables(problem, prefixes);
  Bisection(problem, tables, limits, solution).run();
  return solution;
}

std::optional<std::vector<PiperStage>> feasible_stages(const PiperProblem& problem,
                                                       const PiperSearchLimits& limits) {
  if (layer_without_option(problem) >= 0) return std::nullopt;
  PiperTables tables(problem, prefixes_of(problem, limits));
  PiperThreshold threshold(problem, tables, limits.work);
  if (!threshold.may_keep(kInfinity)) return std::nullopt;
  auto stages = threshold.bounding_stages(kInfinity);
  return stages ? stages : threshold.keep(kInfinity);
}

}  // namespace braid
