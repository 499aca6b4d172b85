#include "braid/validate/node_replicas.h"

#include "braid/system/collective.h"
#include "braid/system/group_span.h"

namespace braid {

std::optional<NodeReplica> node_replica(const System& system, const Parallelism& parallel,
                                        std::int64_t global_batch) {
  if (system.groups.size() != 1 || parallel.pp != 1) return std::nullopt;
  const DeviceGroup& group = system.groups.front();
  const std::int64_t nodes = group.nodes;
  if (nodes <= 1 || nodes * group.devices_per_node != parallel.devices() ||
      parallel.dp % nodes != 0) {
    return std::nullopt;
  }
  NodeReplica replica{system, parallel, global_batch / nodes};
  replica.system.groups.front().nodes = 1;
  replica.system.device_count = group.devices_per_node;
  replica.system.levels.clear();
  replica.parallel.dp = static_cast<int>(parallel.dp / nodes);
  return replica;
}

double sync_nodes_s(const System& system, double gradient_bytes) {
  const DeviceGroup& group = system.groups.front();
  const double share_bytes = gradient_bytes / static_cast<double>(group.devices_per_node);
  const GroupSpan span = span_of(system, group.devices_per_node, group.nodes);
  return collective_time(Collective::all_reduce, share_bytes, span, system).time_s;
}

}  // namespace braid
