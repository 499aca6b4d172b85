#include "braid/planners/graphpipe_exact.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "braid/base/error.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Set = std::uint64_t;  ///< Of nodes, one bit each.

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

bool has(Set set, std::size_t node) { return (set >> node & 1U) != 0; }

/// Nodes as a stage of one group: what it costs with each number of samples per device.
struct ExactStage {
  std::vector<std::int32_t> nodes;
  std::vector<double> time_s;  ///< [index in device_samples]; infinite: not possible.
  double fixed_bytes = 0, stash_bytes = 0, working_bytes = 0;
};

/// Stages for a set that is closed under successors.
struct Label {
  std::int64_t devices = 0;
  /// [node]: samples in flight of its stage, if a node outside of the set hands over to it; else 0.
  std::array<std::int64_t, kMostExactNodes> in_flight{};
  std::size_t stage = 0;  ///< Added last, …
  std::size_t samples = 0;
  std::size_t before = 0;  ///< … to this set, …
  std::size_t parent = 0;  ///< … of which it was this label.
};

/// A stage that makes a larger closed set of a smaller one.
struct Growth {
  std::size_t larger = 0;  ///< Set: index.
  std::size_t stage = 0;   ///< In ClosedSets::stages.
};

/// The closed sets of a graph, smaller ones first, and how they grow by a stage.
class ClosedSets {
 public:
  explicit ClosedSets(const GraphPipeProblem& problem) {
    std::vector<Set> successors(problem.nodes.size(), 0);
    for (const GraphPipeEdge& edge : problem.edges) {
      successors[at(edge.source)] |= Set{1} << edge.target;
    }
    std::set<Set> seen = {0};
    sets = {0};
    for (std::size_t i = 0; i < sets.size(); ++i) {
      for (std::size_t v = 0; v < successors.size(); ++v) {
        const Set more = sets[i] | Set{1} << v;
        if (has(sets[i], v) || (successors[v] & ~sets[i]) != 0) continue;
        if (seen.insert(more).second) sets.push_back(more);
      }
      check(sets.size(), kMostExactSets, "sets of nodes closed under successors");
    }
    growths.resize(sets.size());
    std::map<Set, std::size_t> known;
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      for (std::size_t j = i + 1; j < sets.size(); ++j) {
        if ((sets[i] & ~sets[j]) != 0) continue;
        const Set nodes = sets[j] & ~sets[i];
        const auto [stage, added] = known.try_emplace(nodes, stages.size());
        if (added) stages.push_back(nodes);
        growths[i].push_back({j, stage->second});
      }
      check(pairs += growths[i].size(), kMostExactPairs, "pairs of nested sets of nodes");
    }
  }

  std::vector<Set> sets;
  std::vector<std::vector<Growth>> growths;  ///< [set]
  std::vector<Set> stages;                   ///< Nodes of each.

 private:
  static void check(std::size_t count, std::size_t most, const char* what) {
    if (count <= most) return;
    throw Error("the graph has more than " + std::to_string(most) + ' ' + what +
                    ", too many for the exact search over its stages",
                "search series-parallel stages (--graph sp), or group operators into fewer layers");
  }
};

class ExactSearch {
 public:
  ExactSearch(const GraphPipeProblem& problem, const ClosedSets& closed, const PassGroup& group)
      : problem_(problem), closed_(closed), group_(group) {
    stages_.reserve(closed.stages.size());
    for (const Set nodes : closed.stages) stages_.push_back(stage_of(nodes));
    find_work();
  }

  /// Of stages, ascending, below `limit_s` and long enough for the devices to do all work.
  std::vector<double> times_s(double limit_s) const {
    const double least_s = work_s_.front() / static_cast<double>(problem_.devices) * (1 - 1e-9);
    std::vector<double> times_s;
    for (const ExactStage& stage : stages_) {
      for (const double time_s : stage.time_s) {
        if (time_s >= least_s && time_s < limit_s) times_s.push_back(time_s);
      }
    }
    std::sort(times_s.begin(), times_s.end());
    times_s.erase(std::unique(times_s.begin(), times_s.end()), times_s.end());
    return times_s;
  }

  /// A plan whose stages keep this time, if there is one.
  std::optional<GraphPipeSolution> plan_at(double time_s) {
    labels_.assign(closed_.sets.size(), {});
    labels_[0].emplace_back();
    for (std::size_t i = 0; i < closed_.sets.size(); ++i) {
      for (std::size_t l = 0; l < labels_[i].size(); ++l) {
        for (const Growth& growth : closed_.growths[i]) put(i, l, growth, time_s);
      }
    }
    if (labels_.back().empty()) return std::nullopt;
    GraphPipeSolution solution;
    std::size_t index = 0;
    for (std::size_t set = closed_.sets.size() - 1; set != 0;) {
      const Label& label = labels_[set][index];
      GraphPipeStage stage;
      stage.nodes = stages_[label.stage].nodes;
      stage.group = group_;
      stage.devices = group_.micro_batch / problem_.device_samples[label.samples];
      solution.stages.push_back(std::move(stage));
      set = label.before;
      index = label.parent;
    }
    return solution;
  }

  std::int64_t work() const { return work_; }

 private:
  ExactStage stage_of(Set nodes) const {
    ExactStage stage;
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      if (!has(nodes, v)) continue;
      const GraphPipeKind& kind = problem_.kinds[at(problem_.nodes[v])];
      stage.nodes.push_back(static_cast<std::int32_t>(v));
      stage.fixed_bytes += kind.fixed_bytes;
      stage.stash_bytes += kind.stash_bytes;
      stage.working_bytes = std::max(stage.working_bytes, kind.working_bytes);
    }
    for (const std::int64_t samples : problem_.device_samples) {
      stage.time_s.push_back(kInfinity);
      GraphPipeStage form;
      form.nodes = stage.nodes;
      form.group = group_;
      form.devices = group_.micro_batch / samples;
      if (group_.micro_batch % samples != 0 || form.devices < problem_.least_stage_devices ||
          form.devices > std::min(problem_.devices, problem_.most_stage_devices)) {
        continue;
      }
      stage.time_s.back() = graphpipe_stage_time_s(problem_, form);
    }
    return stage;
  }

  /// For every closed set the least device-seconds per sample of all nodes outside of it: what no
  /// stage of them can do with less.
  void find_work() {
    std::vector<double> node_s(problem_.nodes.size(), kInfinity);
    for (std::size_t v = 0; v < node_s.size(); ++v) {
      const GraphPipeKind& kind = problem_.kinds[at(problem_.nodes[v])];
      for (std::size_t u = 0; u < problem_.device_samples.size(); ++u) {
        node_s[v] = std::min(node_s[v], (kind.forward_s[u] + kind.backward_s[u]) /
                                            static_cast<double>(problem_.device_samples[u]));
      }
    }
    work_s_.reserve(closed_.sets.size());
    for (const Set set : closed_.sets) {
      double work_s = 0;
      for (std::size_t v = 0; v < node_s.size(); ++v) work_s += has(set, v) ? 0 : node_s[v];
      work_s_.push_back(work_s);
    }
  }

  bool no_worse(const Label& a, const Label& b) const {
    return a.devices <= b.devices &&
           std::equal(a.in_flight.begin(),
                      a.in_flight.begin() + static_cast<std::ptrdiff_t>(problem_.nodes.size()),
                      b.in_flight.begin(), std::less_equal<>());
  }

  /// Puts the stage between two closed sets before a label of the smaller one, on the fewest
  /// devices that keep time and memory: nothing else depends on them.
  void put(std::size_t before, std::size_t parent, const Growth& growth, double time_s) {
    const ExactStage& stage = stages_[growth.stage];
    const Label& from = labels_[before][parent];
    const auto spare =
        static_cast<double>(problem_.devices) - work_s_[growth.larger] / time_s * (1 - 1e-9);
    std::optional<std::int64_t> in_flight;
    for (std::size_t u = stage.time_s.size(); u-- > 0;) {
      if (stage.time_s[u] > time_s) continue;
      const std::int64_t devices = group_.micro_batch / problem_.device_samples[u];
      if (static_cast<double>(from.devices + devices) > spare) return;
      ++work_;
      if (!in_flight) in_flight = in_flight_of(growth, before, from);
      if (graphpipe_memory_bytes(std::min(*in_flight, problem_.batch), devices, group_.micro_batch,
                                 stage.fixed_bytes, stage.stash_bytes,
                                 stage.working_bytes) > problem_.memory_bytes) {
        continue;
      }
      Label made;
      made.devices = from.devices + devices;
      const Set after = closed_.sets[growth.larger];
      const Set nodes = closed_.stages[growth.stage];
      for (const GraphPipeEdge& edge : problem_.edges) {
        if (has(after, at(edge.source)) || !has(after, at(edge.target))) continue;
        made.in_flight[at(edge.target)] =
            has(nodes, at(edge.target)) ? *in_flight : from.in_flight[at(edge.target)];
      }
      made.stage = growth.stage;
      made.samples = u;
      made.before = before;
      made.parent = parent;
      std::vector<Label>& labels = labels_[growth.larger];
      const auto useless = [&](const Label& other) { return no_worse(other, made); };
      if (std::any_of(labels.begin(), labels.end(), useless)) return;
      std::erase_if(labels, [&](const Label& other) { return no_worse(made, other); });
      labels.push_back(made);
      return;
    }
  }

  /// Samples in flight of the stage put before a label.
  std::int64_t in_flight_of(const Growth& growth, std::size_t before, const Label& from) const {
    const Set nodes = closed_.stages[growth.stage];
    const Set behind = closed_.sets[before];
    std::int64_t in_flight = group_.k * group_.micro_batch;
    for (const GraphPipeEdge& edge : problem_.edges) {
      if (!has(nodes, at(edge.source)) || !has(behind, at(edge.target))) continue;
      in_flight =
          std::max(in_flight, table_in_flight(group_, group_, from.in_flight[at(edge.target)]));
    }
    return in_flight;
  }

  const GraphPipeProblem& problem_;
  const ClosedSets& closed_;
  PassGroup group_;
  std::vector<ExactStage> stages_;          ///< As in closed_.
  std::vector<double> work_s_;              ///< [set]
  std::vector<std::vector<Label>> labels_;  ///< [set]
  std::int64_t work_ = 0;
};

void check_exact(const GraphPipeProblem& problem) {
  check_graphpipe_problem(problem);
  if (problem.mixed || problem.in_flight != InFlight::table) {
    throw Error("the exact search has one micro-batch size and the table's samples in flight");
  }
  if (problem.nodes.size() > kMostExactNodes) {
    throw Error("the exact search takes at most " + std::to_string(kMostExactNodes) +
                    " nodes, not " + std::to_string(problem.nodes.size()),
                "group operators into fewer layers");
  }
}

}  // namespace

GraphPipeSolution solve_graphpipe_exactly(const GraphPipeProblem& problem, double limit_s) {
  check_exact(problem);
  const ClosedSets closed(problem);
  GraphPipeSolution best;
  std::int64_t work = 0;
  for (const PassGroup& group : problem.groups) {
    ExactSearch search(problem, closed, group);
    const std::vector<double> times_s = search.times_s(limit_s);
    const auto possible = [&](double time_s) { return search.plan_at(time_s).has_value(); };
    const auto first = std::partition_point(times_s.begin(), times_s.end(),
                                            [&](double time_s) { return !possible(time_s); });
    std::optional<GraphPipeSolution> found;
    if (first != times_s.end()) found = search.plan_at(*first);
    work += search.work();
    if (!found) continue;
    price_graphpipe(problem, *found);
    found->status = Status::optimal;
    limit_s = found->time_s;
    best = std::move(*found);
  }
  best.work = work;
  return best;
}

}  // namespace braid
