#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/system/chip.h"

namespace braid {

//   const System system = load_system("dgx-h100:16");          // two nodes of eight
//   system.groups.front().chip.name;                           // "h100-sxm"
//   matmul_peak(system.groups.front().chip, Dtype::bf16);      // 989.4e12 FLOP/s, dense

enum class Topology : std::uint8_t { ring, fully_connected, switched, torus, dragonfly };

/// One level of a hierarchical network, joining `size` units of the level below (devices, then
/// nodes, then racks …).
struct NetworkLevel {
  std::string name;  ///< "NVLink", "InfiniBand NDR".
  Topology topology = Topology::switched;
  std::int64_t size = 1;  ///< Units joined. The outermost level's size fits the device count.
  std::vector<std::int64_t>
      torus_dims;  ///< For torus (product = size) and dragonfly (groups, routers).
  double bytes_per_s =
      0;  ///< What one device sends, one direction, when all of its unit's devices do.
  double unit_bytes_per_s =
      0;                 ///< What one unit of the level below sends in all (its NICs together).
  double latency_s = 0;  ///< Of one message across this level.
  int rails = 1;         ///< Parallel networks; a device reaches its own rail at full rate.
  double oversubscription = 1;  ///< ≥ 1: cross-section bandwidth is the sum of units' / this.
  double efficiency = 0.9;      ///< Achieved share of the bandwidth for large messages.
  double half_bytes = 0;        ///< Message size at which half of that is achieved; 0: none.
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

/// Devices of one chip in equal nodes.
struct DeviceGroup {
  Chip chip;
  std::int64_t nodes = 1;
  std::int64_t devices_per_node = 1;
  /// Devices of one computer, where a node is a rack of several; 0: the node is one.
  std::int64_t devices_per_host = 0;
  NetworkLevel intra_node;  ///< Level 0 for these devices.
  /// What one of these nodes sends into the innermost level in all, where that is less than the
  /// level's own figure; 0: the level's.
  double node_bytes_per_s = 0;
  double node_usd_per_hour = 0;  ///< What one of these nodes costs to rent; 0: not known.
  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
};

/// A cluster. Devices are numbered 0 … device_count-1 group by group, node by node.
struct System {
  std::string name;
  std::string description;           ///< For lists; may be empty.
  std::vector<DeviceGroup> groups;   ///< One for a homogeneous cluster.
  std::vector<NetworkLevel> levels;  ///< Above the node, innermost first; sizes count nodes.
  std::int64_t device_count = 1;     ///< May leave the last node partly filled.
  /// Explicit bandwidth between devices (bytes/s, row-major device_count², from row to column, 0
  /// on the diagonal); overrides the levels.
  std::vector<double> bandwidth_matrix;
  std::vector<Provenance> provenance;

  friend bool operator==(const System&, const System&) = default;
};

/// One kind of device in equal nodes on a hierarchical network.
inline bool is_homogeneous(const System& system) {
  return system.groups.size() == 1 && system.bandwidth_matrix.empty();
}

/// The least compute_capability() of the chips of which one is known; infinite where none is.
double least_compute_capability(const System& system);

/// Catalogue chip by name or a YAML/JSON file by path. Throws Error (unknown: the nearest names).
Chip load_chip(const std::string& name_or_path);

/// `NAME`, `NAME:N` (N devices) or `NAME:Nnodes`, where NAME is in the catalogue or a file's path;
/// several of them joined by `+` make a mixed system: `p3.8xlarge:3nodes+g4dn.12xlarge:1nodes`.
/// Throws Error.
System load_system(const std::string& spec);

std::vector<std::string> chip_names();     ///< Sorted.
std::vector<std::string> cluster_names();  ///< Sorted.

}  // namespace braid
