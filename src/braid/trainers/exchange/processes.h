#pragma once

#include <cstdint>
#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// Devices of one computer: of a rack, of a tray; else of a node.
std::int64_t devices_of_computer(const DeviceGroup& group);

/// How torchrun starts a plan's processes, one for each device: as many on every node.
struct Processes {
  std::int64_t per_node = 1, nodes = 1;
  std::string note;  ///< Where these are not the plan's nodes; else empty.
};

/// Fills computers (of a rack, its trays) where the devices do so; else takes the most on each that
/// divide the devices, whole tensor-parallel groups if that can be.
///
///     processes_of(plan);  // 12 devices on nodes of 8, tp 2: 6 on each of 2
Processes processes_of(const Plan& plan);

}  // namespace braid
