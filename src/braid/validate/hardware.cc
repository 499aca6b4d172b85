#include "braid/validate/hardware.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "braid/base/text.h"
#include "braid/system/catalogue.h"

namespace braid {
namespace {

/// Clusters that a chip is usually found in; all words must occur. The first entry wins.
struct Known {
  std::string_view word, other;
  std::string_view cluster;
};
constexpr std::array kKnown = {Known{"gb300", "", "gb300-nvl72"},
                               Known{"gb200", "", "gb200-nvl72"},
                               Known{"b300", "", "dgx-b300"},
                               Known{"b200", "", "dgx-b200"},
                               Known{"h200", "", "dgx-h200"},
                               Known{"h100", "", "dgx-h100"},
                               Known{"a100", "40gb", "p4d.24xlarge"},
                               Known{"a100", "", "dgx-a100"},
                               Known{"a10g", "", "g5.48xlarge"},
                               Known{"mi300x", "", "mi300x-platform"},
                               Known{"v100", "", "dgx-1"},
                               Known{"v5litepod", "", "tpu-v5e-pod"},
                               Known{"v5e", "", "tpu-v5e-pod"},
                               Known{"v5p", "", "tpu-v5p-pod"},
                               Known{"v6e", "", "tpu-v6e-pod"},
                               Known{"ironwood", "", "tpu-v7-pod"},
                               Known{"tpu v4", "", "tpu-v4-pod"},
                               Known{"l4", "", "g6.48xlarge"},
                               Known{"t4", "", "g4dn.12xlarge"}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether `word` stands in `text` with no letter or digit right before it or digit behind it.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_digit(text[end]))) return true;
  }
  return false;
}

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

/// Schedulers place a job of a multiple of 64 GPUs on 64 of each rack's 72, so that no group of a
/// power of two reaches over two racks.
void place_in_segments(System& system) {
  DeviceGroup& group = system.groups.front();
  const auto devices = static_cast<std::uint64_t>(group.devices_per_node);
  const auto segment = static_cast<std::int64_t>(std::bit_floor(devices));
  if (segment == group.devices_per_node || system.device_count % segment != 0) return;
  const double share = static_cast<double>(segment) / static_cast<double>(group.devices_per_node);
  group.devices_per_node = group.intra_node.size = segment;
  group.nodes = system.device_count / segment;
  if (system.levels.empty()) return;
  NetworkLevel& level = system.levels.front();
  level.unit_bytes_per_s *= share;
  level.rails = std::min(level.rails, static_cast<int>(segment));
  if (system.levels.size() == 1) level.size = group.nodes;
}

/// Catalogue name of the run's cluster; empty when its hardware is not known.
std::string cluster_of(const std::string& hardware) {
  const std::vector<std::string> names = cluster_names();
  if (std::binary_search(names.begin(), names.end(), hardware)) return hardware;
  const std::string text = lower(hardware);
  for (const Known& known : kKnown) {
    if (has_word(text, known.word) &&
        (known.other.empty() || text.find(known.other) != std::string::npos) &&
        std::binary_search(names.begin(), names.end(), known.cluster)) {
      return std::string(known.cluster);
    }
  }
  return "";
}

}  // namespace

RunSystem system_of(const MeasuredRun& run) {
  RunSystem result;
  const std::string name = cluster_of(run.hardware);
  if (name.empty()) {
    result.reason = run.hardware.empty()
                        ? "the hardware is not said"
                        : "hardware " + quoted(run.hardware) + " is not in the catalogue";
    return result;
  }
  if (run.devices == 0 || run.devices > kMostDevices) {
    result.reason =
        run.devices == 0 ? "the number of devices is not said" : "there are too many devices";
    return result;
  }
  result.system = load_system(name + ":" + std::to_string(run.devices));
  place_in_segments(result.system);
  NodeLinks links = links_of(lower(run.interconnect));
  if (links.node_bytes_per_s == 0 && links.device_bytes_per_s == 0) {
    links = links_of(lower(run.notes));
  }
  apply_links(links, result.system);
  return result;
}

}  // namespace braid
