#include "braid/plan/bound.h"

#include <algorithm>

#include "braid/graph/op_work.h"
#include "braid/plan/network_bound.h"

namespace braid {

LowerBound lower_bound(const Graph& graph, const Precision& precision, std::int64_t global_batch,
                       const System& system, ShardingSource sharding) {
  double matmul_rate = 0;
  double bytes_per_s = 0;
  std::int64_t counted = 0;
  for (std::size_t g = 0; g < system.groups.size(); ++g) {
    const DeviceGroup& group = system.groups[g];
    const bool last = g + 1 == system.groups.size();
    const std::int64_t devices =
        last ? system.device_count - counted : group.nodes * group.devices_per_node;
    counted += devices;
    const double peak = matmul_peak_in(group.chip, precision);
    // Pointwise work may run beside the matrix units, so only matrix work is bounded by their peak.
    matmul_rate += static_cast<double>(devices) * peak;
    bytes_per_s += static_cast<double>(devices) * group.chip.memory.bytes_per_s;
  }
  const double passes = static_cast<double>(global_batch) / static_cast<double>(graph.samples);

  std::vector<double> kind_flops;
  double flops = 0;
  for (const Layer& layer : graph.layers) {
    const auto kind = static_cast<std::size_t>(layer.kind);
    if (layer.kind >= 0 && kind < kind_flops.size() && kind_flops[kind] >= 0) {
      flops += kind_flops[kind];
      continue;
    }
    double sum = 0;
    for (OperatorId op = layer.first; op < layer.last; ++op) {
      const Operator& oper = graph.operators[static_cast<std::size_t>(op)];
      sum += forward_model_flops(graph, oper) + backward_model_flops(graph, oper);
    }
    if (layer.kind >= 0) {
      if (kind >= kind_flops.size()) kind_flops.resize(kind + 1, -1);
      kind_flops[kind] = sum;
    }
    flops += sum;
  }
  LowerBound bound;
  bound.compute_s = flops * passes / matmul_rate;
  // Each weight is read in both passes and its gradient written at least once per iteration; the
  // optimizer state is read and written too, but may do so in host memory where there is any.
  bool has_host = false;
  for (const DeviceGroup& group : system.groups) has_host |= group.chip.host.has_value();
  const auto parameters = static_cast<double>(parameter_count(graph));
  const double state_bytes =
      parameters *
      (2 * bytes_per_element(precision.weight) + bytes_per_element(precision.gradient) +
       (has_host ? 0 : 2 * precision.optimizer_bytes_per_parameter));
  bound.memory_s = state_bytes / bytes_per_s;
  bound.network_s = network_bound_s(graph, precision, global_batch, system, sharding);
  bound.time_s = std::max({bound.compute_s, bound.memory_s, bound.network_s});
  bound.binding = bound.time_s == bound.compute_s  ? "arithmetic at peak"
                  : bound.time_s == bound.memory_s ? "memory bandwidth"
                                                   : "network";
  return bound;
}

}  // namespace braid
