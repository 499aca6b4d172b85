#include "braid/planners/graphpipe_job.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "braid/base/error.h"
#include "braid/plan/model_shape.h"
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

/// Of the options [first, last), which differ in samples alone.
GraphPipeCost cost_of(std::span<const Option> options, const Precision& precision) {
  GraphPipeCost cost;
  for (const Option& option : options) {
    cost.forward_s.push_back(option.cost.forward.total_s());
    cost.backward_s.push_back(option.cost.backward_s());
    const auto count = static_cast<double>(option.how.micro_batch);
    cost.stash_bytes = std::max(cost.stash_bytes, option.cost.stash_bytes / count);
    cost.working_bytes = std::max(cost.working_bytes, option.cost.working_bytes / count);
  }
  const LayerCost& any = options.front().cost;
  const double parameters = any.dense_parameters + any.expert_parameters;
  cost.gradient_bytes = parameters * bytes_per_element(precision.gradient);
  cost.fixed_bytes = cost.gradient_bytes + parameters * (bytes_per_element(precision.weight) +
                                                         precision.optimizer_bytes_per_parameter);
  return cost;
}

/// The ways that model and `space` allow, the plain one first.
std::vector<Execution> ways_of(const Graph& graph, const System& system,
                               const SpaceOptions& space) {
  const bool data = space.stage_options == StageOptions::data;
  const std::int64_t most_tp =
      std::min(system.groups.front().devices_per_node, system.device_count);
  const SplitLimits limits = split_limits(graph);
  std::vector<Execution> ways;
  Execution how;
  for (how.tp = 1; how.tp <= most_tp; how.tp *= 2) {
    // Or some replicas would lie in two nodes.
    if (system.groups.front().devices_per_node % how.tp != 0) break;
    if (space.tp ? *space.tp != how.tp : data && how.tp > 1) continue;
    for (const Recompute kind : {Recompute::none, Recompute::selective, Recompute::full}) {
      if (space.recompute ? *space.recompute != kind : data && kind != Recompute::none) continue;
      how.recompute = kind;
      // Each device then hands on its part of the sequence alone.
      how.sequence_parallel = how.tp > 1 && space.sequence_parallel.value_or(true);
      if (!refusal(limits, how).empty() && !space.sequence_parallel) how.sequence_parallel = false;
      if (refusal(limits, how).empty()) ways.push_back(how);
    }
  }
  if (ways.empty()) {
    throw Error("no stage can run as asked",
                "the graphpipe planner has tensor parallelism of powers of two that divide a node");
  }
  return ways;
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
    problem.ways.erase(problem.ways.begin() + place);
    for (GraphPipeKind& kind : problem.kinds) kind.erase(kind.begin() + place);
  }
}

}  // namespace

GraphPipeJob graphpipe_job(const Job& job, const System& system, const SpaceOptions& space) {
  if (!is_homogeneous(system)) {
    throw Error("the planner graphpipe wants devices of one kind on one network",
                "give a cluster of one kind");
  }
  GraphPipeJob result;
  result.ways = ways_of(*job.graph, system, space);
  GraphPipeProblem& problem = result.problem;
  problem.batch = job.global_batch;
  problem.devices = system.device_count;
  problem.device_samples = powers_in(job.global_batch);
  problem.groups.reserve(problem.device_samples.size());
  for (const std::int64_t samples : problem.device_samples) problem.groups.push_back({samples, 1});
  problem.ways.clear();
  std::vector<Execution> executions;
  executions.reserve(result.ways.size() * problem.device_samples.size());
  for (const Execution& way : result.ways) {
    problem.ways.push_back({way.tp, way.sequence_parallel ? 1 : way.tp});
    for (const std::int64_t samples : problem.device_samples) {
      executions.push_back(way);
      executions.back().micro_batch = static_cast<int>(samples);
    }
  }
  const Profile profile = estimate_profile(*job.graph, executions, job.precision, system);
  const std::size_t samples = problem.device_samples.size();
  for (const std::vector<Option>& options : profile.kinds) {
    if (options.size() != executions.size()) {
      throw Error("the model does not run with every number of samples per device");
    }
    GraphPipeKind kind;
    kind.reserve(result.ways.size());
    for (std::size_t w = 0; w < result.ways.size(); ++w) {
      kind.push_back(cost_of(std::span(options).subspan(w * samples, samples), job.precision));
    }
    problem.kinds.push_back(std::move(kind));
  }
  for (const ProfileLayer& layer : profile.layers) problem.nodes.push_back(layer.kind);
  for (const ProfileEdge& edge : profile.edges) {
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

Plan graphpipe_plan(const Job& job, const System& system, const std::vector<Execution>& ways,
                    const GraphPipeSolution& solution) {
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
  std::vector<Execution> executions;  // One for each way and number of samples per device.
  for (const GraphPipeStage& from : solution.stages) {
    Execution how = ways[static_cast<std::size_t>(from.way)];
    const std::int64_t replicas = from.devices / how.tp;
    how.micro_batch = static_cast<int>(from.group.micro_batch / replicas);
    auto option = std::find(executions.begin(), executions.end(), how);
    if (option == executions.end()) option = executions.insert(option, how);
    Stage stage;
    stage.dp = static_cast<int>(replicas);
    stage.tp = how.tp;
    stage.own.emplace();
    stage.own->micro_batch = how.micro_batch;
    stage.own->sequence_parallel = how.sequence_parallel;
    stage.chunks.push_back({from.nodes, std::vector<std::int32_t>(
                                            from.nodes.size(), static_cast<std::int32_t>(
                                                                   option - executions.begin()))});
    plan.stages.push_back(std::move(stage));
  }
  plan.profile = estimate_profile(graph, executions, job.precision, system);
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
