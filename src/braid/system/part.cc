#include "braid/system/part.h"

#include <algorithm>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {
namespace {

/// Devices of a group, of which the last may not fill its nodes.
std::int64_t devices_of(const System& system, std::size_t group) {
  std::int64_t before = 0;
  for (std::size_t g = 0; g < group; ++g) {
    before += system.groups[g].nodes * system.groups[g].devices_per_node;
  }
  return std::min(system.groups[group].nodes * system.groups[group].devices_per_node,
                  std::max<std::int64_t>(0, system.device_count - before));
}

std::int64_t first_of(const System& system, std::size_t group) {
  std::int64_t first = 0;
  for (std::size_t g = 0; g < group; ++g) {
    first += system.groups[g].nodes * system.groups[g].devices_per_node;
  }
  return first;
}

NetworkLevel flat_level(const std::string& name, std::int64_t size, double bytes_per_s,
                        std::int64_t unit_devices) {
  NetworkLevel level;
  level.name = name;
  level.topology = Topology::switched;
  level.size = size;
  level.bytes_per_s = bytes_per_s;
  level.unit_bytes_per_s = bytes_per_s * static_cast<double>(unit_devices);
  // A matrix says nothing of shared links: each device has its own.
  level.rails = static_cast<int>(std::min<std::int64_t>(unit_devices, 1 << 20));
  level.efficiency = 1;
  return level;
}

/// Sets the networks of `part`, group `group` of a system with a bandwidth matrix.
void flatten_matrix(const System& system, std::size_t group, System& part) {
  double inside = kInfinity;
  double outside = inside;
  const std::int64_t first = first_of(system, group);
  const std::int64_t per_node = part.groups.front().devices_per_node;
  for (std::int64_t a = 0; a < part.device_count; ++a) {
    for (std::int64_t b = 0; b < part.device_count; ++b) {
      if (a == b) continue;
      const double entry = system.bandwidth_matrix[static_cast<std::size_t>(
          (first + a) * system.device_count + first + b)];
      double& slowest = a / per_node == b / per_node ? inside : outside;
      slowest = std::min(slowest, entry);
    }
  }
  // Where there is nobody to send to, any figure will do.
  const double some = std::min(inside, outside);
  const double known = some < kInfinity ? some : 1.0;
  const double none = kInfinity;
  NetworkLevel& node = part.groups.front().intra_node;
  node = flat_level(node.name, per_node, inside < none ? inside : known, 1);
  part.groups.front().node_bytes_per_s = 0;
  part.levels = {flat_level("between nodes", part.groups.front().nodes,
                            outside < none ? outside : known, per_node)};
  part.bandwidth_matrix.clear();
}

}  // namespace

std::vector<DeviceRun> device_runs(const System& system) {
  std::vector<DeviceRun> runs;
  for (std::size_t g = 0; g < system.groups.size(); ++g) {
    const std::int64_t count = devices_of(system, g);
    const std::int64_t first = first_of(system, g);
    const std::int64_t per_node = system.groups[g].devices_per_node;
    const std::int64_t full = count / per_node * per_node;
    if (full > 0) runs.push_back({g, first, full, per_node});
    if (full < count) runs.push_back({g, first + full, count - full, count - full});
  }
  return runs;
}

System group_of(const System& system, std::size_t group) {
  System part;
  part.name = system.name;
  part.groups = {system.groups[group]};
  part.levels = system.levels;
  part.device_count = std::max<std::int64_t>(1, devices_of(system, group));
  if (!system.bandwidth_matrix.empty()) flatten_matrix(system, group, part);
  return part;
}

std::optional<System> part_with_peak(const System& system, Dtype dtype) {
  System part = system;
  part.groups.clear();
  part.device_count = 0;
  std::vector<std::int64_t> kept;  // Their numbers in the whole.
  std::int64_t nodes = 0;
  for (std::size_t g = 0; g < system.groups.size(); ++g) {
    if (!matmul_peak(system.groups[g].chip, dtype)) continue;
    const std::int64_t count = devices_of(system, g);
    if (count == 0) continue;
    part.groups.push_back(system.groups[g]);
    part.device_count += count;
    nodes += system.groups[g].nodes;
    if (system.bandwidth_matrix.empty()) continue;
    for (std::int64_t d = 0; d < count; ++d) kept.push_back(first_of(system, g) + d);
  }
  if (part.groups.empty()) return std::nullopt;
  if (part.levels.size() == 1 && part.levels.front().torus_dims.empty()) {
    part.levels.front().size = std::min(part.levels.front().size, nodes);
  }
  part.bandwidth_matrix.clear();
  part.bandwidth_matrix.reserve(kept.size() * kept.size());
  for (const std::int64_t from : kept) {
    for (const std::int64_t to : kept) {
      part.bandwidth_matrix.push_back(
          system.bandwidth_matrix[static_cast<std::size_t>(from * system.device_count + to)]);
    }
  }
  return part;
}

System with_equal_groups_joined(System system) {
  std::vector<DeviceGroup> joined;
  for (DeviceGroup& group : system.groups) {
    if (!joined.empty()) {
      DeviceGroup same = joined.back();
      same.nodes = group.nodes;
      if (same == group) {
        joined.back().nodes += group.nodes;
        continue;
      }
    }
    joined.push_back(std::move(group));
  }
  system.groups = std::move(joined);
  return system;
}

}  // namespace braid
