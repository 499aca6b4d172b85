#include "braid/planners/graphpipe/job.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/plan/memory_form.h"
#include "braid/plan/totals.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/plan_builder.h"
#include "braid/planners/job/space.h"
#include "braid/planners/job/space_rules.h"
#include "braid/system/links.h"
#include "braid/system/part.h"

namespace braid {
namespace {

/// Micro-batches beyond this serve no purpose that a larger number of them would not.
constexpr std::int64_t kMostSamples = 4096;

/// Powers of two that divide `batch`.
std::vector<std::int64_t> powers_in(std::int64_t batch) {
  std::vector<std::int64_t> powers;
  for (std::int64_t power = 1; batch % power == 0 && power <= kMostSamples; power *= 2) {
    powers.push_back(power);
  }
  return powers;
}

/// Of a layer that runs one strategy, its costs for each number of samples.
GraphPipeCost cost_of(std::span<const LayerCost> costs, std::span<const std::int64_t> samples,
                      const Precision& precision) {
  GraphPipeCost cost;
  DataParallelContext whole;
  whole.precision = precision;
  const double state_bytes = memory_form(whole, kInfinity).per_dense_parameter;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    cost.forward_s.push_back(costs[i].forward.total_s());
    cost.backward_s.push_back(costs[i].backward_s());
    const auto count = static_cast<double>(samples[i]);
    cost.stash_bytes = std::max(cost.stash_bytes, costs[i].stash_bytes / count);
    cost.working_bytes = std::max(cost.working_bytes, costs[i].working_bytes / count);
    // What shardings leave a rank may differ where they are found.
    const double parameters = costs[i].dense_parameters + costs[i].expert_parameters;
    const double gradient_bytes = bytes_per_element(precision.gradient);
    cost.gradient_bytes = std::max(cost.gradient_bytes, costs[i].dense_parameters * gradient_bytes +
                                                            std::max(0.0, costs[i].gradient_bytes));
    cost.expert_gradient_bytes =
        std::max(cost.expert_gradient_bytes, costs[i].expert_parameters * gradient_bytes);
    cost.fixed_bytes =
        std::max(cost.fixed_bytes, parameters * state_bytes + std::max(0.0, costs[i].fixed_bytes));
  }
  return cost;
}

/// Whether layers have options to run so with each of these numbers of samples.
bool is_listed_for(Configuration strategy, const GraphPipeSpace& space,
                   std::span<const std::int64_t> samples) {
  return std::all_of(samples.begin(), samples.end(), [&](std::int64_t count) {
    strategy.micro_batch = static_cast<int>(count);
    return is_listed(space, strategy);
  });
}

/// The strategies that model and `space` allow, on one group of devices.
struct StrategySearch {
  const LayerOptions& layers;
  const GraphPipeSpace& space;
  std::span<const std::int64_t> samples;  ///< That a replica may have at once.
};

/// Adds the strategies of one degree and kind of sharding, each with all kinds of recomputation.
void add_strategies(Configuration strategy, const StrategySearch& search,
                    std::vector<Configuration>& strategies) {
  const GraphPipeSpace& space = search.space;
  for (const Recompute kind : {Recompute::none, Recompute::selective, Recompute::full}) {
    const bool data = space.stage_options == StageOptions::data;
    if (space.recompute ? *space.recompute != kind : data && kind != Recompute::none) continue;
    strategy.recompute = kind;
    if (is_listed_for(strategy, space, search.samples)) strategies.push_back(strategy);
  }
}

/// Ways on one group of devices.
struct GroupStrategies {
  std::vector<Configuration> strategies;
  std::size_t manual = 0;  ///< The first so many: those that the model says.
};

/// The degrees that stages of a group may have: powers of two of tensor-parallel ranks that divide
/// a node, and of replicas that experts are spread over.
std::vector<Configuration> degrees_on(const System& system, const GraphPipeSpace& space,
                                      std::int64_t experts) {
  const bool data = space.stage_options == StageOptions::data;
  const auto allows = [&](const Degrees& degrees, int degree) {
    return degrees.allows(degree) && (degree == 1 || !data || !degrees.list().empty());
  };
  std::vector<Configuration> degrees;
  for (int tp = 1; system.groups.front().devices_per_node % tp == 0; tp *= 2) {
    // Or some replicas would lie in two nodes.
    if (tp > system.device_count) break;
    if (!allows(space.tp, tp)) continue;
    for (int ep = 1; ep == 1 || (experts > 0 && experts % ep == 0); ep *= 2) {
      if (ep > system.device_count / tp) break;
      if (!allows(space.ep, ep)) continue;
      Configuration& degree = degrees.emplace_back();
      degree.tp = tp;
      degree.ep = degree.dp = ep;
      if (!can_divide(space.can, to_execution(degree))) degrees.pop_back();
    }
  }
  return degrees;
}

/// The strategies that model and `space` allow, the plain one first, what is found last.
GroupStrategies strategies_on(const StrategySearch& search, const System& system,
                              LayerTables& tables) {
  const auto& [layers, space, samples] = search;
  GroupStrategies result;
  const std::int64_t most_tp =
      std::min(system.groups.front().devices_per_node, system.device_count);
  SpaceLimits limits;
  limits.split = layers.limits(most_tp);
  const std::vector<int> found = std::exchange(limits.split.automatic, {});
  const std::vector<Configuration> degrees = degrees_on(system, space, limits.split.experts);
  for (Configuration strategy : degrees) {
    // Each device then hands on its part of the sequence alone.
    strategy.sequence_parallel = strategy.tp > 1 && space.sequence_parallel.value_or(true);
    if (!refusal(limits.split, to_execution(strategy)).empty() && !space.sequence_parallel) {
      strategy.sequence_parallel = false;
    }
    if (refusal(limits.split, to_execution(strategy)).empty())
      add_strategies(strategy, search, result.strategies);
  }
  result.manual = result.strategies.size();
  if (layers.searches_shardings()) {
    limits.split.automatic = found;
    for (const Configuration& degree : degrees) {
      for (const TensorSharding& form : shardings_of_family(degree, limits, space)) {
        const Configuration strategy = with_form(degree, form);
        if (form.sharding == ShardingKind::manual || !tables.is_distinct(strategy)) continue;
        add_strategies(strategy, search, result.strategies);
      }
    }
  }
  return result;
}

/// The strategies of all groups, and the group of each.
void fill_strategies(GroupTables& tables, const GraphPipeSpace& space, GraphPipeJob& result) {
  const StrategySearch search{tables.layers(), space, result.problem.device_samples};
  std::vector<GroupStrategies> of_group;
  of_group.reserve(tables.groups());
  for (std::size_t g = 0; g < tables.groups(); ++g) {
    of_group.push_back(strategies_on(search, tables.part(g), tables.of(g)));
  }
  const auto put = [&](std::size_t group, std::size_t first, std::size_t last) {
    const std::vector<Configuration>& strategies = of_group[group].strategies;
    for (std::size_t w = first; w < std::min(last, strategies.size()); ++w) {
      const Configuration& strategy = strategies[w];
      result.strategies.push_back(strategy);
      result.problem.strategies.push_back({strategy.tp,
                                           strategy.sequence_parallel ? 1 : strategy.tp,
                                           static_cast<std::int32_t>(group), strategy.ep});
    }
  };
  result.problem.strategies.clear();
  for (std::size_t g = 0; g < of_group.size(); ++g) put(g, 0, 1);
  result.plain = result.strategies.size();
  for (std::size_t g = 0; g < of_group.size(); ++g) put(g, 1, of_group[g].manual);
  result.manual = result.strategies.size();
  for (std::size_t g = 0; g < of_group.size(); ++g) {
    put(g, of_group[g].manual, of_group[g].strategies.size());
  }
  if (result.strategies.empty()) {
    throw Error("no stage can run as asked",
                "the graphpipe planner has tensor parallelism of powers of two that divide a node");
  }
}

/// A group's devices as one kind.
GraphPipePool pool_of(const System& part) {
  const DeviceGroup& group = part.groups.front();
  GraphPipePool pool;
  pool.devices = part.device_count;
  pool.memory_bytes = usable_bytes(group.chip);
  pool.devices_per_node = group.devices_per_node;
  pool.node_bandwidth_bytes_per_s = group.intra_node.bytes_per_s;
  pool.bandwidth_bytes_per_s =
      part.levels.empty() ? group.intra_node.bytes_per_s : part.levels.back().bytes_per_s;
  return pool;
}

/// The groups of a system as kinds of devices.
void fill_pools(const System& system, const GroupTables& tables, GraphPipeProblem& problem) {
  problem.pools.clear();
  for (std::size_t g = 0; g < tables.groups(); ++g) {
    const DeviceGroup& group = system.groups[g];
    GraphPipePool pool = pool_of(tables.part(g));
    if (system.device_count <= group.devices_per_node) {
      pool.bandwidth_bytes_per_s = pool.node_bandwidth_bytes_per_s;
    }
    if (tables.groups() > 1 && group.node_bytes_per_s > 0) {
      const auto sharing = static_cast<double>(group.devices_per_node);
      pool.bandwidth_bytes_per_s =
          std::min(pool.bandwidth_bytes_per_s, group.node_bytes_per_s / sharing);
    }
    problem.pools.push_back(pool);
  }
}

bool no_worse(const GraphPipeCost& a, const GraphPipeCost& b) {
  const auto all = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), std::less_equal<>());
  };
  return all(a.forward_s, b.forward_s) && all(a.backward_s, b.backward_s) &&
         a.fixed_bytes <= b.fixed_bytes && a.gradient_bytes <= b.gradient_bytes &&
         a.expert_gradient_bytes <= b.expert_gradient_bytes && a.stash_bytes <= b.stash_bytes &&
         a.working_bytes <= b.working_bytes;
}

/// Leaves out strategies that an earlier one of their kind is no worse than for every layer.
void drop_useless_strategies(GraphPipeJob& job) {
  GraphPipeProblem& problem = job.problem;
  for (std::size_t w = 1; w < job.strategies.size();) {
    const auto place = static_cast<std::ptrdiff_t>(w);
    bool useless = false;
    for (std::size_t other = 0; other < w && !useless; ++other) {
      useless = problem.strategies[other] == problem.strategies[w] &&
                std::all_of(problem.kinds.begin(), problem.kinds.end(),
                            [&](const auto& kind) { return no_worse(kind[other], kind[w]); });
    }
    if (!useless) {
      ++w;
      continue;
    }
    job.strategies.erase(job.strategies.begin() + place);
    if (w < job.manual) --job.manual;
    problem.strategies.erase(problem.strategies.begin() + place);
    for (GraphPipeKind& kind : problem.kinds) kind.erase(kind.begin() + place);
  }
}

/// Of each group.
std::vector<std::int64_t> first_devices(const System& system) {
  std::vector<std::int64_t> first(system.groups.size(), -1);
  for (const DeviceRun& run : device_runs(system)) {
    if (first[run.group] < 0) first[run.group] = run.first;
  }
  return first;
}

}  // namespace

GroupTables::GroupTables(const Job& job, const System& system) : layers_(layer_options(job)) {
  const std::size_t groups = system.groups.size();
  if (groups > kMostGraphPipePools) {
    throw Error("the planner graphpipe takes at most " + std::to_string(kMostGraphPipePools) +
                    " kinds of devices, and " + system.name + " has " + std::to_string(groups),
                "plan on some of them, or use --planner braid");
  }
  parts_.reserve(groups);
  tables_.reserve(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    parts_.push_back(is_homogeneous(system) ? system : group_of(system, g));
    tables_.emplace_back(job, parts_.back(), LayerTables::Stages::unknown);
  }
}

GraphPipeJob graphpipe_job(const Job& job, const System& system, GroupTables& tables,
                           const GraphPipeSpace& space) {
  GraphPipeJob result;
  GraphPipeProblem& problem = result.problem;
  const std::vector<std::int64_t> sizes = powers_in(job.global_batch);
  problem.device_samples = sizes;
  if (space.listed != nullptr) {
    const std::set<int> listed = space.listed->micro_batches();
    std::erase_if(problem.device_samples, [&](std::int64_t samples) {
      return !listed.contains(static_cast<int>(samples));
    });
    if (problem.device_samples.empty()) {
      throw Error("the profile has no micro-batch of a power of two that divides the batch of " +
                      std::to_string(job.global_batch),
                  "the graphpipe planner tries powers of two");
    }
  }
  fill_strategies(tables, space, result);
  fill_pools(system, tables, problem);
  problem.batch = job.global_batch;
  problem.groups.reserve(sizes.size());
  for (const std::int64_t samples : sizes) {
    if (samples % problem.device_samples.front() == 0) problem.groups.push_back({samples, 1});
  }
  for (std::size_t w = 0; w < result.strategies.size(); ++w) {
    const Configuration& strategy = result.strategies[w];
    LayerTables& of_group = tables.of(at(problem.strategies[w].pool));
    std::vector<const LayerTable*> by_samples;
    by_samples.reserve(problem.device_samples.size());
    Configuration form = strategy;
    for (const std::int64_t samples : problem.device_samples) {
      form.micro_batch = static_cast<int>(samples);
      by_samples.push_back(&of_group.sums_at(form));
    }
    problem.kinds.resize(by_samples.front()->kinds.size());
    std::vector<LayerCost> costs(by_samples.size());
    for (std::size_t kind = 0; kind < problem.kinds.size(); ++kind) {
      for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = by_samples[i]->kinds[kind];
      problem.kinds[kind].push_back(cost_of(costs, problem.device_samples, job.precision));
    }
  }
  const Profile& layers = tables.layers().layers();
  for (const ProfileLayer& layer : layers.layers) problem.nodes.push_back(layer.kind);
  for (const ProfileEdge& edge : layers.edges) {
    problem.edges.push_back({edge.source, edge.target, edge.bytes});
  }
  drop_useless_strategies(result);
  return result;
}

Plan graphpipe_plan(const Job& job, const System& system, GroupTables& tables,
                    const GraphPipeJob& planned, const GraphPipeSolution& solution) {
  PlanBuilder builder(blank_plan(job, tables.layers(), system), "graphpipe");
  Plan& plan = builder.plan();
  plan.parallel.pp = static_cast<int>(solution.stages.size());
  plan.profile.chip = chip_names_of(system);
  const auto group_of_stage = [&](const GraphPipeStage& stage) {
    return at(planned.problem.strategies[at(stage.strategy)].pool);
  };
  for (const GraphPipeStage& from : solution.stages) {
    Configuration how = planned.strategies[at(from.strategy)];
    how.dp = static_cast<std::int32_t>(from.devices / how.tp);
    how.micro_batch = static_cast<std::int32_t>(from.group.micro_batch / how.dp);
    const std::size_t group = group_of_stage(from);
    const auto place = tables.groups() > 1 ? static_cast<std::int32_t>(group) : -1;
    const std::int32_t option = builder.option(tables.of(group), how, place);
    Stage& stage = builder.add_stage(how, {});
    stage.own = stage_config(how);
    add_layers(from.nodes, option, stage.chunks.emplace_back());
  }
  // Large stages first: powers of two then never straddle a node that they fit in.
  std::vector<std::size_t> by_size(plan.stages.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return solution.stages[a].devices > solution.stages[b].devices;
  });
  std::vector<std::int64_t> next = first_devices(system);
  for (const std::size_t s : by_size) {
    std::int64_t& device = next[group_of_stage(solution.stages[s])];
    for (std::int64_t i = 0; i < solution.stages[s].devices; ++i) {
      plan.stages[s].devices.push_back(device++);
    }
  }
  return builder.take();
}

}  // namespace braid
