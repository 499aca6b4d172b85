#include "planners/graphpipe_problems.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "braid/graph/series_parallel_order.h"
#include "braid/planners/graphpipe/pricing.h"

#include "base/pick.h"

namespace braid::test {
namespace {

using test::pick;

struct Ends {
  std::vector<std::int32_t> sources, sinks;
};

/// Nodes [first, first + count) composed at random, as a series or side by side.
Ends compose(std::mt19937_64& random, int first, int count, GraphPipeProblem& problem) {
  if (count == 1) return {{first}, {first}};
  const int left = pick(random, 1, count - 1);
  const Ends a = compose(random, first, left, problem);
  const Ends b = compose(random, first + left, count - left, problem);
  Ends both = a;
  if (pick(random, 0, 1) == 0) {
    both.sources.insert(both.sources.end(), b.sources.begin(), b.sources.end());
    both.sinks.insert(both.sinks.end(), b.sinks.begin(), b.sinks.end());
    return both;
  }
  for (const std::int32_t from : a.sinks) {
    for (const std::int32_t to : b.sources) {
      problem.edges.push_back({from, to, static_cast<double>(pick(random, 0, 3))});
    }
  }
  both.sinks = b.sinks;
  return both;
}

GraphPipeProblem small_problem() {
  GraphPipeProblem problem;
  problem.device_samples = {1, 2, 4, 8};
  problem.batch = 16;
  problem.pools.front().memory_bytes = 1e9;
  problem.pools.front().bandwidth_bytes_per_s = 4;
  problem.groups = {{4, 1}};
  return problem;
}

}  // namespace

GraphPipeProblem random_graphpipe(std::mt19937_64& random, int most_nodes, bool any_graph) {
  GraphPipeProblem problem = small_problem();
  const int nodes = pick(random, 1, most_nodes);
  const int kinds = pick(random, 1, 2);
  for (int i = 0; i < kinds; ++i) {
    GraphPipeCost kind;
    const double fixed_s = pick(random, 0, 2);
    const double forward_s = pick(random, 1, 6);
    const double backward_s = pick(random, 1, 9);
    for (const std::int64_t samples : problem.device_samples) {
      kind.forward_s.push_back(fixed_s + forward_s * static_cast<double>(samples));
      kind.backward_s.push_back(fixed_s + backward_s * static_cast<double>(samples));
    }
    kind.fixed_bytes = pick(random, 0, 9);
    kind.gradient_bytes = pick(random, 0, 9);
    kind.stash_bytes = pick(random, 0, 4);
    kind.working_bytes = pick(random, 0, 2);
    problem.kinds.push_back({kind});
  }
  for (int v = 0; v < nodes; ++v) problem.nodes.push_back(pick(random, 0, kinds - 1));
  if (any_graph) {
    for (int to = 1; to < nodes; ++to) {
      for (int from = 0; from < to; ++from) {
        if (pick(random, 0, 2) > 0) continue;
        problem.edges.push_back({from, to, static_cast<double>(pick(random, 0, 3))});
      }
    }
  } else {
    compose(random, 0, nodes, problem);
  }
  problem.pools.front().devices = pick(random, 1, 6);
  if (pick(random, 0, 1) == 0) problem.pools.front().memory_bytes = pick(random, 20, 150);
  problem.overlap = pick(random, 0, 1) == 0;
  problem.in_flight = InFlight::table;
  problem.groups = {{std::int64_t{1} << pick(random, 0, 3), 1}};
  return problem;
}

void add_random_strategies(std::mt19937_64& random, GraphPipeProblem& problem) {
  const int strategies = pick(random, 1, 3);
  for (int i = 0; i < strategies; ++i) {
    GraphPipeStrategy strategy;
    strategy.tensor = pick(random, 1, 3);
    strategy.copies = pick(random, 1, static_cast<int>(strategy.tensor));
    problem.strategies.push_back(strategy);
    for (GraphPipeKind& kind : problem.kinds) {
      // A share of the node's costs, with something on top in time or in memory.
      GraphPipeCost cost = kind.front();
      const double share = 1.0 / static_cast<double>(strategy.tensor);
      const double own_s = pick(random, 0, 3) / 4.0;
      const double slower = pick(random, 3, 6) / 4.0;
      for (double& time_s : cost.forward_s) time_s = own_s + slower * share * time_s;
      for (double& time_s : cost.backward_s) time_s = own_s + slower * share * time_s;
      cost.fixed_bytes *= share;
      cost.gradient_bytes *= share;
      cost.stash_bytes *= pick(random, 0, 4) / 4.0;
      cost.working_bytes += pick(random, 0, 2);
      kind.push_back(cost);
    }
  }
}

void add_random_experts(std::mt19937_64& random, GraphPipeProblem& problem) {
  std::vector<double> bytes;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) bytes.push_back(2 * pick(random, 0, 3));
  for (std::size_t w = 0; w < problem.strategies.size(); ++w) {
    GraphPipeStrategy& strategy = problem.strategies[w];
    strategy.expert = pick(random, 0, 2) == 0 ? 2 : 1;
    for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
      const auto held = bytes[k] / static_cast<double>(strategy.tensor * strategy.expert);
      problem.kinds[k][w].expert_gradient_bytes = held;
      problem.kinds[k][w].fixed_bytes += held;
    }
  }
}

void add_random_pool(std::mt19937_64& random, GraphPipeProblem& problem) {
  GraphPipePool pool = problem.pools.front();
  pool.devices = pick(random, 1, 4);
  if (pick(random, 0, 1) == 0) pool.memory_bytes = pick(random, 20, 150);
  pool.bandwidth_bytes_per_s *= pick(random, 2, 6) / 4.0;
  pool.devices_per_node = pick(random, 1, 2);
  if (pick(random, 0, 1) == 0) pool.node_bandwidth_bytes_per_s = 8;
  const auto index = static_cast<std::int32_t>(problem.pools.size());
  problem.pools.push_back(pool);
  const std::size_t strategies = problem.strategies.size();
  const double slower = pick(random, 2, 8) / 4.0;
  for (std::size_t w = 0; w < strategies; ++w) {
    GraphPipeStrategy strategy = problem.strategies[w];
    if (strategy.pool != 0) continue;
    strategy.pool = index;
    problem.strategies.push_back(strategy);
    for (GraphPipeKind& kind : problem.kinds) {
      // Each kind of node gains and loses by another amount.
      GraphPipeCost cost = kind[w];
      const double own = slower * pick(random, 3, 5) / 4.0;
      for (double& time_s : cost.forward_s) time_s *= own;
      for (double& time_s : cost.backward_s) time_s *= own;
      kind.push_back(cost);
    }
  }
}

std::vector<std::int64_t> devices_of_pools(const GraphPipeProblem& problem,
                                           const std::vector<GraphPipeStage>& stages) {
  std::vector<std::int64_t> devices(problem.pools.size(), 0);
  for (const GraphPipeStage& stage : stages) {
    const GraphPipeStrategy& strategy =
        problem.strategies[static_cast<std::size_t>(stage.strategy)];
    devices[static_cast<std::size_t>(strategy.pool)] += stage.devices;
  }
  return devices;
}

GraphPipeProblem branched_graphpipe(int branches, int length, std::int64_t devices) {
  GraphPipeProblem problem = small_problem();
  GraphPipeCost kind;
  for (const std::int64_t samples : problem.device_samples) {
    kind.forward_s.push_back(static_cast<double>(samples));
    kind.backward_s.push_back(2 * static_cast<double>(samples));
  }
  kind.fixed_bytes = kind.stash_bytes = 1;
  problem.kinds = {{kind}};
  problem.nodes.assign(static_cast<std::size_t>(branches * length + 1), 0);
  const std::int32_t join = branches * length;
  for (std::int32_t v = 0; v < join; ++v) {
    problem.edges.push_back({v, v % length == length - 1 ? join : v + 1, 1});
  }
  std::sort(problem.edges.begin(), problem.edges.end(),
            [](const GraphPipeEdge& a, const GraphPipeEdge& b) {
              return std::pair(a.source, a.target) < std::pair(b.source, b.target);
            });
  problem.pools.front().devices = devices;
  return problem;
}

std::vector<StageSets> all_partitions(const GraphPipeProblem& problem) {
  std::vector<StageSets> result;
  StageSets partition;
  const std::function<void(std::int32_t)> go = [&](std::int32_t v) {
    if (static_cast<std::size_t>(v) == problem.nodes.size()) {
      std::vector<std::size_t> stage_of(problem.nodes.size());
      for (std::size_t s = 0; s < partition.size(); ++s) {
        for (const std::int32_t u : partition[s]) stage_of[static_cast<std::size_t>(u)] = s;
      }
      // Stages without edges into them from those left are taken away until none is left.
      std::vector<bool> gone(partition.size(), false);
      for (std::size_t round = 0; round < partition.size(); ++round) {
        for (std::size_t s = 0; s < partition.size(); ++s) {
          gone[s] = gone[s] ||
                    std::none_of(problem.edges.begin(), problem.edges.end(),
                                 [&](const GraphPipeEdge& edge) {
                                   const auto a = stage_of[static_cast<std::size_t>(edge.source)];
                                   const auto b = stage_of[static_cast<std::size_t>(edge.target)];
                                   return b == s && a != s && !gone[a];
                                 });
        }
      }
      if (std::all_of(gone.begin(), gone.end(), [](bool g) { return g; })) {
        result.push_back(partition);
      }
      return;
    }
    for (std::size_t s = 0; s < partition.size(); ++s) {
      partition[s].push_back(v);
      go(v + 1);
      partition[s].pop_back();
    }
    partition.push_back({v});
    go(v + 1);
    partition.pop_back();
  };
  go(0);
  return result;
}

namespace {

/// A node, or branches side by side, each a series of such.
struct Part {
  std::int32_t node = -1;
  std::vector<std::vector<Part>> branches;
};
using Series = std::vector<Part>;
using NodesOfStage = std::vector<std::int32_t>;

Part part_of(const OrderTree& tree, std::int32_t index);

Series series_of(const OrderTree& tree, std::int32_t index) {
  const OrderPart& part = tree.parts[static_cast<std::size_t>(index)];
  if (part.kind != OrderPart::Kind::series) return {part_of(tree, index)};
  Series series;
  for (const std::int32_t child : part.children) series.push_back(part_of(tree, child));
  return series;
}

Part part_of(const OrderTree& tree, std::int32_t index) {
  const OrderPart& part = tree.parts[static_cast<std::size_t>(index)];
  Part made;
  made.node = part.node;
  for (const std::int32_t child : part.children) made.branches.push_back(series_of(tree, child));
  return made;
}

void collect(const Series& series, NodesOfStage& nodes) {
  for (const Part& part : series) {
    if (part.node >= 0) nodes.push_back(part.node);
    for (const Series& branch : part.branches) collect(branch, nodes);
  }
}

std::vector<StageSets> product(const std::vector<StageSets>& a, const std::vector<StageSets>& b) {
  std::vector<StageSets> result;
  for (const StageSets& x : a) {
    for (const StageSets& y : b) {
      result.push_back(x);
      result.back().insert(result.back().end(), y.begin(), y.end());
    }
  }
  return result;
}

std::vector<StageSets> ways_of(const Series& series);

/// Every grouping of the branches: alone, planned by themselves, or several whole ones as a stage.
std::vector<StageSets> ways_side_by_side(const std::vector<Series>& branches) {
  if (branches.empty()) return {{}};
  std::vector<StageSets> result;
  const std::size_t others = branches.size() - 1;
  for (std::size_t set = 0; set < (std::size_t{1} << others); ++set) {
    std::vector<Series> rest;
    NodesOfStage group;
    for (std::size_t i = 0; i < others; ++i) {
      if ((set >> i & 1) == 0) rest.push_back(branches[i]);
      if ((set >> i & 1) != 0) collect(branches[i], group);
    }
    std::vector<StageSets> first;
    if (group.empty()) {
      first = ways_of(branches.back());
    } else {
      collect(branches.back(), group);
      first = {{group}};
    }
    const std::vector<StageSets> both = product(first, ways_side_by_side(rest));
    result.insert(result.end(), both.begin(), both.end());
  }
  return result;
}

/// What can be absorbed from one side of branches: nodes, and what is left of the branches.
std::vector<std::pair<NodesOfStage, std::vector<Series>>> absorptions(
    const std::vector<Series>& branches, bool at_end) {
  std::vector<std::pair<NodesOfStage, std::vector<Series>>> result;
  for (std::size_t set = 1; set + 1 < (std::size_t{1} << branches.size()); ++set) {
    std::pair<NodesOfStage, std::vector<Series>> way;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      if ((set >> i & 1) != 0) collect(branches[i], way.first);
      if ((set >> i & 1) == 0) way.second.push_back(branches[i]);
    }
    result.push_back(way);
  }
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (std::size_t cut = 1; cut < branches[i].size(); ++cut) {
      const auto middle = branches[i].begin() + static_cast<std::ptrdiff_t>(cut);
      const Series front(branches[i].begin(), middle);
      const Series back(middle, branches[i].end());
      std::pair<NodesOfStage, std::vector<Series>> way{{}, branches};
      collect(at_end ? back : front, way.first);
      way.second[i] = at_end ? front : back;
      result.push_back(way);
    }
  }
  return result;
}

std::vector<StageSets> ways_of(const Series& series) {
  if (series.empty()) return {{}};
  std::vector<StageSets> result;
  const auto put = [&](const std::vector<StageSets>& ways) {
    result.insert(result.end(), ways.begin(), ways.end());
  };
  const auto items = [&](std::size_t first, std::size_t last) {
    return Series(series.begin() + static_cast<std::ptrdiff_t>(first),
                  series.begin() + static_cast<std::ptrdiff_t>(last));
  };
  const std::size_t end = series.size();
  for (std::size_t a = 0; a < end; ++a) {
    NodesOfStage stage;
    collect(items(a, end), stage);
    put(product({{stage}}, ways_of(items(0, a))));
    if (a == 0 || series[a - 1].branches.empty()) continue;
    for (const auto& [absorbed, rest] : absorptions(series[a - 1].branches, true)) {
      NodesOfStage larger = stage;
      larger.insert(larger.end(), absorbed.begin(), absorbed.end());
      put(product({{larger}}, product(ways_side_by_side(rest), ways_of(items(0, a - 1)))));
    }
  }
  const std::vector<Series>& last = series.back().branches;
  if (last.empty()) return result;
  put(product(ways_side_by_side(last), ways_of(items(0, end - 1))));
  for (const auto& [absorbed, rest] : absorptions(last, false)) {
    for (std::size_t q = 0; q + 1 < end; ++q) {
      NodesOfStage stage = absorbed;
      collect(items(q, end - 1), stage);
      put(product({{stage}}, product(ways_side_by_side(rest), ways_of(items(0, q)))));
    }
  }
  return result;
}

OrderTree tree_of(const GraphPipeProblem& problem) {
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  for (const GraphPipeEdge& edge : problem.edges) edges.emplace_back(edge.source, edge.target);
  return series_parallel_order(make_dag(problem.nodes.size(), edges));
}

}  // namespace

std::vector<StageSets> series_parallel_partitions(const GraphPipeProblem& problem) {
  const OrderTree tree = tree_of(problem);
  std::set<StageSets> distinct;
  for (StageSets partition :
       ways_of(series_of(tree, static_cast<std::int32_t>(tree.parts.size()) - 1))) {
    for (NodesOfStage& stage : partition) std::sort(stage.begin(), stage.end());
    std::sort(partition.begin(), partition.end());
    distinct.insert(partition);
  }
  return {distinct.begin(), distinct.end()};
}

namespace {

/// Of a plan below a limit: the slowest stage's or, with the least counts, a longer one at which it
/// fits. Infinite if none.
double least_rate_s(const GraphPipeProblem& problem, GraphPipeSolution& plan, double limit_s) {
  if (price_graphpipe(problem, plan)) return plan.time_s;
  double low_s = plan.time_s;
  double high_s = std::min(limit_s, 1e6);
  if (problem.in_flight == InFlight::table || low_s >= high_s ||
      !price_graphpipe(problem, plan, high_s)) {
    return std::numeric_limits<double>::infinity();
  }
  for (int halving = 0; halving < 60; ++halving) {
    const double middle_s = (low_s + high_s) / 2;
    (price_graphpipe(problem, plan, middle_s) ? high_s : low_s) = middle_s;
  }
  return high_s;
}

}  // namespace

double best_of(const GraphPipeProblem& problem, const std::vector<StageSets>& partitions) {
  double best_s = std::numeric_limits<double>::infinity();
  for (const StageSets& partition : partitions) {
    GraphPipeSolution solution;
    std::vector<std::int64_t> left;
    for (std::size_t p = 0; p < problem.pools.size(); ++p) left.push_back(problem.pools[p].devices);
    const std::function<void()> go = [&] {
      const std::size_t s = solution.stages.size();
      if (s == partition.size()) {
        GraphPipeSolution priced = solution;
        best_s = std::min(best_s, least_rate_s(problem, priced, best_s));
        return;
      }
      for (const PassGroup& group : problem.groups) {
        if (!problem.mixed && s > 0 && !(group == solution.stages[0].group)) continue;
        for (const std::int64_t samples : problem.device_samples) {
          if (group.micro_batch % samples != 0) continue;
          for (std::size_t w = 0; w < problem.strategies.size(); ++w) {
            const std::int64_t replicas = group.micro_batch / samples;
            if (replicas % problem.strategies[w].expert != 0) continue;
            const std::int64_t d = replicas * problem.strategies[w].tensor;
            std::int64_t& devices = left[static_cast<std::size_t>(problem.strategies[w].pool)];
            if (d > devices) continue;
            GraphPipeStage stage;
            stage.nodes = partition[s];
            std::sort(stage.nodes.begin(), stage.nodes.end());
            stage.devices = d;
            stage.strategy = static_cast<std::int32_t>(w);
            stage.group = group;
            solution.stages.push_back(stage);
            devices -= d;
            go();
            devices += d;
            solution.stages.pop_back();
          }
        }
      }
    };
    go();
  }
  return best_s;
}

}  // namespace braid::test
