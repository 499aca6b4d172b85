#include "braid/planners/graphpipe_exact.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "braid/base/error.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostSets = 4096;
constexpr std::size_t kMostPairs = std::size_t{1} << 20;

using Set = std::uint32_t;  ///< Of nodes, one bit each.

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
  Set stage = 0;  ///< Added last …
  std::size_t samples = 0;
  Set before = 0;          ///< … to this set, …
  std::size_t parent = 0;  ///< … of which it was this label.
};

bool no_worse(const Label& a, const Label& b) {
  if (a.devices > b.devices) return false;
  for (std::size_t v = 0; v < kMostExactNodes; ++v) {
    if (a.in_flight[v] > b.in_flight[v]) return false;
  }
  return true;
}

/// The closed sets of a graph, smaller ones first, and for each those that contain it.
class ClosedSets {
 public:
  explicit ClosedSets(const GraphPipeProblem& problem) {
    std::vector<Set> successors(problem.nodes.size(), 0);
    for (const GraphPipeEdge& edge : problem.edges) {
      successors[at(edge.source)] |= Set{1} << edge.target;
    }
    std::map<Set, bool> seen = {{0, true}};
    sets = {0};
    for (std::size_t i = 0; i < sets.size(); ++i) {
      for (std::size_t v = 0; v < successors.size(); ++v) {
        const Set more = sets[i] | Set{1} << v;
        if (has(sets[i], v) || (successors[v] & ~sets[i]) != 0) continue;
        if (seen.try_emplace(more, true).second) sets.push_back(more);
      }
      check(sets.size(), kMostSets);
    }
    larger.resize(sets.size());
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      for (std::size_t j = i + 1; j < sets.size(); ++j) {
        if ((sets[i] & ~sets[j]) == 0) larger[i].push_back(j);
      }
      check(pairs += larger[i].size(), kMostPairs);
    }
  }

  std::vector<Set> sets;
  std::vector<std::vector<std::size_t>> larger;  ///< [set]: indices.

 private:
  static void check(std::size_t count, std::size_t most) {
    if (count <= most) return;
    throw Error("the graph has too many sets of nodes for the exact search",
                "group its operators into fewer layers");
  }
};

class ExactSearch {
 public:
  ExactSearch(const GraphPipeProblem& problem, const ClosedSets& closed, const PassGroup& group)
      : problem_(problem), closed_(closed), group_(group) {
    for (std::size_t i = 0; i < closed.sets.size(); ++i) {
      for (const std::size_t j : closed.larger[i]) {
        const Set nodes = closed.sets[j] & ~closed.sets[i];
        const auto [stage, added] = stages_.try_emplace(nodes);
        if (added) stage->second = stage_of(nodes);
      }
    }
  }

  std::vector<double> times_s() const {
    std::vector<double> times_s;
    for (const auto& [nodes, stage] : stages_) {
      for (const double time_s : stage.time_s) {
        if (time_s < kInfinity) times_s.push_back(time_s);
      }
    }
    std::sort(times_s.begin(), times_s.end());
    times_s.erase(std::unique(times_s.begin(), times_s.end()), times_s.end());
    return times_s;
  }

  /// A plan whose stages keep this time, if there is one.
  std::optional<GraphPipeSolution> plan_at(double time_s) {
    std::map<Set, std::vector<Label>> labels;
    labels[0].emplace_back();
    for (std::size_t i = 0; i < closed_.sets.size(); ++i) {
      const Set before = closed_.sets[i];
      for (std::size_t l = 0; l < labels[before].size(); ++l) {
        for (const std::size_t j : closed_.larger[i]) {
          const Label from = labels[before][l];
          put(from, before, l, closed_.sets[j], time_s, labels[closed_.sets[j]]);
        }
      }
    }
    Set whole = closed_.sets.back();
    if (labels[whole].empty()) return std::nullopt;
    GraphPipeSolution solution;
    for (std::size_t index = 0; whole != 0;) {
      const Label& label = labels[whole][index];
      GraphPipeStage stage;
      stage.nodes = stages_.at(label.stage).nodes;
      stage.group = group_;
      stage.devices = group_.micro_batch / problem_.device_samples[label.samples];
      solution.stages.push_back(std::move(stage));
      whole = label.before;
      index = label.parent;
    }
    return solution;
  }

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

  /// Puts the stage between two closed sets before a label of the smaller one, on the fewest
  /// devices that keep time and memory: nothing else depends on them.
  void put(const Label& from, Set before, std::size_t parent, Set after, double time_s,
           std::vector<Label>& labels) const {
    const Set nodes = after & ~before;
    const ExactStage& stage = stages_.at(nodes);
    std::int64_t in_flight = group_.k * group_.micro_batch;
    for (const GraphPipeEdge& edge : problem_.edges) {
      if (!has(nodes, at(edge.source)) || !has(before, at(edge.target))) continue;
      in_flight =
          std::max(in_flight, table_in_flight(group_, group_, from.in_flight[at(edge.target)]));
    }
    for (std::size_t u = stage.time_s.size(); u-- > 0;) {
      if (stage.time_s[u] > time_s) continue;
      const std::int64_t devices = group_.micro_batch / problem_.device_samples[u];
      if (from.devices + devices > problem_.devices) return;
      if (graphpipe_memory_bytes(std::min(in_flight, problem_.batch), devices, group_.micro_batch,
                                 stage.fixed_bytes, stage.stash_bytes,
                                 stage.working_bytes) > problem_.memory_bytes) {
        continue;
      }
      Label made;
      made.devices = from.devices + devices;
      for (const GraphPipeEdge& edge : problem_.edges) {
        if (has(after, at(edge.source)) || !has(after, at(edge.target))) continue;
        made.in_flight[at(edge.target)] =
            has(nodes, at(edge.target)) ? in_flight : from.in_flight[at(edge.target)];
      }
      made.stage = nodes;
      made.samples = u;
      made.before = before;
      made.parent = parent;
      const auto useless = [&](const Label& other) { return no_worse(other, made); };
      if (std::any_of(labels.begin(), labels.end(), useless)) return;
      std::erase_if(labels, [&](const Label& other) { return no_worse(made, other); });
      labels.push_back(made);
      return;
    }
  }

  const GraphPipeProblem& problem_;
  const ClosedSets& closed_;
  PassGroup group_;
  std::map<Set, ExactStage> stages_;
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

GraphPipeSolution solve_graphpipe_exactly(const GraphPipeProblem& problem) {
  check_exact(problem);
  const ClosedSets closed(problem);
  GraphPipeSolution best;
  for (const PassGroup& group : problem.groups) {
    ExactSearch search(problem, closed, group);
    const std::vector<double> times_s = search.times_s();
    const auto possible = [&](double time_s) { return search.plan_at(time_s).has_value(); };
    const auto first = std::partition_point(times_s.begin(), times_s.end(),
                                            [&](double time_s) { return !possible(time_s); });
    if (first == times_s.end()) continue;
    std::optional<GraphPipeSolution> found = search.plan_at(*first);
    if (!found) continue;
    price_graphpipe(problem, *found);
    found->status = Status::optimal;
    if (best.status == Status::infeasible || found->time_s < best.time_s) best = std::move(*found);
  }
  return best;
}

}  // namespace braid
