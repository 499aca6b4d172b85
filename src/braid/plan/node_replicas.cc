#include "braid/plan/node_replicas.h"

namespace braid {

int node_replicas(const System& system, const Parallelism& parallel) {
  if (system.groups.size() != 1 || parallel.pp != 1 || parallel.zero != Zero::parameters) return 1;
  const DeviceGroup& group = system.groups.front();
  if (group.nodes <= 1 || group.nodes * group.devices_per_node != parallel.devices() ||
      parallel.dp % group.nodes != 0) {
    return 1;
  }
  return static_cast<int>(group.nodes);
}

}  // namespace braid
