#include "braid/validate/hardware.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/base/text.h"
#include "braid/system/catalogue.h"
#include "braid/validate/hardware_words.h"

namespace braid {
namespace {

/// The number that ends right before position `end`, spaces aside; where it begins goes to `begin`.
std::optional<double> number_before(std::string_view text, std::size_t end, std::size_t& begin) {
  while (end > 0 && text[end - 1] == ' ') --end;
  begin = end;
  while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  return begin == end ? std::nullopt : finite_double(text.substr(begin, end - begin));
}

/// Bandwidth out of a node as a text states it.
struct NodeLinks {
  double node_bytes_per_s = 0;    ///< 0: not said.
  double device_bytes_per_s = 0;  ///< 0: not said.
  int links = 0;                  ///< 0: not said.
};

/// Reads "8x200Gb", "1600 Gbps node", "400Gb/s … per GPU", "4x OmniPath 100".
NodeLinks links_of(std::string_view text) {
  NodeLinks links;
  constexpr double kGigabit = 1e9 / 8;
  for (std::size_t at = text.find("gb"); at != std::string_view::npos;
       at = text.find("gb", at + 1)) {
    std::size_t begin = 0;
    const auto rate = number_before(text, at, begin);
    if (!rate || *rate <= 0) continue;
    const std::string_view rest = text.substr(at);
    if (begin > 0 && text[begin - 1] == 'x') {
      const auto count = number_before(text, begin - 1, begin);
      if (!count || *count < 1 || *count > 1024) continue;
      links.links = static_cast<int>(*count);
      links.node_bytes_per_s = *count * *rate * kGigabit;
    } else if (rest.find("per gpu") != std::string_view::npos) {
      links.device_bytes_per_s = *rate * kGigabit;
    } else if (rest.find("node") != std::string_view::npos &&
               (rest.starts_with("gbps") || rest.starts_with("gb/s"))) {
      links.node_bytes_per_s = *rate * kGigabit;
    }
  }
  if (const std::size_t at = text.find("x omnipath 100"); at != std::string_view::npos) {
    std::size_t begin = 0;
    const auto count = number_before(text, at, begin);
    if (count && *count >= 1 && *count <= 1024) {
      links.links = static_cast<int>(*count);
      links.node_bytes_per_s = *count * 100 * kGigabit;
    }
  }
  return links;
}

void apply_links(const NodeLinks& links, System& system) {
  if (system.levels.empty()) return;
  NetworkLevel& level = system.levels.front();
  const auto devices = static_cast<double>(system.groups.front().devices_per_node);
  if (links.device_bytes_per_s > 0) {
    level.bytes_per_s = links.device_bytes_per_s;
    level.unit_bytes_per_s = links.device_bytes_per_s * devices;
    level.rails = static_cast<int>(devices);
  } else if (links.node_bytes_per_s > 0) {
    level.unit_bytes_per_s = links.node_bytes_per_s;
    level.bytes_per_s = links.node_bytes_per_s / devices;
    if (links.links > 0) level.rails = links.links;
  }
}

/// Nodes of another size, so many of them: each device keeps its share of the network.
void set_nodes(std::int64_t nodes, std::int64_t devices_per_node, System& system) {
  DeviceGroup& group = system.groups.front();
  const double share =
      static_cast<double>(devices_per_node) / static_cast<double>(group.devices_per_node);
  group.devices_per_node = group.intra_node.size = devices_per_node;
  group.nodes = nodes;
  if (system.levels.empty()) return;
  NetworkLevel& level = system.levels.front();
  level.unit_bytes_per_s *= share;
  level.rails = std::min(level.rails, static_cast<int>(devices_per_node));
  if (system.levels.size() == 1) level.size = nodes;
}

/// Schedulers place a job of a multiple of 64 GPUs on 64 of each rack's 72, so that no group of a
/// power of two reaches over two racks.
void place_in_segments(System& system) {
  DeviceGroup& group = system.groups.front();
  const auto devices = static_cast<std::uint64_t>(group.devices_per_node);
  const auto segment = static_cast<std::int64_t>(std::bit_floor(devices));
  if (segment == group.devices_per_node || system.device_count % segment != 0) return;
  set_nodes(system.device_count / segment, segment, system);
}

/// Nodes of another size than the catalogue's, where the row says so: each device keeps its share
/// of the network. Racks and pods are not nodes of a host, and stay.
void resize_nodes(std::int64_t devices_per_node, System& system) {
  constexpr std::int64_t kLargestNode = 16;
  DeviceGroup& group = system.groups.front();
  const std::int64_t usual = group.devices_per_node;
  if (devices_per_node <= 1 || devices_per_node >= usual || usual > kLargestNode) return;
  set_nodes((system.device_count + devices_per_node - 1) / devices_per_node, devices_per_node,
            system);
}

/// Slices of TPUs that the notes name ("2x v5p-128"); 1 where they name none.
std::int64_t slices_of(const std::string& notes) {
  constexpr std::string_view kTimes = "x v";
  const std::size_t at = notes.find(kTimes);
  if (at == std::string::npos || notes.find('-', at) == std::string::npos) return 1;
  std::size_t begin = 0;
  const auto count = number_before(notes, at, begin);
  constexpr double kMostSlices = 1024;
  return count && *count >= 1 && *count <= kMostSlices ? static_cast<std::int64_t>(*count) : 1;
}

/// Slices of a pod as nodes: each chip keeps its share of the network between pods.
System of_slices(const std::string& cluster, std::int64_t slices, std::int64_t devices) {
  System system = load_system(cluster + ":" + std::to_string(devices / slices));
  DeviceGroup& group = system.groups.front();
  if (group.nodes > 1 || system.levels.size() != 1) {
    return load_system(cluster + ":" + std::to_string(devices));
  }
  const auto slice = static_cast<double>(system.device_count);
  const double rails =
      system.levels.front().rails * slice / static_cast<double>(group.devices_per_node);
  set_nodes(slices, system.device_count, system);
  // Several chips share a card, in a slice as in a pod.
  system.levels.front().rails = std::max(1, static_cast<int>(std::lround(rails)));
  system.device_count = devices;
  return system;
}

/// The cluster, or another with chips of its family where that has nodes of this size.
std::string with_nodes_of(const std::string& cluster, std::int64_t devices_per_node) {
  const auto nodes_of = [](const std::string& name) {
    return load_system(name + ":1nodes").groups.front().devices_per_node;
  };
  if (devices_per_node == 0 || nodes_of(cluster) == devices_per_node) return cluster;
  const std::string family = chip_family(cluster);
  for (const std::string& name : cluster_names()) {
    if (chip_family(name) == family && nodes_of(name) == devices_per_node) return name;
  }
  return cluster;
}

/// What load_system() takes for the types that the run's devices are of; empty where it is not said
/// how many there are of each.
std::string mixed_spec(const std::vector<NamedHardware>& types, const MeasuredRun& run) {
  std::vector<std::string> clusters;
  std::vector<std::int64_t> sizes;
  for (const NamedHardware& type : types) {
    clusters.push_back(type.nodes ? type.cluster
                                  : with_nodes_of(type.cluster, run.devices_per_node));
    sizes.push_back(load_system(clusters.back() + ":1nodes").groups.front().devices_per_node);
  }
  // A count in front of a chip may also be of nodes ("3x V100 + 1x T4", nodes of four).
  for (const bool all_nodes : {false, true}) {
    std::string spec;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i].count == 0) return "";
      const bool nodes = types[i].nodes || all_nodes;
      total += types[i].count * (nodes ? sizes[i] : 1);
      spec += (spec.empty() ? "" : "+") + clusters[i] + ":" + std::to_string(types[i].count);
      if (nodes) spec += "nodes";
    }
    if (total == run.devices) return spec;
  }
  return "";
}

/// The power in watts that the text names ("H100 96 GB (500 W)"); 0 where it names none.
double watts_in(std::string_view text) {
  for (std::size_t at = text.find('w'); at != std::string_view::npos; at = text.find('w', at + 1)) {
    const bool ends =
        at + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[at + 1]));
    std::size_t begin = 0;
    const auto watts = number_before(text, at, begin);
    if (ends && watts && *watts > 0) return *watts;
  }
  return 0;
}

/// Cards that are held below their usual power run at lower clocks. A circuit's power goes with
/// the cube of its clock, voltage with the clock (Hennessy and Patterson, Computer Architecture,
/// section 1.5), and what units reach of their peak with the clock.
void cap_power(double watts, Chip& chip) {
  const double usual = chip.power_w.value_or(0);
  if (watts <= 0 || watts >= usual) return;
  const double clock = std::cbrt(watts / usual);
  Efficiency& efficiency = chip.efficiency;
  for (double* const share :
       {&efficiency.matmul_peak_fraction, &efficiency.narrow_matmul_peak_fraction,
        &efficiency.attention_peak_fraction, &efficiency.vector_peak_fraction}) {
    *share *= clock;
  }
}

}  // namespace

RunSystem system_of(const MeasuredRun& run) {
  RunSystem result;
  const std::vector<NamedHardware> types = named_hardware(run.hardware);
  if (types.empty()) {
    result.reason = run.hardware.empty()
                        ? "the hardware is not said"
                        : "hardware " + in_quotes(run.hardware) + " is not in the catalogue";
    return result;
  }
  if (run.devices == 0 || run.devices > kMostDevices) {
    result.reason =
        run.devices == 0 ? "the number of devices is not said" : "there are too many devices";
    return result;
  }
  if (types.size() > 1) {
    const std::string spec = mixed_spec(types, run);
    if (spec.empty()) {
      result.reason = "hardware " + in_quotes(run.hardware) + ": how many of its " +
                      std::to_string(run.devices) + " devices are of each type is not said";
      return result;
    }
    result.system = load_system(spec);
    return result;
  }
  const std::int64_t slices = slices_of(run.notes);
  result.system = slices > 1 && run.devices % slices == 0
                      ? of_slices(types.front().cluster, slices, run.devices)
                      : load_system(types.front().cluster + ":" + std::to_string(run.devices));
  for (DeviceGroup& group : result.system.groups) {
    cap_power(watts_in(lowered(run.hardware)), group.chip);
  }
  if (slices == 1) place_in_segments(result.system);
  resize_nodes(run.devices_per_node, result.system);
  NodeLinks links = links_of(lowered(run.interconnect));
  if (links.node_bytes_per_s == 0 && links.device_bytes_per_s == 0) {
    links = links_of(lowered(run.notes));
  }
  apply_links(links, result.system);
  return result;
}

}  // namespace braid
