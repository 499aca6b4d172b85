#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include "braid/base/document.h"
#include "braid/base/embedded_file.h"
#include "braid/base/suggest.h"
#include "braid/system/chip_reader.h"
#include "braid/system/system.h"

namespace braid {

std::span<const EmbeddedFile> embedded_chips();
std::span<const EmbeddedFile> embedded_clusters();

namespace {

constexpr std::int64_t kMostDevices = std::int64_t{1} << 31;

std::vector<std::string> names_of(std::span<const EmbeddedFile> files) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : files) names.emplace_back(file.name);
  return names;
}

/// Document of a catalogue entry or a user's file.
Document open_entry(const std::string& name, std::span<const EmbeddedFile> files,
                    const char* what) {
  for (const EmbeddedFile& file : files) {
    if (file.name == name) {
      return Document::parse(file.text, Document::Syntax::yaml, std::string(file.file));
    }
  }
  std::error_code error;
  if (std::filesystem::exists(name, error)) return Document::parse_file(name);
  throw Error("no " + std::string(what) + " '" + name + "': neither in the catalogue nor a file",
              did_you_mean(name, names_of(files)));
}

/// How many devices or nodes the part after the colon asks for.
struct Count {
  std::int64_t number = 0;  ///< 0: not given.
  bool nodes = false;
};

Count parse_count(const std::string& spec, std::string_view text) {
  Count count;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count.number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  count.nodes = rest == "nodes" || rest == "node";
  if (error != std::errc() || count.number < 1 || count.number > kMostDevices ||
      !(rest.empty() || count.nodes)) {
    throw Error(Where{"", 0, "--cluster"},
                "'" + spec + "' does not end in a number of devices or nodes",
                "write NAME:64 or NAME:8nodes");
  }
  return count;
}

System read_system(const Value& value, const Count& count) {
  value.expect_only({"name", "description", "chip", "devices_per_node", "nodes", "intra_node",
                     "levels", "sources", "assumed"});
  System system;
  system.name = value["name"].as_string();
  read_sources(value, system.provenance);
  DeviceGroup group;
  group.chip = load_chip(std::string(value["chip"].as_string()));
  group.devices_per_node = value["devices_per_node"].as_int_in(1, 1 << 24);
  group.intra_node = read_level(value["intra_node"], system.provenance);
  group.intra_node.size = group.devices_per_node;
  group.intra_node.unit_bytes_per_s =
      std::max(group.intra_node.unit_bytes_per_s, group.intra_node.bytes_per_s);
  std::int64_t nodes = value["nodes"].exists() ? value["nodes"].as_int_in(1, 1 << 24) : 1;
  system.device_count = nodes * group.devices_per_node;
  if (count.number > 0) {
    if (count.nodes && count.number > kMostDevices / group.devices_per_node) {
      throw Error(Where{"", 0, "--cluster"}, "that is more than 2^31 devices");
    }
    system.device_count = count.nodes ? count.number * group.devices_per_node : count.number;
    nodes = (system.device_count + group.devices_per_node - 1) / group.devices_per_node;
  }
  group.nodes = nodes;
  const Value levels = value["levels"];
  if (levels.exists()) {
    for (const Value& entry : levels.elements()) {
      NetworkLevel level = read_level(entry, system.provenance);
      if (level.unit_bytes_per_s == 0) {
        level.unit_bytes_per_s = level.bytes_per_s * static_cast<double>(group.devices_per_node);
      }
      system.levels.push_back(std::move(level));
    }
  }
  if (nodes > 1 && system.levels.empty()) {
    throw Error(Where{"", 0, "--cluster"},
                system.name + " has no network between nodes, and " +
                    std::to_string(system.device_count) + " devices need " + std::to_string(nodes) +
                    " nodes",
                "ask for at most " + std::to_string(group.devices_per_node) +
                    " devices or add levels to the cluster's file");
  }
  if (!system.levels.empty()) {
    // The outermost level joins whatever the inner ones leave.
    std::int64_t inner = 1;
    for (std::size_t l = 0; l + 1 < system.levels.size(); ++l) inner *= system.levels[l].size;
    system.levels.back().size = std::max<std::int64_t>(1, (nodes + inner - 1) / inner);
  }
  system.groups.push_back(std::move(group));
  return system;
}

}  // namespace

std::optional<double> matmul_peak(const Chip& chip, Dtype dtype) {
  for (const PeakRate& peak : chip.peaks) {
    if (peak.dtype == dtype) return peak.matmul_flops_per_s;
  }
  return std::nullopt;
}

Chip load_chip(const std::string& name_or_path) {
  return read_chip(open_entry(name_or_path, embedded_chips(), "chip").root());
}

System load_system(const std::string& spec) {
  std::string name = spec;
  Count count;
  std::error_code error;
  const auto colon = spec.rfind(':');
  if (colon != std::string::npos && !std::filesystem::exists(spec, error)) {
    name = spec.substr(0, colon);
    count = parse_count(spec, std::string_view(spec).substr(colon + 1));
  }
  const Document document = open_entry(name, embedded_clusters(), "cluster");
  return read_system(document.root(), count);
}

std::vector<std::string> chip_names() { return names_of(embedded_chips()); }
std::vector<std::string> cluster_names() { return names_of(embedded_clusters()); }

}  // namespace braid
