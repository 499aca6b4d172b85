#include "braid/planners/piper/plain_system.h"

#include <string>
#include <utility>

namespace braid {
namespace {

/// Of `size` units of so many devices.
NetworkLevel plain_level(std::int64_t size, double unit_bytes_per_s, std::int64_t unit_devices) {
  NetworkLevel level;
  level.name = "as given";
  level.size = size;
  level.unit_bytes_per_s = unit_bytes_per_s;
  level.bytes_per_s = unit_bytes_per_s / static_cast<double>(unit_devices);
  level.efficiency = 1;
  return level;
}

}  // namespace

System plain_system(std::int64_t devices, double memory_bytes, double bytes_per_s) {
  return plain_system(std::vector<PiperLevel>{{devices, bytes_per_s}}, memory_bytes);
}

System plain_system(const std::vector<PiperLevel>& levels, double memory_bytes) {
  System system;
  DeviceGroup group;
  group.chip.name = "device";
  group.chip.description = "as the profile and the command line have it";
  group.chip.memory = {"memory", memory_bytes, 0};
  group.devices_per_node = levels.front().devices;
  group.intra_node = plain_level(levels.front().devices, levels.front().bandwidth_bytes, 1);
  system.device_count = levels.front().devices;
  for (std::size_t l = 1; l < levels.size(); ++l) {
    system.levels.push_back(
        plain_level(levels[l].devices, levels[l].bandwidth_bytes, system.device_count));
    system.device_count *= levels[l].devices;
  }
  group.nodes = system.device_count / group.devices_per_node;
  system.groups.push_back(std::move(group));
  system.name = std::to_string(system.device_count) + " devices";
  return system;
}

}  // namespace braid
