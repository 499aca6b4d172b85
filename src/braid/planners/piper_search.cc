#include "braid/planners/piper_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "braid/base/error.h"
#include "braid/graph/downsets.h"
#include "braid/planners/piper_tables.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Thresholds closer than this, relatively, are not told apart.
constexpr double kSameTime = 1e-11;

/// Stages for a suffix.
struct State {
  std::int64_t devices = 0;
  std::int64_t suffix = 0;  ///< Sum of data-parallel degrees.
  std::int32_t set = 0;     ///< The suffix.
  std::int32_t rest = -1;   ///< State after its first stage.
  std::int32_t degree = 0;  ///< Of the first stage; index in the tables.
  std::int32_t dp = 0;      ///< The same.
  std::int64_t in_flight = 0;
};

/// At least x, but for rounding.
std::int64_t ceil_of(double x) {
  return static_cast<std::int64_t>(std::ceil(x * (1 - 1e-12) - 1e-12));
}

class Search {
 public:
  Search(const PiperProblem& problem, PiperTables& tables, std::int64_t most_work)
      : problem_(problem), tables_(tables), most_work_(most_work) {
    most_suffix_ = std::min(problem.devices, problem.micro_batches);
    simple_ = problem.rules.knapsack == PiperKnapsack::exact;
    const std::size_t sets = tables.size();
    if (sets <= 1500) cached_.assign(sets * sets * tables.degrees().size(), {});
  }

  /// Stages that keep the threshold; empty when there are none or the work is used up.
  std::optional<std::vector<PiperStage>> at_most(double limit);
  bool proven() const { return proven_; }
  bool exhausted() const { return most_work_ > 0 && work_ >= most_work_; }
  std::int64_t work() const { return work_; }

 private:
  const PiperStageSums& stage_of(std::size_t inner, std::size_t outer, std::int32_t degree);
  void extend(const State& rest, std::int32_t number, const PiperStageSums& stage, double limit);
  void keep(const State& state);
  bool is_dominated(std::int64_t devices, std::int64_t suffix) const;
  bool memory_may_fit(const PiperStageSums& stage, std::int64_t suffix, std::size_t dp);
  std::vector<PiperStage> trace(std::int32_t number);

  const PiperProblem& problem_;
  PiperTables& tables_;
  std::int64_t most_work_, most_suffix_, work_ = 0;
  bool simple_ = true, proven_ = true;
  std::vector<State> states_;
  std::vector<std::size_t> begin_;  ///< States of each suffix.
  std::vector<State> front_;        ///< Of the suffix at hand.
  std::int64_t most_devices_here_ = 0, most_suffix_here_ = 0;
  struct Cached {
    bool known = false;
    PiperStageSums sums;
  };
  std::vector<Cached> cached_;
  PiperStageSums uncached_;
};

const PiperStageSums& Search::stage_of(std::size_t inner, std::size_t outer, std::int32_t degree) {
  if (cached_.empty()) {
    uncached_ = tables_.sums(inner, outer, degree);
    return uncached_;
  }
  Cached& entry = cached_[(outer * tables_.size() + inner) * tables_.degrees().size() +
                          static_cast<std::size_t>(degree)];
  if (!entry.known) entry = {true, tables_.sums(inner, outer, degree)};
  return entry.sums;
}

bool Search::is_dominated(std::int64_t devices, std::int64_t suffix) const {
  return std::any_of(front_.begin(), front_.end(), [&](const State& state) {
    return state.devices <= devices && state.suffix <= suffix;
  });
}

void Search::keep(const State& state) {
  std::erase_if(front_, [&](const State& other) {
    return state.devices <= other.devices && state.suffix <= other.suffix;
  });
  front_.push_back(state);
}

void Search::extend(const State& rest, std::int32_t number, const PiperStageSums& stage,
                    double limit) {
  const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(stage.degree)];
  const auto dps = tables_.dp_degrees();
  // Shares fall: the first degree that is fast enough.
  std::size_t low = 0, high = dps.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (tables_.share(middle) * stage.time > limit) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const auto in_flight_with = [&](std::size_t dp) {
    return 1 + (rest.suffix + dps[dp] - 1) / dps[dp];
  };
  const double fits_bytes = problem_.memory_bytes * (1 + 1e-12);
  bool memory_checked = false;
  for (std::size_t dp = low; dp < dps.size(); ++dp) {
    const std::int64_t devices = rest.devices + dps[dp] * tp;
    std::int64_t suffix = rest.suffix + dps[dp];
    if (devices > most_devices_here_ || suffix > most_suffix_here_ ||
        is_dominated(devices, suffix)) {
      return;
    }
    ++work_;
    const double time = tables_.share(dp) * stage.time + tables_.sync_factor(dp) * stage.sync_time;
    if (time > limit) continue;
    std::int64_t in_flight = in_flight_with(dp);
    const auto accept = [&] {
      keep({devices, suffix, stage.outer, number, stage.degree, static_cast<std::int32_t>(dp),
            in_flight});
    };
    if (tables_.is_simple(stage.degree) &&
        stage.in_flight_bytes * static_cast<double>(in_flight) + stage.fixed_bytes <= fits_bytes) {
      accept();
      return;
    }
    if (tables_.least_memory(stage, in_flight) > fits_bytes * (1 + 1e-12)) {
      if (memory_checked) continue;
      // Fewer are in flight with more replicas: go on with the first degree that may fit.
      std::size_t first = dp + 1, last = dps.size();
      while (first < last) {
        const std::size_t middle = (first + last) / 2;
        if (tables_.least_memory(stage, in_flight_with(middle)) > fits_bytes * (1 + 1e-12)) {
          first = middle + 1;
        } else {
          last = middle;
        }
      }
      memory_checked = true;
      dp = first - 1;
      continue;
    }
    const KnapsackAnswer answer = tables_.fits(stage, dp, in_flight, limit);
    if (answer == KnapsackAnswer::unknown) proven_ = false;
    if (answer == KnapsackAnswer::yes) {
      accept();
      return;
    }
    if (simple_) continue;
    // The heuristic may do better with more in flight than there are.
    const std::int64_t most = (most_suffix_here_ + dps[dp] - 1) / dps[dp];
    for (++in_flight; in_flight <= most; ++in_flight) {
      if (tables_.least_memory(stage, in_flight) > fits_bytes) break;
      if (tables_.fits(stage, dp, in_flight, limit) != KnapsackAnswer::yes) continue;
      suffix = std::max(suffix, (in_flight - 1) * dps[dp] + 1);
      if (!is_dominated(devices, suffix)) accept();
      break;
    }
  }
}

std::optional<std::vector<PiperStage>> Search::at_most(double limit) {
  const std::size_t sets = tables_.size();
  const auto degrees = static_cast<std::int32_t>(tables_.degrees().size());
  states_.assign(1, State{});
  begin_.assign({0, 1});
  const double all_work = tables_.least_work(sets - 1), all_time = tables_.least_time(sets - 1);
  for (std::size_t outer = 1; outer < sets; ++outer) {
    front_.clear();
    const double work_before = all_work - tables_.least_work(outer);
    const double time_before = all_time - tables_.least_time(outer);
    most_devices_here_ = problem_.devices - ceil_of(work_before / limit);
    most_suffix_here_ = most_suffix_ - ceil_of(time_before / limit);
    for (std::size_t inner = 0; inner < outer && !exhausted(); ++inner) {
      if (begin_[inner] == begin_[inner + 1] || !tables_.is_subset(inner, outer)) continue;
      for (std::int32_t degree = 0; degree < degrees; ++degree) {
        const PiperStageSums& stage = stage_of(inner, outer, degree);
        if (!stage.possible) continue;
        for (std::size_t s = begin_[inner]; s < begin_[inner + 1]; ++s) {
          const State rest = states_[s];
          extend(rest, static_cast<std::int32_t>(s), stage, limit);
        }
      }
    }
    std::sort(front_.begin(), front_.end(),
              [](const State& a, const State& b) { return a.devices < b.devices; });
    states_.insert(states_.end(), front_.begin(), front_.end());
    begin_.push_back(states_.size());
  }
  if (begin_[sets - 1] == begin_[sets]) return std::nullopt;
  return trace(static_cast<std::int32_t>(begin_[sets - 1]));
}

std::vector<PiperStage> Search::trace(std::int32_t number) {
  std::vector<PiperStage> stages;
  while (states_[static_cast<std::size_t>(number)].rest >= 0) {
    const State& state = states_[static_cast<std::size_t>(number)];
    const State& rest = states_[static_cast<std::size_t>(state.rest)];
    const PiperStageSums sums = stage_of(static_cast<std::size_t>(rest.set),
                                         static_cast<std::size_t>(state.set), state.degree);
    bool proven = true;
    stages.push_back(
        tables_.choose(sums, static_cast<std::size_t>(state.dp), state.in_flight, proven));
    number = state.rest;
  }
  std::int64_t suffix = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    suffix += stages[i].dp;
    stages[i].suffix = suffix;
    price_piper_stage(problem_, stages[i]);
  }
  return stages;
}

double slowest(const std::vector<PiperStage>& stages) {
  double time = 0;
  for (const PiperStage& stage : stages) time = std::max(time, stage.time);
  return time;
}

/// Improves `solution` (its stages may be empty: none is known) over the suffixes of `tables`.
void improve(const PiperProblem& problem, PiperTables& tables, const PiperSearchLimits& limits,
             PiperSolution& solution) {
  Search search(problem, tables, limits.work);
  const std::size_t whole = tables.size() - 1;
  double low = std::max(tables.least_layer_time(),
                        tables.least_work(whole) / static_cast<double>(problem.devices));
  low = std::max(low, tables.least_time(whole) /
                          static_cast<double>(std::min(problem.devices, problem.micro_batches)));
  low *= 1 - kSameTime;  // Not excluded yet, only everything below.
  double high = solution.stages.empty() ? kInfinity : solution.time;
  const auto attempt = [&](double limit) {
    auto stages = search.at_most(limit);
    if (!stages) {
      if (!search.exhausted()) low = std::max(low, limit);
      return false;
    }
    const double time = slowest(*stages);
    if (time < high) {
      high = time;
      solution.stages = std::move(*stages);
    } else {
      low = std::max(low, limit);  // Rounding: what was found is what is known.
    }
    return true;
  };
  if (solution.stages.empty()) {
    double step = 0.02;
    while (high == kInfinity && step < 1e6 && low > 0 && !search.exhausted()) {
      attempt(low * (1 + step));
      step *= 4;
    }
    if (high == kInfinity && !search.exhausted()) attempt(kInfinity);
  } else {
    attempt(high * (1 - kSameTime));
  }
  if (high < kInfinity) {
    while (low < high * (1 - kSameTime) && !search.exhausted()) {
      const bool close = low > high * (1 - 1e-4);
      attempt(close || low <= 0 ? high * (1 - kSameTime) : std::sqrt(low * high));
    }
    solution.time = high;
    solution.status = search.exhausted() || !search.proven() ? Status::feasible : Status::optimal;
    solution.bound = search.exhausted() || !search.proven() ? low : high;
  } else {
    solution.status = search.exhausted() ? Status::budget_exhausted : Status::infeasible;
  }
  solution.work += search.work();
}

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
  solution.downsets = static_cast<std::int64_t>(prefixes.size());
  PiperTables tables(problem, prefixes);
  improve(problem, tables, limits, solution);
  return solution;
}

std::optional<std::vector<PiperStage>> feasible_stages(const PiperProblem& problem,
                                                       const PiperSearchLimits& limits) {
  if (layer_without_option(problem) >= 0) return std::nullopt;
  PiperTables tables(problem, prefixes_of(problem, limits));
  return Search(problem, tables, limits.work).at_most(kInfinity);
}

}  // namespace braid
