#include "braid/system/group_steps.h"

#include <algorithm>

#include "braid/system/topology.h"

namespace braid {
namespace {

/// Level 0 is inside the node; of mixed nodes, inside the slowest.
const NetworkLevel& level_of(const System& system, std::size_t level) {
  if (level > 0) return system.levels[level - 1];
  const auto slowest = std::min_element(
      system.groups.begin(), system.groups.end(), [](const DeviceGroup& a, const DeviceGroup& b) {
        return a.intra_node.bytes_per_s < b.intra_node.bytes_per_s;
      });
  return slowest->intra_node;
}

/// What every unit that `level` joins can send into it.
double unit_bandwidth(const System& system, std::size_t level) {
  double bandwidth = unit_bandwidth(level_of(system, level));
  if (level != 1) return bandwidth;
  for (const DeviceGroup& group : system.groups) {
    if (group.node_bytes_per_s > 0) bandwidth = std::min(bandwidth, group.node_bytes_per_s);
  }
  return bandwidth;
}

}  // namespace

double unit_bandwidth(const NetworkLevel& level) {
  return std::max(level.unit_bytes_per_s, level.bytes_per_s);
}

GroupSteps steps_of(const GroupSpan& span, const System& system) {
  GroupSteps steps;
  for (std::size_t l = 0; l < span.members.size() && steps.count < kMostLevels; ++l) {
    if (span.members[l] > 1) {
      const NetworkLevel& level = level_of(system, l);
      LevelStep& step = steps.step[steps.count++];
      step.level = &level;
      step.members = static_cast<double>(span.members[l]);
      step.inner = steps.size;
      if (l == 0) {
        step.flow_bandwidth = level.bytes_per_s;
        step.group_bandwidth = level.bytes_per_s;
      } else {
        const double unit = unit_bandwidth(system, l) / level.oversubscription;
        const double share = unit / static_cast<double>(std::max<std::int64_t>(1, span.sharing[l]));
        const double rail = unit / level.rails;
        step.flow_bandwidth = std::min(share, rail);
        step.group_bandwidth = std::min(share, rail * step.inner);
      }
      const double fraction = group_fraction(level, step.members);
      step.group_bandwidth *= fraction;
      step.flow_bandwidth *= fraction;
    }
    steps.size *= static_cast<double>(span.members[l]);
  }
  return steps;
}

}  // namespace braid
