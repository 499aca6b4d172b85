#include "braid/system/aligned_span.h"

#include <algorithm>

namespace braid {

std::vector<std::int64_t> unit_devices(const System& system) {
  std::vector<std::int64_t> devices{system.groups.front().devices_per_node};
  for (const NetworkLevel& level : system.levels) {
    devices.push_back(devices.back() * std::max<std::int64_t>(1, level.size));
  }
  devices.back() = std::max(devices.back(), system.device_count);
  return devices;
}

GroupSpan aligned_span(const System& system, std::int64_t stride, std::int64_t size) {
  const std::vector<std::int64_t> devices = unit_devices(system);
  GroupSpan span;
  std::int64_t unit = 1;    // Devices in a unit of the level below.
  std::int64_t inside = 1;  // Group members in such a unit.
  for (std::size_t l = 0; l < devices.size(); ++l) {
    const bool outermost = l + 1 == devices.size();
    const std::int64_t within =
        outermost ? size : std::clamp<std::int64_t>(devices[l] / stride, inside, size);
    const std::int64_t members = (within + inside - 1) / inside;
    span.members.push_back(members);
    span.sharing.push_back(l == 0 || members == 1 ? 1 : std::max<std::int64_t>(1, unit / inside));
    unit = devices[l];
    inside = within;
  }
  return span;
}

}  // namespace braid
