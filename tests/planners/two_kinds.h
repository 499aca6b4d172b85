#pragma once

#include <random>

#include "braid/system/system.h"

#include "planners/tiny_job.h"

namespace braid::test {

/// Two kinds of devices in full nodes of one or two on one switch, at least `first` and `second` of
/// them; the second kind has other memory, too.
inline System two_kinds(std::mt19937_64& random, int first, int second, double memory_bytes) {
  System system = tiny_system(random, first, memory_bytes);
  const System other =
      tiny_system(random, second, memory_bytes * (0.5 + pick(random, 0, 4) * 0.25));
  system.groups.push_back(other.groups.front());
  system.groups.back().chip.name = "other";
  for (DeviceGroup& group : system.groups) {
    // Full nodes, so that one more is one more.
    group.devices_per_node = group.devices_per_node > 1 && pick(random, 0, 1) == 0 ? 1 : 2;
  }
  system.groups[0].nodes =
      (first + system.groups[0].devices_per_node - 1) / system.groups[0].devices_per_node;
  system.groups[1].nodes =
      (second + system.groups[1].devices_per_node - 1) / system.groups[1].devices_per_node;
  NetworkLevel level;
  level.name = "network";
  level.size = system.groups[0].nodes + system.groups[1].nodes;
  level.bytes_per_s = 1e6 * pick(random, 1, 100);
  level.unit_bytes_per_s = 2 * level.bytes_per_s;
  level.latency_s = 1e-6 * pick(random, 0, 20);
  system.levels = {level};
  system.device_count = system.groups[0].nodes * system.groups[0].devices_per_node +
                        system.groups[1].nodes * system.groups[1].devices_per_node;
  return system;
}

}  // namespace braid::test
