#include "braid/system/catalogue.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braid/base/and_list.h"
#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/named_entry.h"
#include "braid/system/chip_reader.h"
#include "braid/system/join.h"
#include "braid/system/system_reader.h"

namespace braid {

std::span<const EmbeddedFile> embedded_chips();
std::span<const EmbeddedFile> embedded_clusters();

namespace {

constexpr int kDeepest = 8;

DeviceCount parse_count(const std::string& spec, std::string_view text) {
  DeviceCount count;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count.number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  count.nodes = rest == "nodes" || rest == "node";
  if (error == std::errc::invalid_argument || !(rest.empty() || count.nodes)) {
    throw Error(Where{"", 0, "--cluster"},
                "'" + spec + "' does not end in a number of devices or nodes",
                "write NAME:64 or NAME:8nodes");
  }
  if (error != std::errc() || count.number < 1 || count.number > kMostDevices) {
    throw Error(Where{"", 0, "--cluster"}, "'" + spec + "' has a number out of range",
                "name 1 to " + std::to_string(kMostDevices));
  }
  return count;
}

/// One `NAME`, `NAME:N` or `NAME:Nnodes`.
System load_part(const std::string& spec) {
  const auto colon = spec.rfind(':');
  if (colon == std::string::npos || file_exists(spec)) return load_cluster(spec, {}, {}, 0);
  const DeviceCount count = parse_count(spec, std::string_view(spec).substr(colon + 1));
  return load_cluster(spec.substr(0, colon), count, {}, 0);
}

/// ":8", ":2nodes", or nothing where no number is given.
std::string text_of(const DeviceCount& count) {
  return count.number < 1 ? "" : ":" + std::to_string(count.number) + (count.nodes ? "nodes" : "");
}

/// Throws Error where a chip, or what the names of some begin with, is named in place of a cluster,
/// which lists the clusters of the catalogue that have such chips.
void refuse_chip_as_cluster(const std::string& name, const DeviceCount& count) {
  const std::vector<std::string> known = cluster_names();
  if (file_exists(name) || std::find(known.begin(), known.end(), name) != known.end()) return;
  std::vector<std::string> chips = chip_names();
  std::erase_if(chips, [&](const std::string& chip) {
    return chip != name && !chip.starts_with(name + "-");
  });
  if (chips.empty()) return;
  std::vector<std::string> clusters;
  std::string alone = chips.front();
  for (const EmbeddedFile& file : embedded_clusters()) {
    const Document document =
        Document::parse(file.text, Document::Syntax::yaml, std::string(file.file));
    const std::string chip = document.root()["chip"].string_or("");
    if (std::find(chips.begin(), chips.end(), chip) == chips.end()) continue;
    if (clusters.empty()) alone = chip;
    clusters.push_back(fmt::format("{}{} ({})", file.name, text_of(count), chip));
  }
  const std::string one = fmt::format("--chip {} for a single one", alone);
  throw Error(Where{"", 0, "--cluster"},
              fmt::format("'{}' is {}, not a cluster", name,
                          chips.front() == name ? "a chip" : "what chips are called"),
              clusters.empty() ? "give " + one
                               : fmt::format("give {}, or {}", and_list(clusters, " or "), one));
}

}  // namespace

std::optional<double> compute_capability(const Chip& chip) {
  constexpr double kBeforeBf16 = 7.0;
  if (chip.compute_capability || chip.kind != ChipKind::gpu) return chip.compute_capability;
  const bool before = matmul_peak(chip, Dtype::f16) && !matmul_peak(chip, Dtype::bf16);
  return before ? std::optional(kBeforeBf16) : std::nullopt;
}

double least_compute_capability(const System& system) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  double least = kUnknown;
  for (const DeviceGroup& group : system.groups) {
    least = std::min(least, compute_capability(group.chip).value_or(kUnknown));
  }
  return least;
}

std::optional<double> matmul_peak(const Chip& chip, Dtype dtype) {
  for (const PeakRate& peak : chip.peaks) {
    if (peak.dtype == dtype) return peak.matmul_flops_per_s;
  }
  return std::nullopt;
}

Chip load_chip(const std::string& name_or_path) { return load_chip(name_or_path, Where{}); }

Chip load_chip(const std::string& name_or_path, const Where& named) {
  return read_chip(open_entry(name_or_path, named, embedded_chips(), "chip").root());
}

System load_cluster(const std::string& name_or_path, const DeviceCount& count, const Where& named,
                    int depth) {
  if (depth > kDeepest) {
    throw Error("clusters that name clusters nest deeper than " + std::to_string(kDeepest) +
                    " files, at '" + name_or_path + "'",
                "does a file name itself?");
  }
  if (depth == 0 && named.file.empty()) refuse_chip_as_cluster(name_or_path, count);
  const Document document = open_entry(name_or_path, named, embedded_clusters(), "cluster");
  return read_system(document.root(), count, depth);
}

System load_system(const std::string& spec) {
  if (spec.find('+') == std::string::npos || file_exists(spec) ||
      file_exists(spec.substr(0, spec.rfind(':')))) {
    return load_part(spec);
  }
  std::vector<System> parts;
  for (std::size_t begin = 0; begin <= spec.size();) {
    const std::size_t end = std::min(spec.find('+', begin), spec.size());
    if (end == begin) {
      throw Error(Where{"", 0, "--cluster"}, "'" + spec + "' has a + with no cluster beside it",
                  "write A:2nodes+B:1nodes");
    }
    parts.push_back(load_part(spec.substr(begin, end - begin)));
    begin = end + 1;
  }
  return join_systems(parts);
}

std::vector<std::string> chip_names() { return names_of(embedded_chips()); }
std::vector<std::string> cluster_names() { return names_of(embedded_clusters()); }

}  // namespace braid
