#include "braid/planners/graphpipe/problem.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"

namespace braid {
namespace {

[[noreturn]] void fail(const std::string& key, const std::string& message) {
  throw Error(Where{"", 0, key}, message);
}

void check_counts(const GraphPipeProblem& problem) {
  if (problem.nodes.empty() || problem.nodes.size() > at(kMostGraphPipeNodes)) {
    fail("nodes", "there must be 1 to " + std::to_string(kMostGraphPipeNodes));
  }
  if (problem.least_stage_devices < 1 || problem.most_stage_devices < problem.least_stage_devices) {
    fail("stage devices", "the least must be at least one, and at most the most");
  }
  if (problem.batch < 1 || problem.batch > (std::int64_t{1} << 40)) {
    fail("batch", "must be 1 to 2^40 samples");
  }
}

void check_pools(const GraphPipeProblem& problem) {
  if (problem.pools.empty() || problem.pools.size() > kMostGraphPipePools) {
    fail("devices", "there must be one kind at least, and at most " +
                        std::to_string(kMostGraphPipePools) + " kinds");
  }
  for (const GraphPipePool& pool : problem.pools) {
    if (pool.devices < 1 || pool.devices > kMostGraphPipeDevices) {
      fail("devices", "there must be 1 to " + std::to_string(kMostGraphPipeDevices));
    }
    if (!is_cost(pool.memory_bytes)) fail("memory", "must be finite and not negative");
    if (!is_cost(pool.bandwidth_bytes_per_s) || pool.bandwidth_bytes_per_s == 0) {
      fail("bandwidth", "must be finite and above zero");
    }
    if (pool.devices_per_node < 1 || !is_cost(pool.node_bandwidth_bytes_per_s)) {
      fail("node", "must have a device, and a bandwidth that is finite and not negative");
    }
  }
}

void check_groups(const GraphPipeProblem& problem) {
  std::int64_t before = 0;
  for (const std::int64_t samples : problem.device_samples) {
    if (samples <= before) fail("device samples", "must be above zero and ascend");
    before = samples;
  }
  if (problem.groups.empty()) fail("groups", "there is no micro-batch size to choose");
  for (const PassGroup& group : problem.groups) {
    if (group.micro_batch < 1 || problem.batch % group.micro_batch != 0) {
      fail("groups", "micro-batches of " + std::to_string(group.micro_batch) +
                         " samples do not divide the batch of " + std::to_string(problem.batch));
    }
    if (group.k < 1 || group.k > problem.batch) fail("groups", "k must be 1 to the batch");
    if (problem.in_flight == InFlight::least && group.k != 1) {
      fail("groups", "kFkB with k above 1 needs the table's samples in flight");
    }
  }
  if (problem.mixed && problem.in_flight != InFlight::table) {
    fail("groups", "different micro-batch sizes need the table's samples in flight");
  }
  if (problem.mixed && problem.groups.size() > kMostMixedGroups) {
    fail("groups", "at most " + std::to_string(kMostMixedGroups) + " can be mixed");
  }
}

void check_kind(const GraphPipeProblem& problem, const GraphPipeKind& kind) {
  if (kind.size() != problem.strategies.size())
    fail("kinds", "each needs its costs in every strategy");
  for (const GraphPipeCost& cost : kind) {
    if (cost.forward_s.size() != problem.device_samples.size() ||
        cost.backward_s.size() != problem.device_samples.size()) {
      fail("kinds", "each needs a time for every number of samples per device");
    }
    const bool times = std::all_of(cost.forward_s.begin(), cost.forward_s.end(), is_cost) &&
                       std::all_of(cost.backward_s.begin(), cost.backward_s.end(), is_cost);
    if (!times || !is_cost(cost.fixed_bytes) || !is_cost(cost.gradient_bytes) ||
        !is_cost(cost.expert_gradient_bytes) || !is_cost(cost.stash_bytes) ||
        !is_cost(cost.working_bytes)) {
      fail("kinds", "times and sizes must be finite and not negative");
    }
  }
}

void check_strategies(const GraphPipeProblem& problem) {
  if (problem.strategies.empty() || problem.strategies.size() > kMostGraphPipeStrategies) {
    fail("strategies", "there must be 1 to " + std::to_string(kMostGraphPipeStrategies));
  }
  for (const GraphPipeStrategy& strategy : problem.strategies) {
    if (strategy.tensor < 1 || strategy.tensor > kMostGraphPipeDevices) {
      fail("strategies",
           "a replica must have 1 to " + std::to_string(kMostGraphPipeDevices) + " devices");
    }
    if (strategy.expert < 1 || strategy.expert > kMostGraphPipeDevices) {
      fail("strategies", "experts must be spread over 1 to " +
                             std::to_string(kMostGraphPipeDevices) + " replicas");
    }
    if (strategy.copies < 1 || strategy.copies > strategy.tensor) {
      fail("strategies", "there must be at least one copy, and at most one on each device");
    }
    if (strategy.pool < 0 || at(strategy.pool) >= problem.pools.size()) {
      fail("strategies", "a strategy's kind of devices does not exist");
    }
  }
}

/// Least device-seconds per sample of a node of a kind run in a strategy.
double work_of(const GraphPipeProblem& problem, std::size_t kind, std::size_t strategy) {
  const GraphPipeCost& cost = problem.kinds[kind][strategy];
  const auto tensor = static_cast<double>(problem.strategies[strategy].tensor);
  double least_s = kInfinity;
  for (std::size_t i = 0; i < problem.device_samples.size(); ++i) {
    least_s = std::min(least_s, tensor * (cost.forward_s[i] + cost.backward_s[i]) /
                                    static_cast<double>(problem.device_samples[i]));
  }
  return least_s;
}

}  // namespace

CopyLevels copy_levels(const std::vector<GraphPipeStrategy>& strategies) {
  CopyLevels levels;
  levels.copies.reserve(strategies.size());
  for (const GraphPipeStrategy& strategy : strategies) levels.copies.push_back(strategy.copies);
  std::sort(levels.copies.begin(), levels.copies.end());
  levels.copies.erase(std::unique(levels.copies.begin(), levels.copies.end()), levels.copies.end());
  levels.place.reserve(strategies.size());
  for (const GraphPipeStrategy& strategy : strategies) {
    const auto place =
        std::lower_bound(levels.copies.begin(), levels.copies.end(), strategy.copies);
    levels.place.push_back(static_cast<std::int32_t>(place - levels.copies.begin()));
  }
  return levels;
}

void check_graphpipe_problem(const GraphPipeProblem& problem) {
  check_counts(problem);
  check_pools(problem);
  check_groups(problem);
  check_strategies(problem);
  for (const GraphPipeKind& kind : problem.kinds) check_kind(problem, kind);
  const auto nodes = static_cast<std::int64_t>(problem.nodes.size());
  for (const std::int32_t kind : problem.nodes) {
    if (kind < 0 || at(kind) >= problem.kinds.size()) fail("nodes", "a node's kind does not exist");
  }
  for (const GraphPipeEdge& edge : problem.edges) {
    if (edge.source < 0 || edge.source >= edge.target || edge.target >= nodes) {
      fail("edges", "an edge joins a node that does not exist or leads backwards");
    }
    if (!is_cost(edge.bytes)) fail("edges", "sizes must be finite and not negative");
  }
}

std::int64_t GraphPipeSolution::devices_used() const {
  std::int64_t devices = 0;
  for (const GraphPipeStage& stage : stages) devices += stage.devices;
  return devices;
}

int GraphPipeSolution::depth() const {
  int depth = 0;
  for (const GraphPipeStage& stage : stages) depth = std::max(depth, stage.depth);
  return depth;
}

double graphpipe_sync_bytes_per_s(const GraphPipePool& pool, std::int64_t devices) {
  const bool inside = devices <= pool.devices_per_node && pool.node_bandwidth_bytes_per_s > 0;
  return inside ? pool.node_bandwidth_bytes_per_s : pool.bandwidth_bytes_per_s;
}

std::int64_t graphpipe_replicas(const GraphPipeProblem& problem, const GraphPipeStage& stage) {
  const std::int64_t tensor = problem.strategies[at(stage.strategy)].tensor;
  assert(stage.devices >= tensor && stage.devices % tensor == 0);
  return stage.devices / tensor;
}

std::vector<std::int32_t> graphpipe_weights(const GraphPipeProblem& problem) {
  constexpr double kMostWeight = 256;
  std::vector<std::int32_t> weights(problem.pools.size(), 1);
  if (weights.size() == 1) return weights;
  std::vector<double> work_s(problem.kinds.size());
  std::vector<double> all_s(weights.size(), 0);
  for (std::size_t p = 0; p < weights.size(); ++p) {
    for (std::size_t k = 0; k < work_s.size(); ++k) {
      work_s[k] = kInfinity;
      for (std::size_t w = 0; w < problem.strategies.size(); ++w) {
        if (at(problem.strategies[w].pool) == p)
          work_s[k] = std::min(work_s[k], work_of(problem, k, w));
      }
    }
    for (const std::int32_t kind : problem.nodes) all_s[p] += work_s[at(kind)];
  }
  const double least_s = *std::min_element(all_s.begin(), all_s.end());
  for (std::size_t p = 0; p < weights.size(); ++p) {
    const double share = all_s[p] == least_s ? 1 : least_s / all_s[p];
    weights[p] = all_s[p] == kInfinity
                     ? 0
                     : static_cast<std::int32_t>(std::max(1.0, std::round(kMostWeight * share)));
  }
  return weights;
}

std::int32_t graphpipe_weighed_devices(const GraphPipeProblem& problem) {
  const std::vector<std::int32_t> weights = graphpipe_weights(problem);
  std::int32_t devices = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    devices += weights[p] * static_cast<std::int32_t>(problem.pools[p].devices);
  }
  return devices;
}

std::vector<double> graphpipe_least_work_s(const GraphPipeProblem& problem) {
  const std::vector<std::int32_t> weights = graphpipe_weights(problem);
  std::vector<double> least_s(problem.kinds.size(), kInfinity);
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    for (std::size_t w = 0; w < problem.strategies.size(); ++w) {
      const double weight = weights[at(problem.strategies[w].pool)];
      least_s[k] = std::min(least_s[k], weight * work_of(problem, k, w));
    }
  }
  return least_s;
}

double graphpipe_bound_s(const GraphPipeProblem& problem) {
  const std::vector<double> least_s = graphpipe_least_work_s(problem);
  double work_s = 0;
  for (const std::int32_t kind : problem.nodes) work_s += least_s[at(kind)];
  return work_s * static_cast<double>(problem.batch) /
         static_cast<double>(graphpipe_weighed_devices(problem));
}

GraphPipeProblem linear_graphpipe(GraphPipeProblem problem) {
  for (std::size_t v = 1; v < problem.nodes.size(); ++v) {
    const auto node = static_cast<std::int32_t>(v);
    problem.edges.push_back({node - 1, node, 0});
  }
  return problem;
}

}  // namespace braid
