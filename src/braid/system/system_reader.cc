#include "braid/system/system_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/system/chip_reader.h"
#include "braid/system/defaults.h"
#include "braid/system/join.h"
#include "braid/system/topology.h"
#include "braid/system/topology_name.h"

namespace braid {
namespace {

constexpr std::int64_t kMostNodes = 1 << 24;

[[noreturn]] void fail_count(const std::string& message, const std::string& remedy = {}) {
  throw Error(Where{"", 0, "--cluster"}, message, remedy);
}

/// A torus over `units` of the shape's number of dimensions; a slice of it if they are fewer.
void fit_torus(NetworkLevel& level, std::int64_t units, std::vector<Provenance>& provenance) {
  if (level.topology != Topology::torus) return;
  std::int64_t product = 1;
  bool overflow = false;
  for (const std::int64_t dim : level.torus_dims) {
    overflow |= __builtin_mul_overflow(product, dim, &product);
  }
  if (!overflow && product == units) return;
  level.torus_dims = torus_shape(units, level.torus_dims.size());
  std::string shape;
  for (const std::int64_t dim : level.torus_dims) {
    shape += (shape.empty() ? "" : " x ") + std::to_string(dim);
  }
  provenance.push_back({level.name + " dims", "a closed torus of " + shape, true});
}

/// Host memory of a node as each device's share of it, and what a host takes to issue an operator,
/// where that is known of these hosts, in place of the chip's figure.
void read_host(const Value& value, std::int64_t devices_per_node, Chip& chip) {
  value.expect_only({"name", "size", "bandwidth", "operator"});
  Memory host;
  host.name = value["name"].string_or("host");
  host.bytes =
      value["size"].as_positive_quantity(Unit::bytes) / static_cast<double>(devices_per_node);
  host.bytes_per_s = value["bandwidth"].as_positive_quantity(Unit::bytes_per_s);
  chip.host = host;
  if (!value["operator"].exists()) return;
  chip.efficiency.host_operator_s = value["operator"].as_quantity(Unit::seconds);
}

/// The cluster of the catalogue that a chip is in, read where something is left out.
class Reference {
 public:
  Reference() = default;  ///< None.
  explicit Reference(std::string chip) : chip_(std::move(chip)) {}

  const std::optional<ReferenceCluster>& cluster() {
    if (!chip_.empty()) cluster_ = reference_cluster(std::exchange(chip_, ""));
    return cluster_;
  }

 private:
  std::string chip_;  ///< Empty: read.
  std::optional<ReferenceCluster> cluster_;
};

/// A network `level` steps above a device (0: inside a node), with what is left out as in the
/// reference.
NetworkLevel level_like(const Value& value, Reference& reference, std::size_t level,
                        System& system) {
  expect_all(value, {"topology", "bandwidth"});
  const Topology topology = read_topology(value["topology"]);
  const bool is_whole =
      value["latency"].exists() && value["efficiency"].exists() && value["half_size"].exists();
  return read_level(value,
                    link_source(is_whole ? std::nullopt : reference.cluster(), topology, level),
                    system.provenance);
}

NetworkLevel level_inside_node(const Value& value, std::int64_t devices, Reference& reference,
                               System& system) {
  NetworkLevel level = level_like(value, reference, 0, system);
  if (value["size"].exists() && level.size != devices) {
    value["size"].fail(
        "the network inside a node joins its " + std::to_string(devices) + " devices",
        "leave size out");
  }
  level.size = devices;
  level.unit_bytes_per_s = std::max(level.unit_bytes_per_s, level.bytes_per_s);
  return level;
}

/// The host memory that the file says, `none` of it, or what the reference has.
void set_host(const Value& value, std::int64_t devices_per_node, Reference& reference,
              System& system, Chip& chip) {
  if (value.is_string()) {
    if (value.as_string() != "none") {
      value.fail("is no memory", "write {size: 2 TB, bandwidth: 50 GB/s}, of a node, or none");
    }
    chip.host.reset();
  } else if (value.exists()) {
    read_host(value, devices_per_node, chip);
  } else if (!chip.host && reference.cluster() && reference.cluster()->host) {
    chip.host = reference.cluster()->host;
    system.provenance.push_back(
        {"host",
         fmt::format(
             "left out: {} a device at {}, as in {} (write `host: none` where there is none)",
             format_bytes(chip.host->bytes), format_bytes_per_s(chip.host->bytes_per_s),
             reference.cluster()->name),
         true});
  }
}

/// Devices of one computer of a node; 0: not said.
std::int64_t read_devices_per_host(const Value& value, const DeviceGroup& group) {
  if (!value.exists()) return 0;
  const std::int64_t count = value.as_int_in(1, group.devices_per_node);
  if (group.devices_per_node % count != 0) {
    value.fail(std::to_string(count) + " do not divide the " +
                   std::to_string(group.devices_per_node) + " devices of a node",
               "give the devices of one of the computers that make up a node");
  }
  return count;
}

double read_hourly_price(const Value& value) {
  if (!value.is_string() || !parse_quantity(value.as_string(), Unit::usd)) {
    value.fail("is no price of a node and hour", "write it with its unit, such as \"30 USD\"");
  }
  return value.as_positive_quantity(Unit::usd);
}

/// `chip`, `devices_per_node`, `devices_per_host`, `nodes`, `intra_node`, `host`, `node_bandwidth`,
/// `price_per_hour` of a group or a homogeneous cluster. With a bandwidth matrix the network inside
/// the node may be left out.
DeviceGroup read_nodes(const Value& value, Chip chip, bool has_matrix, Reference& reference,
                       System& system) {
  DeviceGroup group;
  group.chip = std::move(chip);
  group.devices_per_node = value["devices_per_node"].as_int_in(1, kMostNodes);
  group.devices_per_host = read_devices_per_host(value["devices_per_host"], group);
  group.nodes = value["nodes"].exists() ? value["nodes"].as_int_in(1, kMostNodes) : 1;
  if (value["intra_node"].exists() || !has_matrix) {
    group.intra_node =
        level_inside_node(value["intra_node"], group.devices_per_node, reference, system);
  }
  set_host(value["host"], group.devices_per_node, reference, system, group.chip);
  if (value["node_bandwidth"].exists()) {
    group.node_bytes_per_s = value["node_bandwidth"].as_positive_quantity(Unit::bytes_per_s);
  }
  if (value["price_per_hour"].exists()) {
    group.node_usd_per_hour = read_hourly_price(value["price_per_hour"]);
  }
  return group;
}

/// Throws Error naming the keys that a group's, or a cluster's own, nodes lack.
void expect_nodes(const Value& value, bool has_matrix) {
  has_matrix ? expect_all(value, {"chip", "devices_per_node"})
             : expect_all(value, {"chip", "devices_per_node", "intra_node"});
}

DeviceGroup read_group(const Value& value, bool has_matrix, System& system) {
  const Value named = value["chip"];
  Chip chip = named.is_object() ? read_chip(named)
                                : load_chip(std::string(named.as_string()), named.where());
  Reference reference(chip.name);
  return read_nodes(value, std::move(chip), has_matrix, reference, system);
}

/// One entry of `groups`: a kind of node, or the nodes of another cluster.
void read_groups(const Value& groups, bool has_matrix, bool has_levels, int depth, System& system) {
  std::vector<System> clusters;
  for (const Value& entry : groups.elements()) {
    if (!entry["cluster"].exists()) {
      entry.expect_only({"chip", "devices_per_node", "devices_per_host", "nodes", "intra_node",
                         "host", "node_bandwidth", "price_per_hour"});
      expect_nodes(entry, has_matrix);
      system.groups.push_back(read_group(entry, has_matrix, system));
      continue;
    }
    entry.expect_only({"cluster", "nodes"});
    DeviceCount count{0, true};
    if (entry["nodes"].exists()) count.number = entry["nodes"].as_int_in(1, kMostNodes);
    System cluster = load_cluster(std::string(entry["cluster"].as_string()), count,
                                  entry["cluster"].where(), depth + 1);
    if (!has_levels) {
      clusters.push_back(std::move(cluster));
      continue;
    }
    for (DeviceGroup& group : cluster.groups) {
      if (group.node_bytes_per_s == 0 && !cluster.levels.empty()) {
        group.node_bytes_per_s = cluster.levels.front().unit_bytes_per_s;
      }
      system.groups.push_back(std::move(group));
    }
  }
  if (groups.size() == 0) groups.fail("a cluster needs at least one group of devices");
  if (clusters.empty()) return;
  if (!system.groups.empty()) {
    groups.fail("clusters and groups of their own are mixed without a network that joins them",
                "add levels");
  }
  System joined = join_systems(clusters);
  system.groups = std::move(joined.groups);
  system.levels = std::move(joined.levels);
  system.provenance.insert(system.provenance.end(), joined.provenance.begin(),
                           joined.provenance.end());
}

std::int64_t nodes_of(const System& system) {
  std::int64_t nodes = 0;
  for (const DeviceGroup& group : system.groups) nodes += group.nodes;
  return nodes;
}

/// Sets the number of devices and, of a single group, of nodes.
void apply_count(const Value& value, const DeviceCount& count, System& system) {
  double devices = 0;
  for (const DeviceGroup& group : system.groups) {
    devices += static_cast<double>(group.nodes) * static_cast<double>(group.devices_per_node);
  }
  if (count.number == 0 || system.groups.size() > 1) {
    if (devices > static_cast<double>(kMostDevices)) {
      value["nodes"].exists() ? value["nodes"].fail("more than 2^31 devices")
                              : value.fail("more than 2^31 devices");
    }
    system.device_count = static_cast<std::int64_t>(devices);
    const std::int64_t own = count.nodes ? nodes_of(system) : system.device_count;
    if (count.number > 0 && count.number != own) {
      fail_count(system.name + " says itself how many nodes of each kind it has",
                 "leave out what follows the colon");
    }
    return;
  }
  DeviceGroup& group = system.groups.front();
  if (count.nodes && count.number > kMostDevices / group.devices_per_node) {
    fail_count("that is more than 2^31 devices");
  }
  system.device_count = count.nodes ? count.number * group.devices_per_node : count.number;
  group.nodes = (system.device_count + group.devices_per_node - 1) / group.devices_per_node;
}

/// Networks above the node; sizes of all but the outermost are given, that one's follows.
void read_levels(const Value& levels, Reference& reference, System& system) {
  std::int64_t devices = 0;  // In a unit that the level joins.
  for (const DeviceGroup& group : system.groups)
    devices = std::max(devices, group.devices_per_node);
  std::int64_t units = nodes_of(system);
  const std::vector<Value> entries = levels.elements();
  if (entries.size() > 6) levels.fail("more than six networks above the node");
  for (std::size_t l = 0; l < entries.size(); ++l) {
    NetworkLevel level = level_like(entries[l], reference, l + 1, system);
    if (level.unit_bytes_per_s == 0) {
      level.unit_bytes_per_s = level.bytes_per_s * static_cast<double>(devices);
    }
    if (l + 1 < entries.size()) {
      if (!entries[l]["size"].exists()) {
        entries[l].fail("a network that is not the outermost needs its size",
                        "say how many units of the level below it joins");
      }
    } else {
      level.size = std::max<std::int64_t>(1, units);
    }
    fit_torus(level, level.size, system.provenance);
    units = (units - 1) / std::max<std::int64_t>(1, level.size) + 1;
    if (__builtin_mul_overflow(devices, level.size, &devices)) devices = kMostDevices;
    system.levels.push_back(std::move(level));
  }
}

void read_matrix(const Value& matrix, System& system) {
  const auto size = static_cast<std::size_t>(system.device_count);
  const std::string square = "a bandwidth matrix has a row and a column for each of the " +
                             std::to_string(size) + " devices";
  if (matrix.size() != size) matrix.fail(square);
  double most = 0;
  std::size_t row = 0;
  for (const Value& entries : matrix.elements()) {
    if (entries.size() != size) entries.fail(square);
    std::size_t column = 0;
    for (const Value& entry : entries.elements()) {
      // A device's way to itself is not used.
      const double bandwidth = row == column ? 0 : entry.as_positive_quantity(Unit::bytes_per_s);
      system.bandwidth_matrix.push_back(bandwidth);
      most = std::max(most, bandwidth);
      ++column;
    }
    ++row;
  }
  for (DeviceGroup& group : system.groups) {
    NetworkLevel& inside = group.intra_node;
    if (inside.bytes_per_s > 0) continue;
    inside.name = "bandwidth matrix";
    inside.size = group.devices_per_node;
    inside.bytes_per_s = inside.unit_bytes_per_s = most > 0 ? most : 1;
    inside.efficiency = 1;
  }
  system.provenance.push_back(
      {"bandwidth_matrix", "no latency, and the bandwidths are reached in full", true});
}

/// Counts the devices of the groups that were read, and joins their nodes.
void finish_networks(const Value& value, const DeviceCount& count, Reference& reference,
                     System& system) {
  apply_count(value, count, system);
  for (DeviceGroup& group : system.groups) {
    const std::int64_t inside = std::min(group.devices_per_node, system.device_count);
    if (group.intra_node.topology == Topology::torus) group.intra_node.size = inside;
    fit_torus(group.intra_node, group.intra_node.size, system.provenance);
  }
  if (value["levels"].exists()) read_levels(value["levels"], reference, system);
  if (value["bandwidth_matrix"].exists()) read_matrix(value["bandwidth_matrix"], system);
  const std::int64_t nodes = nodes_of(system);
  if (nodes > 1 && system.levels.empty() && system.bandwidth_matrix.empty()) {
    fail_count(system.name + " has no network between nodes, and " +
                   std::to_string(system.device_count) + " devices need " + std::to_string(nodes) +
                   " nodes",
               "ask for at most " + std::to_string(system.groups.front().devices_per_node) +
                   " devices or add levels to the cluster's file");
  }
}

}  // namespace

System read_system(const Value& value, const DeviceCount& count, int depth) {
  value.expect_only({"name", "description", "chip", "devices_per_node", "devices_per_host", "nodes",
                     "intra_node", "node_bandwidth", "price_per_hour", "host", "groups", "levels",
                     "bandwidth_matrix", "sources", "assumed"});
  System system;
  if (!value["groups"].exists()) {
    if (!value["name"].exists()) expect_all(value, {"name", "chip", "devices_per_node"});
    expect_nodes(value, value["bandwidth_matrix"].exists());
  }
  system.name = value["name"].as_string();
  system.description = value["description"].string_or("");
  read_sources(value, system.provenance);
  const Value groups = value["groups"];
  const Value levels = value["levels"];
  const Value matrix = value["bandwidth_matrix"];
  if (groups.exists()) {
    for (const char* key : {"chip", "devices_per_node", "devices_per_host", "nodes", "intra_node",
                            "node_bandwidth", "price_per_hour", "host"}) {
      if (value[key].exists()) value[key].fail("belongs into each of the groups");
    }
    read_groups(groups, matrix.exists(), levels.exists(), depth, system);
  } else {
    system.groups.push_back(read_group(value, matrix.exists(), system));
  }
  Reference reference(system.groups.front().chip.name);
  finish_networks(value, count, reference, system);
  return system;
}

System read_network(const Value& value, const Chip& chip, const DeviceCount& count) {
  value.expect_only({"name", "description", "devices_per_node", "devices_per_host", "intra_node",
                     "node_bandwidth", "price_per_hour", "host", "levels", "sources", "assumed"});
  System system;
  system.name = value["name"].string_or("the cluster");
  system.description = value["description"].string_or("");
  read_sources(value, system.provenance);
  Reference none;
  system.groups.push_back(read_nodes(value, chip, false, none, system));
  finish_networks(value, count, none, system);
  return system;
}

}  // namespace braid
