#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/system/system.h"

namespace braid {

/// Like devices that lie next to each other: full nodes of one group, or its last node where that
/// is partly filled.
struct DeviceRun {
  std::size_t group = 0;  ///< Index into System::groups.
  std::int64_t first = 0;
  std::int64_t count = 1;
  std::int64_t devices_per_node = 1;
  friend bool operator==(const DeviceRun&, const DeviceRun&) = default;
};

/// All devices of a system, run after run.
std::vector<DeviceRun> device_runs(const System& system);

/// One group of a system by itself, as the closed forms of collective.h need it: the group's nodes
/// on the system's levels. A bandwidth matrix becomes a network inside nodes and one between them,
/// each as fast as the slowest of the group's entries there, without latency.
System group_of(const System& system, std::size_t group);

/// The groups whose chips list a matrix peak for `dtype`, as a system by themselves. Its devices
/// keep their order and are numbered from 0, so nodes behind a group that is left out move up in
/// the levels; bandwidths stay. Nullopt when there are none.
std::optional<System> part_with_peak(const System& system, Dtype dtype);

/// The same devices and networks, neighbouring groups that do not differ taken for one.
System with_equal_groups_joined(System system);

}  // namespace braid
