#include "braid/planners/graphpipe_job.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "braid/base/error.h"
#include "braid/plan/totals.h"

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

}  // namespace braid
