#include "braid/explore/system_space.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "braid/base/json.h"
#include "braid/graph/graph_json.h"
#include "braid/system/accelerator_chip.h"
#include "braid/system/system_json.h"

namespace braid {
namespace {

/// Which value of each part a point has; 0 where a part is no axis.
struct SystemChoice {
  std::size_t chip = 0, memory = 0, network = 0, links = 0, cluster = 0, devices = 0;
};

SystemChoice choice_of(const SystemSpace& space, const SpacePoint& point) {
  SystemChoice choice;
  std::size_t axis = kMethodAxis + 1;
  const auto take = [&](std::size_t& index, bool is_axis) {
    if (is_axis) index = point[axis++];
  };
  take(choice.chip, !space.chips.empty() || space.architectures.has_value());
  take(choice.memory, !space.memories.empty());
  take(choice.network, !space.networks.empty());
  take(choice.links, !space.links.empty());
  take(choice.cluster, !space.clusters.empty());
  take(choice.devices, !space.devices.empty());
  return choice;
}

double last_of(const std::vector<double>& values, std::size_t index) {
  return values[std::min(index, values.size() - 1)];
}

/// The networks of a homogeneous system, innermost first.
std::vector<NetworkLevel*> networks_of(System& system) {
  std::vector<NetworkLevel*> networks{&system.groups.front().intra_node};
  for (NetworkLevel& level : system.levels) networks.push_back(&level);
  return networks;
}

void set_links(const SystemLinks& links, System& system) {
  const std::vector<NetworkLevel*> networks = networks_of(system);
  for (std::size_t i = 0; i < networks.size(); ++i) {
    NetworkLevel& level = *networks[i];
    const double bytes_per_s = last_of(links.bytes_per_s, i);
    const double ratio = bytes_per_s / level.bytes_per_s;
    if (ratio != 1) {
      level.bytes_per_s = bytes_per_s;
      level.unit_bytes_per_s *= ratio;
      if (i == 1) system.groups.front().node_bytes_per_s *= ratio;
    }
    if (!links.latency_s.empty()) level.latency_s = last_of(links.latency_s, i);
  }
}

/// Price and power of one chip of a space without clusters.
SystemCost chip_cost(const SystemSpace& space, std::size_t chip, const System& system) {
  if (!space.architectures) return {space.chips[chip].usd, space.chips[chip].watts};
  const Chip& made = system.groups.front().chip;
  return {made.price_usd.value_or(0), made.power_w.value_or(0)};
}

}  // namespace

std::string name_of(const Architecture& architecture) {
  return fmt::format("{}-{}-{}x{}-{}MiB", architecture.tensor_cores, architecture.vector_cores,
                     architecture.width, architecture.depth, architecture.global_buffer_mib);
}

Chip chip_of(const SystemArchitectures& architectures, const Architecture& architecture) {
  const Chip& rest = architectures.rest;
  AcceleratorDesign design = *rest.accelerator;
  design.chip = accelerator_of(architecture, design.chip);
  Chip chip = accelerator_chip(design, name_of(architecture));
  const Efficiency tiles = chip.efficiency;
  chip.efficiency = rest.efficiency;
  chip.efficiency.tile_m = tiles.tile_m;
  chip.efficiency.tile_n = tiles.tile_n;
  chip.efficiency.tile_k = tiles.tile_k;
  chip.reserved_bytes = rest.reserved_bytes;
  chip.memory = rest.memory;
  for (const Provenance& source : rest.provenance) {
    if (source.key == "efficiency" || source.key == "reserved") chip.provenance.push_back(source);
  }
  return chip;
}

std::vector<SpaceAxis> axes_of(const SystemSpace& space) {
  std::vector<SpaceAxis> axes{{"workload", AxisPlace::page, names_of(space.workloads)},
                              {"planner", AxisPlace::page, space.planners}};
  const auto add = [&axes](const char* name, AxisPlace place, std::vector<std::string> values) {
    if (!values.empty()) axes.push_back({name, place, std::move(values)});
  };
  add("chip", AxisPlace::row, names_of(space.chips));
  if (space.architectures) {
    std::vector<std::string> names;
    names.reserve(space.architectures->all.size());
    for (const Architecture& architecture : space.architectures->all) {
      names.push_back(name_of(architecture));
    }
    add("architecture", AxisPlace::row, std::move(names));
  }
  add("memory", AxisPlace::row, names_of(space.memories));
  add("network", AxisPlace::column, names_of(space.networks));
  add("links", AxisPlace::column, names_of(space.links));
  add("cluster", AxisPlace::row, names_of(space.clusters));
  add("devices", AxisPlace::column, space.devices);
  return axes;
}

System system_of(const SystemSpace& space, const SpacePoint& point) {
  const SystemChoice choice = choice_of(space, point);
  if (!space.clusters.empty()) return space.clusters[choice.cluster].by_devices[choice.devices];
  if (!space.architectures) return system_of(space, point, space.chips[choice.chip].chip);
  const SystemArchitectures& architectures = *space.architectures;
  return system_of(space, point, chip_of(architectures, architectures.all[choice.chip]));
}

System system_of(const SystemSpace& space, const SpacePoint& point, const Chip& chip) {
  const SystemChoice choice = choice_of(space, point);
  const SystemNetwork& network = space.networks[choice.network];
  System system = network.by_devices[choice.devices];
  system.name = network.name;
  system.description.clear();
  for (DeviceGroup& group : system.groups) {
    std::optional<Memory> host = std::move(group.chip.host);
    group.chip = chip;
    if (host) group.chip.host = std::move(host);
    if (space.memories.empty()) continue;
    const PricedMemory& memory = space.memories[choice.memory];
    group.chip.memory = {memory.name, memory.bytes, memory.bytes_per_s};
    group.chip.provenance.push_back({"memory", memory.name + ", as the space has it", true});
  }
  if (!space.links.empty()) {
    const SystemLinks& links = space.links[choice.links];
    set_links(links, system);
    system.provenance.push_back({"links", links.name + ", as the space has them", true});
  }
  return system;
}

SystemCost cost_of(const SystemSpace& space, const SpacePoint& point) {
  constexpr double kGb = 1e9;
  const SystemChoice choice = choice_of(space, point);
  System system = system_of(space, point);
  const auto devices = static_cast<double>(system.device_count);
  SystemCost cost;
  if (!space.clusters.empty()) {
    const SystemCluster& cluster = space.clusters[choice.cluster];
    auto left = static_cast<double>(system.device_count);
    for (const DeviceGroup& group : system.groups) {
      const double count = std::min(
          left, static_cast<double>(group.nodes) * static_cast<double>(group.devices_per_node));
      left -= count;
      cost.usd += count * (cluster.usd > 0 ? cluster.usd : group.chip.price_usd.value_or(0));
      cost.watts += count * (cluster.watts > 0 ? cluster.watts : group.chip.power_w.value_or(0));
    }
    return cost;
  }
  const SystemCost chip = chip_cost(space, choice.chip, system);
  cost = {devices * chip.usd, devices * chip.watts};
  if (!space.memories.empty()) {
    const PricedMemory& memory = space.memories[choice.memory];
    cost.usd += devices * memory.bytes_per_s / kGb * memory.usd_per_gb_per_s;
    cost.watts += devices * memory.bytes_per_s / kGb * memory.w_per_gb_per_s;
  }
  const SystemNetwork& network = space.networks[choice.network];
  const bool own = !space.links.empty();
  const std::vector<double>& usd =
      own ? space.links[choice.links].usd_per_gb_per_s : network.usd_per_gb_per_s;
  const std::vector<double>& watts =
      own ? space.links[choice.links].w_per_gb_per_s : network.w_per_gb_per_s;
  const std::vector<NetworkLevel*> networks = networks_of(system);
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const double gb_per_s = devices * networks[i]->bytes_per_s / kGb;
    cost.usd += gb_per_s * last_of(usd, i);
    cost.watts += gb_per_s * last_of(watts, i);
  }
  return cost;
}

std::string canonical_text(const SystemSpace& space) {
  const SpaceOptions& options = space.options;
  std::string text = fmt::format("planned, budget {}, offload {}, all devices {}, sharding {}\n",
                                 space.budget.work, options.allow_offload, options.all_devices,
                                 static_cast<int>(space.sharding));
  for (const auto& [name, degrees] :
       {std::pair{"tp", &options.tp}, std::pair{"pp", &options.pp}, std::pair{"dp", &options.dp},
        std::pair{"cp", &options.cp}, std::pair{"ep", &options.ep}, std::pair{"vp", &options.vp},
        std::pair{"micro-batch", &options.micro_batch}}) {
    if (!degrees->is_any()) text += fmt::format("{} {}\n", name, degrees->text());
  }
  if (space.trainer) {
    text += "for " + space.trainer->name + "\n";
    for (const TrainerEntry& entry : space.trainer->entries) {
      text += fmt::format("  {} {} {}\n", entry.section, entry.key, entry.text);
    }
  }

  for (const auto& [option, word] : space.own) text += fmt::format("{} {}\n", option, word);
  text += fmt::format("energy {}\n", space.counts_energy);
  for (const SpaceAxis& axis : axes_of(space)) {
    text += axis.name;
    for (const std::string& value : axis.values) text += " " + value;
    text += "\n";
  }
  for (const SystemWorkload& workload : space.workloads) {
    text += fmt::format("{} {} {}\n", workload.global_batch, workload.precision,
                        to_json_text(workload.graph));
  }
  for (const SystemChip& chip : space.chips) {
    text += fmt::format("{} {} {}", chip.usd, chip.watts, to_text(to_json(chip.chip)));
  }
  if (space.architectures) {
    // The names of all are among the values of the axis.
    text += to_text(to_json(space.architectures->rest));
  }
  for (const PricedMemory& memory : space.memories) {
    text += fmt::format("{} {} {} {}\n", memory.bytes, memory.bytes_per_s, memory.usd_per_gb_per_s,
                        memory.w_per_gb_per_s);
  }
  const auto add = [&text](const std::vector<double>& values) {
    for (const double value : values) text += fmt::format(" {}", value);
    text += ";";
  };
  for (const SystemNetwork& network : space.networks) {
    add(network.usd_per_gb_per_s);
    add(network.w_per_gb_per_s);
    for (const System& system : network.by_devices) text += to_text(to_json(system));
  }
  for (const SystemLinks& links : space.links) {
    add(links.bytes_per_s);
    add(links.latency_s);
    add(links.usd_per_gb_per_s);
    add(links.w_per_gb_per_s);
  }
  for (const SystemCluster& cluster : space.clusters) {
    text += fmt::format("{} {}\n", cluster.usd, cluster.watts);
    for (const System& system : cluster.by_devices) text += to_text(to_json(system));
  }
  return text;
}

}  // namespace braid
