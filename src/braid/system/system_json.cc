#include "braid/system/system_json.h"

#include <utility>

#include "braid/base/quantity.h"
#include "braid/chip/accelerator/accelerator_json.h"
#include "braid/system/chip_reader.h"
#include "braid/system/topology_name.h"

namespace braid {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;

/// Figures of a system are shares of what its files say and sums over a node's devices, so they may
/// be this many times less or more.
constexpr double kDerived = 0x1p40;

double at_most(const Value& value, Unit unit) {
  return value.as_double_in(0, plausible_range(unit).most * kDerived);
}

double positive(const Value& value, Unit unit) {
  const double number = at_most(value, unit);
  if (number <= 0) value.fail("must be more than zero");
  if (number < plausible_range(unit).least / kDerived) {
    const auto fault = implausible(number, unit);
    value.fail(fault->message, fault->remedy);
  }
  return number;
}

Json provenance_to_json(const std::vector<Provenance>& provenance) {
  Json json = Json::array();
  for (const Provenance& entry : provenance) {
    Json part = Json::object();
    part["key"] = entry.key;
    part["source"] = entry.source;
    part["assumed"] = entry.assumed;
    json.push_back(std::move(part));
  }
  return json;
}

std::vector<Provenance> provenance_from_json(const Value& value) {
  std::vector<Provenance> provenance;
  for (const Value& entry : value.elements()) {
    entry.expect_only({"key", "source", "assumed"});
    provenance.push_back({std::string(entry["key"].as_string()),
                          std::string(entry["source"].as_string()), entry["assumed"].as_bool()});
  }
  return provenance;
}

Json memory_to_json(const Memory& memory) {
  Json json = Json::object();
  json["name"] = memory.name;
  json["bytes"] = memory.bytes;
  json["bytes_per_s"] = memory.bytes_per_s;
  return json;
}

/// `known`: its rate is above zero.
Memory memory_from_json(const Value& value, bool known = true) {
  value.expect_only({"name", "bytes", "bytes_per_s"});
  const Value rate = value["bytes_per_s"];
  return {std::string(value["name"].as_string()), positive(value["bytes"], Unit::bytes),
          known ? positive(rate, Unit::bytes_per_s) : at_most(rate, Unit::bytes_per_s)};
}

Json efficiency_to_json(const Efficiency& efficiency) {
  Json json = Json::object();
  json["matmul_peak_fraction"] = efficiency.matmul_peak_fraction;
  if (efficiency.narrow_matmul_peak_fraction > 0) {
    json["narrow_matmul_peak_fraction"] = efficiency.narrow_matmul_peak_fraction;
  }
  json["vector_peak_fraction"] = efficiency.vector_peak_fraction;
  json["attention_peak_fraction"] = efficiency.attention_peak_fraction;
  json["memory_peak_fraction"] = efficiency.memory_peak_fraction;
  json["memory_half_bytes"] = efficiency.memory_half_bytes;
  json["kernel_launch_s"] = efficiency.kernel_launch_s;
  json["host_operator_s"] = efficiency.host_operator_s;
  json["overlap_loss"] = efficiency.overlap_loss;
  json["tile"] = Json::array({efficiency.tile_m, efficiency.tile_n, efficiency.tile_k});
  return json;
}

Efficiency efficiency_from_json(const Value& value) {
  value.expect_only({"matmul_peak_fraction", "vector_peak_fraction", "attention_peak_fraction",
                     "memory_peak_fraction", "memory_half_bytes", "kernel_launch_s",
                     "host_operator_s", "overlap_loss", "tile", "narrow_matmul_peak_fraction"});
  Efficiency efficiency;
  efficiency.matmul_peak_fraction = value["matmul_peak_fraction"].as_double_in(1e-9, 1);
  if (value["narrow_matmul_peak_fraction"].exists()) {
    efficiency.narrow_matmul_peak_fraction =
        value["narrow_matmul_peak_fraction"].as_double_in(1e-9, 1);
  }
  efficiency.vector_peak_fraction = value["vector_peak_fraction"].as_double_in(1e-9, 1);
  efficiency.attention_peak_fraction = value["attention_peak_fraction"].as_double_in(1e-9, 1);
  efficiency.memory_peak_fraction = value["memory_peak_fraction"].as_double_in(1e-9, 1);
  efficiency.memory_half_bytes =
      value["memory_half_bytes"].as_double_in(0, plausible_range(Unit::bytes).most);
  efficiency.kernel_launch_s =
      value["kernel_launch_s"].as_double_in(0, plausible_range(Unit::seconds).most);
  if (value["host_operator_s"].exists()) {
    efficiency.host_operator_s =
        value["host_operator_s"].as_double_in(0, plausible_range(Unit::seconds).most);
  }
  if (value["overlap_loss"].exists()) {
    efficiency.overlap_loss = value["overlap_loss"].as_double_in(0, 1);
  }
  const Value tile = value["tile"];
  if (tile.size() != 3) tile.fail("a tile has three sizes", "write [m, n, k]");
  efficiency.tile_m = static_cast<int>(tile[0].as_int_in(1, 1 << 16));
  efficiency.tile_n = static_cast<int>(tile[1].as_int_in(1, 1 << 16));
  efficiency.tile_k = static_cast<int>(tile[2].as_int_in(1, 1 << 16));
  return efficiency;
}

Json level_to_json(const NetworkLevel& level) {
  Json json = Json::object();
  json["name"] = level.name;
  json["topology"] = name_of(level.topology);
  json["size"] = level.size;
  json["torus_dims"] = level.torus_dims;
  json["bytes_per_s"] = level.bytes_per_s;
  json["unit_bytes_per_s"] = level.unit_bytes_per_s;
  json["latency_s"] = level.latency_s;
  json["rails"] = level.rails;
  json["oversubscription"] = level.oversubscription;
  json["efficiency"] = level.efficiency;
  json["half_bytes"] = level.half_bytes;
  return json;
}

NetworkLevel level_from_json(const Value& value) {
  value.expect_only({"name", "topology", "size", "torus_dims", "bytes_per_s", "unit_bytes_per_s",
                     "latency_s", "rails", "oversubscription", "efficiency", "half_bytes"});
  NetworkLevel level;
  level.name = value["name"].as_string();
  level.topology = read_topology(value["topology"]);
  level.size = value["size"].as_int_in(1, kMost);
  for (const Value& dim : value["torus_dims"].elements()) {
    level.torus_dims.push_back(dim.as_int_in(1, kMost));
  }
  level.bytes_per_s = positive(value["bytes_per_s"], Unit::bytes_per_s);
  level.unit_bytes_per_s = positive(value["unit_bytes_per_s"], Unit::bytes_per_s);
  level.latency_s = value["latency_s"].as_double_in(0, plausible_range(Unit::seconds).most);
  level.rails = static_cast<int>(value["rails"].as_int_in(1, 1 << 20));
  level.oversubscription = value["oversubscription"].as_double_in(1, 1e9);
  level.efficiency = value["efficiency"].as_double_in(1e-9, 1);
  level.half_bytes = value["half_bytes"].as_double_in(0, plausible_range(Unit::bytes).most);
  return level;
}

}  // namespace

Json to_json(const Chip& chip) {
  Json json = Json::object();
  json["name"] = chip.name;
  json["description"] = chip.description;
  json["peak_flops_per_s"] = Json::object();
  for (const PeakRate& peak : chip.peaks) {
    json["peak_flops_per_s"][std::string(name_of(peak.dtype))] = peak.matmul_flops_per_s;
  }
  json["vector_flops_per_s"] = chip.vector_flops_per_s;
  json["compute_units"] = chip.compute_units;
  json["memory"] = memory_to_json(chip.memory);
  if (chip.on_chip) json["on_chip"] = memory_to_json(*chip.on_chip);
  if (chip.host) json["host"] = memory_to_json(*chip.host);
  json["reserved_bytes"] = chip.reserved_bytes;
  if (chip.execution != ChipExecution::kernels) json["execution"] = name_of(chip.execution);
  if (chip.kind != usual_kind(chip)) json["kind"] = name_of(chip.kind);
  if (chip.compute_capability) json["compute_capability"] = *chip.compute_capability;
  if (chip.power_w) json["power_w"] = *chip.power_w;
  if (chip.price_usd) json["price_usd"] = *chip.price_usd;
  if (chip.accelerator) json["accelerator"] = to_json(*chip.accelerator);
  json["efficiency"] = efficiency_to_json(chip.efficiency);
  json["provenance"] = provenance_to_json(chip.provenance);
  return json;
}

Chip chip_from_json(const Value& value) {
  value.expect_only({"name", "description", "kind", "peak_flops_per_s", "vector_flops_per_s",
                     "compute_units", "compute_capability", "memory", "on_chip", "host",
                     "reserved_bytes", "execution", "power_w", "price_usd", "accelerator",
                     "efficiency", "provenance"});
  Chip chip;
  chip.name = value["name"].as_string();
  chip.description = value["description"].as_string();
  for (const auto& [key, rate] : value["peak_flops_per_s"].members()) {
    const auto dtype = parse_dtype(key);
    if (!dtype) value["peak_flops_per_s"].fail("unknown number format '" + std::string(key) + "'");
    chip.peaks.push_back({*dtype, positive(rate, Unit::flops_per_s)});
  }
  // A chip without peaks is one of which no rates are known.
  const bool known = !chip.peaks.empty();
  const Value vector = value["vector_flops_per_s"];
  chip.vector_flops_per_s =
      known ? positive(vector, Unit::flops_per_s) : at_most(vector, Unit::flops_per_s);
  chip.compute_units = static_cast<int>(value["compute_units"].as_int_in(1, 1 << 24));
  chip.memory = memory_from_json(value["memory"], known);
  if (value["on_chip"].exists()) chip.on_chip = memory_from_json(value["on_chip"]);
  if (value["host"].exists()) chip.host = memory_from_json(value["host"]);
  chip.reserved_bytes = value["reserved_bytes"].as_double_in(0, chip.memory.bytes);
  if (value["accelerator"].exists()) chip.accelerator = design_from_json(value["accelerator"]);
  if (value["execution"].exists()) chip.execution = read_execution(value["execution"], chip);
  chip.kind = value["kind"].exists() ? read_kind(value["kind"]) : usual_kind(chip);
  if (value["compute_capability"].exists()) {
    chip.compute_capability = value["compute_capability"].as_double_in(1, 1000);
  }
  if (value["power_w"].exists())
    chip.power_w = value["power_w"].as_double_in(0, plausible_range(Unit::watts).most);
  if (value["price_usd"].exists())
    chip.price_usd = value["price_usd"].as_double_in(0, plausible_range(Unit::usd).most);
  chip.efficiency = efficiency_from_json(value["efficiency"]);
  chip.provenance = provenance_from_json(value["provenance"]);
  return chip;
}

Json to_json(const System& system) {
  Json json = Json::object();
  json["name"] = system.name;
  if (!system.description.empty()) json["description"] = system.description;
  json["device_count"] = system.device_count;
  json["groups"] = Json::array();
  for (const DeviceGroup& group : system.groups) {
    Json part = Json::object();
    part["nodes"] = group.nodes;
    part["devices_per_node"] = group.devices_per_node;
    if (group.devices_per_host > 0) part["devices_per_host"] = group.devices_per_host;
    part["intra_node"] = level_to_json(group.intra_node);
    if (group.node_bytes_per_s > 0) part["node_bytes_per_s"] = group.node_bytes_per_s;
    if (group.node_usd_per_hour > 0) part["node_usd_per_hour"] = group.node_usd_per_hour;
    part["chip"] = to_json(group.chip);
    json["groups"].push_back(std::move(part));
  }
  json["levels"] = Json::array();
  for (const NetworkLevel& level : system.levels) json["levels"].push_back(level_to_json(level));
  json["bandwidth_matrix"] = system.bandwidth_matrix;
  json["provenance"] = provenance_to_json(system.provenance);
  return json;
}

namespace {

/// Groups of a system; `places` is set to the number of devices that they have room for.
std::vector<DeviceGroup> groups_from_json(const Value& value, std::int64_t& places) {
  std::vector<DeviceGroup> groups;
  for (const Value& entry : value.elements()) {
    entry.expect_only({"nodes", "devices_per_node", "devices_per_host", "intra_node",
                       "node_bytes_per_s", "node_usd_per_hour", "chip"});
    DeviceGroup group;
    group.nodes = entry["nodes"].as_int_in(1, 1 << 30);
    group.devices_per_node = entry["devices_per_node"].as_int_in(1, 1 << 30);
    if (entry["devices_per_host"].exists()) {
      group.devices_per_host = entry["devices_per_host"].as_int_in(0, group.devices_per_node);
    }
    group.intra_node = level_from_json(entry["intra_node"]);
    if (entry["node_bytes_per_s"].exists()) {
      group.node_bytes_per_s = positive(entry["node_bytes_per_s"], Unit::bytes_per_s);
    }
    if (entry["node_usd_per_hour"].exists()) {
      group.node_usd_per_hour = positive(entry["node_usd_per_hour"], Unit::usd);
    }
    group.chip = chip_from_json(entry["chip"]);
    if (group.nodes > kMost / group.devices_per_node) entry.fail("more than 2^40 devices");
    places += group.nodes * group.devices_per_node;
    if (places > kMost) entry.fail("more than 2^40 devices");
    groups.push_back(std::move(group));
  }
  if (groups.empty()) value.fail("a system needs at least one group of devices");
  return groups;
}

std::vector<double> matrix_from_json(const Value& value, std::int64_t device_count) {
  std::vector<double> matrix;
  const std::size_t size = value.size();
  if (size == 0) return matrix;
  const auto devices = static_cast<double>(device_count);
  if (static_cast<double>(size) != devices * devices) {
    value.fail("must have one entry for each pair of devices");
  }
  matrix.reserve(size);
  const auto next_diagonal = static_cast<std::size_t>(device_count) + 1;
  for (const Value& entry : value.elements()) {
    const bool diagonal = matrix.size() % next_diagonal == 0;
    matrix.push_back(diagonal ? at_most(entry, Unit::bytes_per_s)
                              : positive(entry, Unit::bytes_per_s));
  }
  return matrix;
}

}  // namespace

System system_from_json(const Value& value) {
  value.expect_only({"name", "description", "device_count", "groups", "levels", "bandwidth_matrix",
                     "provenance"});
  System system;
  system.name = value["name"].as_string();
  system.description = value["description"].string_or("");
  system.device_count = value["device_count"].as_int_in(1, kMost);
  std::int64_t places = 0;
  system.groups = groups_from_json(value["groups"], places);
  if (system.device_count > places) {
    value["device_count"].fail("more devices than the groups' nodes hold (" +
                               std::to_string(places) + ")");
  }
  for (const Value& entry : value["levels"].elements()) {
    system.levels.push_back(level_from_json(entry));
  }
  system.bandwidth_matrix = matrix_from_json(value["bandwidth_matrix"], system.device_count);
  const bool one_node = system.groups.size() == 1 && system.groups.front().nodes == 1;
  if (!one_node && system.levels.empty() && system.bandwidth_matrix.empty()) {
    value["levels"].fail("more than one node needs a network between nodes");
  }
  system.provenance = provenance_from_json(value["provenance"]);
  return system;
}

}  // namespace braid
