#include "braid/planners/graphpipe_job.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "braid/base/error.h"
#include "braid/plan/model_shape.h"

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

GraphPipeKind kind_of(const std::vector<Option>& options, const Precision& precision,
                      std::size_t samples) {
  GraphPipeKind kind;
  if (options.size() != samples) {
    throw Error("the model does not run with every number of samples per device");
  }
  for (const Option& option : options) {
    kind.forward_s.push_back(option.cost.forward.total_s());
    kind.backward_s.push_back(option.cost.backward_s());
    const auto count = static_cast<double>(option.how.micro_batch);
    kind.stash_bytes = std::max(kind.stash_bytes, option.cost.stash_bytes / count);
    kind.working_bytes = std::max(kind.working_bytes, option.cost.working_bytes / count);
  }
  const LayerCost& cost = options.front().cost;
  const double parameters = cost.dense_parameters + cost.expert_parameters;
  kind.gradient_bytes = parameters * bytes_per_element(precision.gradient);
  kind.fixed_bytes = kind.gradient_bytes + parameters * (bytes_per_element(precision.weight) +
                                                         precision.optimizer_bytes_per_parameter);
  return kind;
}

}  // namespace

GraphPipeProblem graphpipe_problem(const Job& job, const System& system) {
  if (!is_homogeneous(system)) {
    throw Error("the planner graphpipe wants devices of one kind on one network",
                "give a cluster of one kind");
  }
  GraphPipeProblem problem;
  problem.batch = job.global_batch;
  problem.devices = system.device_count;
  problem.device_samples = powers_in(job.global_batch);
  std::vector<Execution> executions;
  for (const std::int64_t samples : problem.device_samples) {
    Execution how;
    how.micro_batch = static_cast<int>(samples);
    executions.push_back(how);
    problem.groups.push_back({samples, 1});
  }
  const Profile profile = estimate_profile(*job.graph, executions, job.precision, system);
  for (const std::vector<Option>& options : profile.kinds) {
    problem.kinds.push_back(kind_of(options, job.precision, executions.size()));
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
  return problem;
}

Plan graphpipe_plan(const Job& job, const System& system, const GraphPipeSolution& solution) {
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
  std::vector<Execution> executions;  // One for each number of samples per device.
  for (const GraphPipeStage& from : solution.stages) {
    Execution how;
    how.micro_batch = static_cast<int>(from.group.micro_batch / from.devices);
    auto option = std::find(executions.begin(), executions.end(), how);
    if (option == executions.end()) option = executions.insert(option, how);
    Stage stage;
    stage.dp = static_cast<int>(from.devices);
    stage.own.emplace();
    stage.own->micro_batch = how.micro_batch;
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
                   [](const Stage* a, const Stage* b) { return a->dp > b->dp; });
  std::int64_t next = 0;
  for (Stage* stage : by_size) {
    for (int i = 0; i < stage->dp; ++i) stage->devices.push_back(next++);
  }
  return plan;
}

}  // namespace braid
