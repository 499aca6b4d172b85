#include "braid/planners/graphpipe/exact.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/pareto_front.h"
#include "braid/base/rounding.h"
#include "braid/graph/downsets.h"
#include "braid/planners/graphpipe/pricing.h"
#include "braid/search/downset_lattice.h"

namespace braid {
namespace {

using Set = std::uint64_t;  ///< Of nodes, one bit each.

bool has(Set set, std::size_t node) { return (set >> node & 1U) != 0; }

/// Nodes as a stage of one group: what it costs in each strategy.
struct ExactStage {
  struct Strategy {
    std::vector<std::int64_t> devices;  ///< [run]: those that are possible, ascending.
    /// Per sample between neighbours: [run][place of the copies before][place of those after], in
    /// ExactSearch's copies.
    std::vector<double> time_s;
    double fixed_bytes = 0, stash_bytes = 0, working_bytes = 0;
  };
  std::vector<std::int32_t> nodes;
  std::vector<Strategy> strategies;
};

using Place = std::int8_t;  ///< In ExactSearch's copies.

/// What one stage, or several behind another one, are to those before.
struct ExactNeighbours {
  std::int64_t in_flight = 0;  ///< Samples: most of several.
  Place copies = 0;            ///< Most that they have, …
  Place allowed = 0;           ///< … and the most that all allow a stage before them.
};

/// Stages for a set that is closed under successors.
struct ExactLabel {
  std::int64_t devices = 0;                                 ///< Weighed (graphpipe_weights).
  std::array<std::int64_t, kMostGraphPipePools> of_pool{};  ///< Of each kind.
  /// [node]: samples in flight of its stage, if a node outside of the set hands over to it; else 0.
  std::array<std::int64_t, kMostExactNodes> in_flight{};
  /// Of the same: ExactNeighbours.
  std::array<Place, kMostExactNodes> copies{}, allowed{};
  std::size_t stage = 0;  ///< Added last, …
  std::size_t strategy = 0;
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
    const std::vector<Bitset> closed = closed_sets(problem);
    const std::size_t nodes = problem.nodes.size();
    const auto pairs = downset_pairs(closed, nodes, kMostExactPairs);
    if (!pairs) refuse(kMostExactPairs, "pairs of nested sets of nodes");
    for (const Bitset& set : closed) sets.push_back(set.bits());
    growths.resize(sets.size());
    std::unordered_map<Set, std::size_t> known;
    for (const auto& [inner, outer] : *pairs) {
      const Set grown = sets[outer] & ~sets[inner];
      const auto [stage, added] = known.try_emplace(grown, stages.size());
      if (added) stages.push_back(grown);
      growths[inner].push_back({outer, stage->second});
    }
  }

  std::vector<Set> sets;
  std::vector<std::vector<Growth>> growths;  ///< [set]
  std::vector<Set> stages;                   ///< Nodes of each.

 private:
  /// Sets closed under successors are what downsets leave; smaller ones first.
  static std::vector<Bitset> closed_sets(const GraphPipeProblem& problem) {
    const std::size_t nodes = problem.nodes.size();
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    for (const GraphPipeEdge& edge : problem.edges) edges.emplace_back(edge.source, edge.target);
    const auto lattice = downset_lattice(make_dag(nodes, edges), kMostExactSets);
    if (!lattice) refuse(kMostExactSets, "sets of nodes closed under successors");
    std::vector<Bitset> sets;
    sets.reserve(lattice->size());
    for (const Bitset& before : lattice->sets) sets.push_back(lattice->sets.back() - before);
    std::sort(sets.begin(), sets.end(), smaller_downset);
    return sets;
  }

  [[noreturn]] static void refuse(std::size_t most, const char* what) {
    throw Error("the graph has more than " + std::to_string(most) + ' ' + what +
                    ", too many for the exact search over its stages",
                "search series-parallel stages (--graph sp), or group operators into fewer layers");
  }
};

class ExactSearch {
 public:
  ExactSearch(const GraphPipeProblem& problem, const ClosedSets& closed, const PassGroup& group)
      : problem_(problem),
        closed_(closed),
        group_(group),
        levels_(copy_levels(problem.strategies)),
        weights_(graphpipe_weights(problem)),
        all_devices_(graphpipe_weighed_devices(problem)) {
    stages_.reserve(closed.stages.size());
    for (const Set nodes : closed.stages) stages_.push_back(stage_of(nodes));
    find_work();
  }

  /// Of stages, ascending, below `limit_s` and long enough for the devices to do all work.
  std::vector<double> times_s(double limit_s) const {
    const double least_s = work_s_.front() / static_cast<double>(all_devices_) * kBelowTolerance;
    std::vector<double> times_s;
    for (const ExactStage& stage : stages_) {
      for (const ExactStage::Strategy& strategy : stage.strategies) {
        for (const double time_s : strategy.time_s) {
          if (time_s >= least_s && time_s < limit_s) times_s.push_back(time_s);
        }
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
      const ExactLabel& label = labels_[set][index];
      GraphPipeStage stage;
      stage.nodes = stages_[label.stage].nodes;
      stage.group = group_;
      stage.strategy = static_cast<std::int32_t>(label.strategy);
      const std::size_t pool = at(problem_.strategies[label.strategy].pool);
      stage.devices = label.of_pool[pool] - labels_[label.before][label.parent].of_pool[pool];
      solution.stages.push_back(std::move(stage));
      set = label.before;
      index = label.parent;
    }
    return solution;
  }

  std::int64_t work() const { return work_; }

 private:
  ExactStage stage_of(Set nodes) const {
    GraphPipeStage form;
    form.group = group_;
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      if (has(nodes, v)) form.nodes.push_back(static_cast<std::int32_t>(v));
    }
    ExactStage stage;
    stage.strategies.resize(problem_.strategies.size());
    for (std::size_t w = 0; w < stage.strategies.size(); ++w) {
      ExactStage::Strategy& strategy = stage.strategies[w];
      form.strategy = static_cast<std::int32_t>(w);
      const std::int64_t most =
          std::min(problem_.pool_of(problem_.strategies[w]).devices, problem_.most_stage_devices);
      for (const std::int32_t v : form.nodes) {
        const GraphPipeCost& cost = problem_.kinds[at(problem_.nodes[at(v)])][w];
        strategy.fixed_bytes += cost.fixed_bytes;
        strategy.stash_bytes += cost.stash_bytes;
        strategy.working_bytes = std::max(strategy.working_bytes, cost.working_bytes);
      }
      for (std::size_t u = problem_.device_samples.size(); u-- > 0;) {
        const std::int64_t samples = problem_.device_samples[u];
        form.devices = group_.micro_batch / samples * problem_.strategies[w].tensor;
        const std::int64_t replicas = group_.micro_batch / samples;
        if (group_.micro_batch % samples != 0 || form.devices < problem_.least_stage_devices ||
            form.devices > most || replicas % problem_.strategies[w].expert != 0) {
          continue;
        }
        strategy.devices.push_back(form.devices);
        for (const std::int64_t before : levels_.copies) {
          for (const std::int64_t after : levels_.copies) {
            strategy.time_s.push_back(graphpipe_stage_time_s(problem_, form, {before, after}));
          }
        }
      }
    }
    stage.nodes = std::move(form.nodes);
    return stage;
  }

  /// For every closed set the least weighed device-seconds per sample of all nodes outside of it:
  /// what no stage of them can do with less.
  void find_work() {
    const std::vector<double> kind_s = graphpipe_least_work_s(problem_);
    std::vector<double> node_s;
    node_s.reserve(problem_.nodes.size());
    for (const std::int32_t kind : problem_.nodes) node_s.push_back(kind_s[at(kind)]);
    work_s_.reserve(closed_.sets.size());
    for (const Set set : closed_.sets) {
      double work_s = 0;
      for (std::size_t v = 0; v < node_s.size(); ++v) work_s += has(set, v) ? 0 : node_s[v];
      work_s_.push_back(work_s);
    }
  }

  bool no_worse(const ExactLabel& a, const ExactLabel& b) const {
    for (std::size_t p = 0; p < kMostGraphPipePools; ++p) {
      if (a.of_pool[p] > b.of_pool[p]) return false;
    }
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      if (a.in_flight[v] > b.in_flight[v] || a.copies[v] > b.copies[v] ||
          a.allowed[v] < b.allowed[v]) {
        return false;
      }
    }
    return true;
  }

  /// Puts the stage between two closed sets before a label of the smaller one: in each strategy on
  /// the fewest devices that keep time and memory, and on more that leave more copies to the stages
  /// before. Nothing else depends on them.
  void put(std::size_t before, std::size_t parent, const Growth& growth, double time_s) {
    const ExactStage& stage = stages_[growth.stage];
    const ExactLabel from = labels_[before][parent];
    const auto spare =
        static_cast<double>(all_devices_) - work_s_[growth.larger] / time_s * kBelowTolerance;
    std::optional<ExactNeighbours> behind;
    for (std::size_t w = 0; w < stage.strategies.size(); ++w) {
      const ExactStage::Strategy& strategy = stage.strategies[w];
      const std::size_t index = at(problem_.strategies[w].pool);
      const GraphPipePool& pool = problem_.pools[index];
      for (std::size_t run = 0; run < strategy.devices.size(); ++run) {
        const double* const times_s =
            &strategy.time_s[run * levels_.copies.size() * levels_.copies.size()];
        if (times_s[0] > time_s) continue;
        const std::int64_t devices = from.devices + weights_[index] * strategy.devices[run];
        const std::int64_t of_pool = from.of_pool[index] + strategy.devices[run];
        if (static_cast<double>(devices) > spare || of_pool > pool.devices) break;
        ++work_;
        if (!behind) behind = neighbours_of(growth, before, from);
        if (place_of(w) > behind->allowed) break;
        Place allowed = last_place();
        while (allowed >= 0 &&
               times_s[at(allowed) * levels_.copies.size() + at(behind->copies)] > time_s) {
          --allowed;
        }
        const std::int64_t replicas = strategy.devices[run] / problem_.strategies[w].tensor;
        if (allowed < 0 ||
            graphpipe_memory_bytes(std::min(behind->in_flight, problem_.batch), replicas,
                                   group_.micro_batch, strategy.fixed_bytes, strategy.stash_bytes,
                                   strategy.working_bytes) > pool.memory_bytes) {
          continue;
        }
        ExactLabel made = extended(from, growth, {behind->in_flight, place_of(w), allowed});
        made.devices = devices;
        made.of_pool = from.of_pool;
        made.of_pool[index] = of_pool;
        made.strategy = w;
        made.before = before;
        made.parent = parent;
        insert(made, labels_[growth.larger]);
        if (allowed == last_place()) break;
      }
    }
  }

  Place place_of(std::size_t strategy) const { return static_cast<Place>(levels_.place[strategy]); }
  Place last_place() const { return static_cast<Place>(levels_.copies.size() - 1); }

  /// What stages before see of a label with a stage that is `own` to them.
  ExactLabel extended(const ExactLabel& from, const Growth& growth,
                      const ExactNeighbours& own) const {
    ExactLabel made;
    made.stage = growth.stage;
    made.allowed.fill(last_place());
    const Set after = closed_.sets[growth.larger];
    const Set nodes = closed_.stages[growth.stage];
    for (const GraphPipeEdge& edge : problem_.edges) {
      const std::size_t v = at(edge.target);
      if (has(after, at(edge.source)) || !has(after, v)) continue;
      made.in_flight[v] = has(nodes, v) ? own.in_flight : from.in_flight[v];
      made.copies[v] = has(nodes, v) ? own.copies : from.copies[v];
      made.allowed[v] = has(nodes, v) ? own.allowed : from.allowed[v];
    }
    return made;
  }

  void insert(const ExactLabel& made, std::vector<ExactLabel>& labels) const {
    const auto order = [this](const ExactLabel& a, const ExactLabel& b) { return no_worse(a, b); };
    if (!is_dominated(labels, made, order)) put_in_front(labels, made, order);
  }

  /// What the stages behind one that is put before a label make of it.
  ExactNeighbours neighbours_of(const Growth& growth, std::size_t before,
                                const ExactLabel& from) const {
    const Set nodes = closed_.stages[growth.stage];
    const Set behind = closed_.sets[before];
    ExactNeighbours all{group_.k * group_.micro_batch, 0, last_place()};
    for (const GraphPipeEdge& edge : problem_.edges) {
      const std::size_t v = at(edge.target);
      if (!has(nodes, at(edge.source)) || !has(behind, v)) continue;
      all.in_flight = std::max(all.in_flight, table_in_flight(group_, group_, from.in_flight[v]));
      all.copies = std::max(all.copies, from.copies[v]);
      all.allowed = std::min(all.allowed, from.allowed[v]);
    }
    return all;
  }

  const GraphPipeProblem& problem_;
  const ClosedSets& closed_;
  PassGroup group_;
  CopyLevels levels_;
  std::vector<std::int32_t> weights_;            ///< [pool]
  std::int64_t all_devices_;                     ///< Weighed.
  std::vector<ExactStage> stages_;               ///< As in closed_.
  std::vector<double> work_s_;                   ///< [set]
  std::vector<std::vector<ExactLabel>> labels_;  ///< [set]
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
