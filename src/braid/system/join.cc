#include "braid/system/join.h"

#include <algorithm>
#include <cassert>

#include "braid/base/error.h"
#include "braid/system/catalogue.h"

namespace braid {
namespace {

std::int64_t places(const System& system) {
  std::int64_t sum = 0;
  for (const DeviceGroup& group : system.groups) sum += group.nodes * group.devices_per_node;
  return sum;
}

void check_part(const System& part, bool last) {
  if (!part.bandwidth_matrix.empty()) {
    throw Error(part.name + " has a bandwidth matrix and cannot be joined to another cluster",
                "write one matrix for all devices");
  }
  if (part.levels.size() != 1) {
    throw Error(part.name + " has " + std::to_string(part.levels.size()) +
                    " networks above its nodes, and joining clusters needs exactly one",
                "describe the whole in one file with groups and levels");
  }
  if (!last && part.device_count != places(part)) {
    throw Error(part.name + " has a partly filled node", "give its size in nodes: NAME:8nodes");
  }
}

/// Appends nodes, to the last group where they are of the same kind.
void append(DeviceGroup group, std::vector<DeviceGroup>& groups) {
  if (!groups.empty()) {
    DeviceGroup same = groups.back();
    same.nodes = group.nodes;
    if (same == group) {
      groups.back().nodes += group.nodes;
      return;
    }
  }
  groups.push_back(std::move(group));
}

}  // namespace

System join_systems(std::span<const System> parts) {
  assert(!parts.empty());
  if (parts.size() == 1) return parts.front();
  System joined;
  NetworkLevel level = parts.front().levels.empty() ? NetworkLevel{} : parts.front().levels.front();
  level.size = 0;
  joined.device_count = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const System& part = parts[i];
    check_part(part, i + 1 == parts.size());
    const NetworkLevel& own = part.levels.front();
    joined.name += (i == 0 ? "" : "+") + part.name;
    joined.device_count += part.device_count;
    if (joined.device_count > kMostDevices) {
      throw Error(Where{"", 0, "--cluster"}, "that is more than 2^31 devices");
    }
    if (i > 0) level.name += level.name == own.name ? "" : " + " + own.name;
    level.bytes_per_s = std::max(level.bytes_per_s, own.bytes_per_s);
    level.unit_bytes_per_s = std::max(level.unit_bytes_per_s, own.unit_bytes_per_s);
    level.latency_s = std::max(level.latency_s, own.latency_s);
    level.efficiency = std::min(level.efficiency, own.efficiency);
    level.half_bytes = std::max(level.half_bytes, own.half_bytes);
    level.rails = std::max(level.rails, own.rails);
    for (DeviceGroup group : part.groups) {
      const double uplink = own.unit_bytes_per_s / own.oversubscription;
      group.node_bytes_per_s =
          group.node_bytes_per_s > 0 ? std::min(group.node_bytes_per_s, uplink) : uplink;
      level.size += group.nodes;
      append(std::move(group), joined.groups);
    }
    for (Provenance entry : part.provenance) {
      entry.key = part.name + " " + entry.key;
      if (std::find(joined.provenance.begin(), joined.provenance.end(), entry) ==
          joined.provenance.end()) {
        joined.provenance.push_back(std::move(entry));
      }
    }
  }
  level.topology = Topology::switched;
  level.torus_dims.clear();
  level.oversubscription = 1;
  joined.levels = {level};
  joined.provenance.push_back(
      {"levels",
       "the parts' networks are joined by a switch; between two nodes the slower uplink decides, "
       "with the worse latency and efficiency of the parts",
       true});
  return joined;
}

}  // namespace braid
