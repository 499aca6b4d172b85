#include "braid/planners/graphpipe_job.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "braid/base/error.h"
#include "braid/plan/model_shape.h"
#include "braid/planners/space.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/sharded_options.h"
#include "braid/profile/split_limits.h"

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

/// Of a layer that runs one way, its costs for each number of samples.
GraphPipeCost cost_of(std::span<const LayerCost> costs, std::span<const std::int64_t> samples,
                      const Precision& precision) {
  GraphPipeCost cost;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    cost.forward_s.push_back(costs[i].forward.total_s());
    cost.backward_s.push_back(costs[i].backward_s());
    const auto count = static_cast<double>(samples[i]);
    cost.stash_bytes = std::max(cost.stash_bytes, costs[i].stash_bytes / count);
    cost.working_bytes = std::max(cost.working_bytes, costs[i].working_bytes / count);
    // What divisions leave a rank may differ where they are found.
    const double parameters = costs[i].dense_parameters + costs[i].expert_parameters;
    cost.gradient_bytes =
        std::max(cost.gradient_bytes, parameters * bytes_per_element(precision.gradient));
    cost.fixed_bytes =
        std::max(cost.fixed_bytes, parameters * (bytes_per_element(precision.gradient) +
                                                 bytes_per_element(precision.weight) +
                                                 precision.optimizer_bytes_per_parameter));
  }
  return cost;
}

/// Adds the ways of one degree and kind of division, each with all kinds of recomputation.
void add_ways(Configuration way, const SpaceOptions& space, std::vector<Configuration>& ways) {
  for (const Recompute kind : {Recompute::none, Recompute::selective, Recompute::full}) {
    const bool data = space.stage_options == StageOptions::data;
    if (space.recompute ? *space.recompute != kind : data && kind != Recompute::none) continue;
    way.recompute = kind;
    ways.push_back(way);
  }
}

/// The ways that model and `space` allow, the plain one first, what is found last.
void fill_ways(const Job& job, const System& system, LayerTables& tables, const SpaceOptions& space,
               GraphPipeJob& result) {
  const bool data = space.stage_options == StageOptions::data;
  const std::int64_t most_tp =
      std::min(system.groups.front().devices_per_node, system.device_count);
  SpaceLimits limits;
  limits.split = split_limits(*job.graph);
  std::vector<Configuration> degrees;
  for (int tp = 1; tp <= most_tp; tp *= 2) {
    // Or some replicas would lie in two nodes.
    if (system.groups.front().devices_per_node % tp != 0) break;
    if (space.tp ? *space.tp != tp : data && tp > 1) continue;
    degrees.emplace_back().tp = tp;
  }
  for (Configuration way : degrees) {
    // Each device then hands on its part of the sequence alone.
    way.sequence_parallel = way.tp > 1 && space.sequence_parallel.value_or(true);
    if (!refusal(limits.split, to_execution(way)).empty() && !space.sequence_parallel) {
      way.sequence_parallel = false;
    }
    if (refusal(limits.split, to_execution(way)).empty()) add_ways(way, space, result.ways);
  }
  result.written = result.ways.size();
  if (job.sharding == ShardingSource::found) {
    limits.split.found = found_degrees(*job.graph, most_tp);
    for (const Configuration& degree : degrees) {
      for (const TensorForm& form : tensor_forms(degree, limits, space)) {
        const Configuration way = with_form(degree, form);
        if (form.division == Division::written || !tables.is_distinct(way)) continue;
        add_ways(way, space, result.ways);
      }
    }
  }
  if (result.ways.empty()) {
    throw Error("no stage can run as asked",
                "the graphpipe planner has tensor parallelism of powers of two that divide a node");
  }
}

bool no_worse(const GraphPipeCost& a, const GraphPipeCost& b) {
  const auto all = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), std::less_equal<>());
  };
  return all(a.forward_s, b.forward_s) && all(a.backward_s, b.backward_s) &&
         a.fixed_bytes <= b.fixed_bytes && a.gradient_bytes <= b.gradient_bytes &&
         a.stash_bytes <= b.stash_bytes && a.working_bytes <= b.working_bytes;
}

/// Leaves out ways that an earlier one of their kind is no worse than for every layer.
void drop_useless_ways(GraphPipeJob& job) {
  GraphPipeProblem& problem = job.problem;
  for (std::size_t w = 1; w < job.ways.size();) {
    const auto place = static_cast<std::ptrdiff_t>(w);
    bool useless = false;
    for (std::size_t other = 0; other < w && !useless; ++other) {
      useless = problem.ways[other] == problem.ways[w] &&
                std::all_of(problem.kinds.begin(), problem.kinds.end(),
                            [&](const auto& kind) { return no_worse(kind[other], kind[w]); });
    }
    if (!useless) {
      ++w;
      continue;
    }
    job.ways.erase(job.ways.begin() + place);
    if (w < job.written) --job.written;
    problem.ways.erase(problem.ways.begin() + place);
    for (GraphPipeKind& kind : problem.kinds) kind.erase(kind.begin() + place);
  }
}

}  // namespace

GraphPipeJob graphpipe_job(const Job& job, const System& system, LayerTables& tables,
                           const SpaceOptions& space) {
  if (!is_homogeneous(system)) {
    throw Error("the planner graphpipe wants devices of one kind on one network",
                "give a cluster of one kind");
  }
  GraphPipeJob result;
  fill_ways(job, system, tables, space, result);
  GraphPipeProblem& problem = result.problem;
  problem.batch = job.global_batch;
  problem.devices = system.device_count;
  problem.device_samples = powers_in(job.global_batch);
  problem.groups.reserve(problem.device_samples.size());
  for (const std::int64_t samples : problem.device_samples) problem.groups.push_back({samples, 1});
  problem.ways.clear();
  for (const Configuration& way : result.ways) {
    problem.ways.push_back({way.tp, way.sequence_parallel ? 1 : way.tp});
    std::vector<const LayerTable*> by_samples;
    by_samples.reserve(problem.device_samples.size());
    Configuration form = way;
    for (const std::int64_t samples : problem.device_samples) {
      form.micro_batch = static_cast<int>(samples);
      by_samples.push_back(&tables.sums_at(form));
    }
    problem.kinds.resize(by_samples.front()->kinds.size());
    std::vector<LayerCost> costs(by_samples.size());
    for (std::size_t kind = 0; kind < problem.kinds.size(); ++kind) {
      for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = by_samples[i]->kinds[kind];
      problem.kinds[kind].push_back(cost_of(costs, problem.device_samples, job.precision));
    }
  }
  for (const Layer& layer : job.graph->layers) problem.nodes.push_back(layer.kind);
  for (const ProfileEdge& edge : profile_edges(*job.graph)) {
    problem.edges.push_back({edge.source, edge.target, edge.bytes});
  }
  const DeviceGroup& group = system.groups.front();
  problem.bandwidth_bytes_per_s =
      system.levels.empty() || system.device_count <= group.devices_per_node
          ? group.intra_node.bytes_per_s
          : system.levels.back().bytes_per_s;
  problem.devices_per_node = group.devices_per_node;
  problem.node_bandwidth_bytes_per_s = group.intra_node.bytes_per_s;
  problem.memory_bytes = usable_bytes(group.chip);
  drop_useless_ways(result);
  return result;
}

Plan graphpipe_plan(const Job& job, const System& system, LayerTables& tables,
                    const std::vector<Configuration>& ways, const GraphPipeSolution& solution) {
  const Graph& graph = *job.graph;
  Plan plan;
  plan.planner = "graphpipe";
  plan.model = graph.name;
  plan.model_source = job.model_source;
  plan.model_parameters = static_cast<double>(parameter_count(graph));
  plan.shape = model_shape(graph);
  plan.seq_len = graph.seq_len;
  plan.global_batch = job.global_batch;
  plan.precision = job.precision;
  plan.parallel.pp = static_cast<int>(solution.stages.size());
  plan.system = system;
  std::vector<Configuration> used;  // One for each way and number of samples per device.
  for (const GraphPipeStage& from : solution.stages) {
    Configuration how = ways[static_cast<std::size_t>(from.way)];
    const std::int64_t replicas = from.devices / how.tp;
    how.micro_batch = static_cast<int>(from.group.micro_batch / replicas);
    auto option = std::find(used.begin(), used.end(), how);
    if (option == used.end()) option = used.insert(option, how);
    Stage stage;
    stage.dp = static_cast<int>(replicas);
    stage.tp = how.tp;
    stage.own.emplace();
    stage.own->micro_batch = how.micro_batch;
    stage.own->sequence_parallel = how.sequence_parallel;
    stage.chunks.push_back(
        {from.nodes, std::vector<std::int32_t>(from.nodes.size(),
                                               static_cast<std::int32_t>(option - used.begin()))});
    plan.stages.push_back(std::move(stage));
  }
  plan.profile = layer_profile(graph, system.groups.front().chip.name, profile_edges(graph));
  for (const Configuration& how : used) {
    const LayerTable& table = tables.sums_at(how);
    for (std::size_t kind = 0; kind < table.kinds.size(); ++kind) {
      plan.profile.kinds[kind].push_back(tables.option(how, kind));
      plan.profile.kinds[kind].back().cost = table.kinds[kind];
    }
  }
  // Large stages first: powers of two then never straddle a node that they fit in.
  std::vector<Stage*> by_size;
  for (Stage& stage : plan.stages) by_size.push_back(&stage);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Stage* a, const Stage* b) { return a->dp * a->tp > b->dp * b->tp; });
  std::int64_t next = 0;
  for (Stage* stage : by_size) {
    for (int i = 0; i < stage->dp * stage->tp; ++i) stage->devices.push_back(next++);
  }
  return plan;
}

}  // namespace braid
