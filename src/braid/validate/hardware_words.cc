#include "braid/validate/hardware_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>

#include "braid/base/text.h"
#include "braid/system/system.h"

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
                               Known{"gh200", "", "gh200-quad"},
                               Known{"h200", "", "dgx-h200"},
                               Known{"h100", "pcie", "h100-pcie-server"},
                               Known{"h100", "", "dgx-h100"},
                               Known{"a100", "pcie", "a100-pcie-server"},
                               Known{"a100", "40gb", "p4d.24xlarge"},
                               Known{"a100", "40 gb", "p4d.24xlarge"},
                               Known{"a100", "", "dgx-a100"},
                               Known{"a10g", "", "g5.48xlarge"},
                               Known{"mi300x", "", "mi300x-platform"},
                               Known{"v100", "16gb", "p3.16xlarge"},
                               Known{"v100", "16 gb", "p3.16xlarge"},
                               Known{"v100", "", "dgx-1"},
                               Known{"v5litepod", "", "tpu-v5e-pod"},
                               Known{"v5e", "", "tpu-v5e-pod"},
                               Known{"v5p", "", "tpu-v5p-pod"},
                               Known{"v6e", "", "tpu-v6e-pod"},
                               Known{"ironwood", "", "tpu-v7-pod"},
                               Known{"tpu v4", "", "tpu-v4-pod"},
                               Known{"tpuv4", "", "tpu-v4-pod"},
                               Known{"l40s", "", "l40s-server"},
                               Known{"l4", "", "g6.48xlarge"},
                               Known{"t4", "", "g4dn.12xlarge"},
                               Known{"titan rtx", "", "titan-rtx-server"},
                               Known{"3090", "", "rtx-3090-server"},
                               Known{"rtx3090", "", "rtx-3090-server"},
                               Known{"2080 ti", "", "rtx-2080-ti-server"},
                               Known{"2080ti", "", "rtx-2080-ti-server"},
                               Known{"2080", "", "rtx-2080-server"},
                               Known{"rtx2080ti", "", "rtx-2080-ti-server"},
                               Known{"rtx2080", "", "rtx-2080-server"}};

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether text[at] follows a count such as "8x".
bool follows_count(std::string_view text, std::size_t at) {
  return at >= 2 && text[at - 1] == 'x' && is_digit(text[at - 2]);
}

/// Where `word` stands in `text` with no letter or digit right before it, but for a count, and no
/// digit behind it.
std::optional<std::size_t> find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_alnum(text[at - 1]) || follows_count(text, at);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_digit(text[end]))) return at;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(std::string_view digits) {
  constexpr std::size_t kMostDigits = 9;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::int64_t number = 0;
  for (const char c : digits) number = 10 * number + (c - '0');
  return number > 0 ? std::optional(number) : std::nullopt;
}

/// The number in "12x V100", "12 V100", "3x AWS p3.8xlarge" before the name at `at`: the last one
/// that stands by itself.
std::optional<std::int64_t> number_before(std::string_view part, std::size_t at) {
  for (std::size_t end = at; end > 0; --end) {
    if (!is_digit(part[end - 1])) continue;
    std::size_t begin = end;
    while (begin > 0 && is_digit(part[begin - 1])) --begin;
    const bool starts = begin == 0 || !(is_alnum(part[begin - 1]) || part[begin - 1] == '-' ||
                                        part[begin - 1] == '.');
    const bool stops = end == part.size() || part[end] == ' ' || part[end] == '*' ||
                       (part[end] == 'x' && (end + 1 >= part.size() || !is_digit(part[end + 1])));
    if (starts && stops) return number_in(part.substr(begin, end - begin));
    end = begin + 1;
  }
  return std::nullopt;
}

/// The number in "V100-16GB x12" or "p3.8xlarge:12" behind the name that ends at `end`.
std::optional<std::int64_t> number_behind(std::string_view part, std::size_t end, char mark) {
  for (std::size_t at = part.find(mark, end); at != std::string_view::npos;
       at = part.find(mark, at + 1)) {
    if (mark == 'x' && at > 0 && is_alnum(part[at - 1])) continue;
    std::size_t begin = at + 1;
    while (begin < part.size() && part[begin] == ' ') ++begin;
    std::size_t stop = begin;
    while (stop < part.size() && is_digit(part[stop])) ++stop;
    if (stop > begin && (stop == part.size() || part[stop] != '.')) {
      return number_in(part.substr(begin, stop - begin));
    }
  }
  return std::nullopt;
}

/// A name of the catalogue in a text, and where it stands.
struct NameMatch {
  std::string cluster;
  std::size_t begin = 0, end = 0;
};

/// The longest name of a cluster.
NameMatch find_cluster(std::string_view part, const std::vector<std::string>& clusters) {
  NameMatch longest;
  for (const std::string& cluster : clusters) {
    const auto at = find_word(part, cluster);
    if (at && cluster.size() > longest.cluster.size())
      longest = {cluster, *at, *at + cluster.size()};
  }
  return longest;
}

NameMatch find_chip(std::string_view part, const std::vector<std::string>& clusters) {
  for (const Known& known : kKnown) {
    const auto at = find_word(part, known.word);
    if (at && part.find(known.other) != std::string_view::npos &&
        std::binary_search(clusters.begin(), clusters.end(), known.cluster)) {
      return {std::string(known.cluster), *at, *at + known.word.size()};
    }
  }
  return {};
}

std::optional<NamedHardware> read_part(std::string_view part,
                                       const std::vector<std::string>& clusters) {
  const NameMatch cluster = find_cluster(part, clusters);
  const NameMatch chip = find_chip(part, clusters);
  if (cluster.cluster.empty() && chip.cluster.empty()) return std::nullopt;
  NamedHardware named;
  named.cluster = cluster.cluster.empty() ? chip.cluster : cluster.cluster;
  // The count belongs to what is named first.
  named.nodes = chip.cluster.empty() || (!cluster.cluster.empty() && cluster.begin < chip.begin);
  const NameMatch& first = named.nodes ? cluster : chip;
  auto count = number_behind(part, first.end, ':');
  if (count) named.nodes = part.find("nodes", first.end) != std::string_view::npos;
  if (!count) count = number_before(part, first.begin);
  if (!count) count = number_behind(part, first.end, 'x');
  named.count = count.value_or(0);
  return named;
}

/// At + & , ; / and the word "and", outside of parentheses.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  constexpr std::string_view kAnd = " and ";
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth > 0) continue;
    const bool joined = text.substr(i).starts_with(kAnd);
    if (!joined && std::string_view("+&,;/").find(text[i]) == std::string_view::npos) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + (joined ? kAnd.size() : 1);
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

std::string chip_family(const std::string& cluster) {
  const std::string chip = load_system(cluster + ":1nodes").groups.front().chip.name;
  return chip.substr(0, chip.find('-'));
}

std::vector<NamedHardware> named_hardware(std::string_view text) {
  const std::string low = lowered(text);
  const std::vector<std::string> clusters = cluster_names();
  std::vector<NamedHardware> named;
  // "A100, p4de.24xlarge" is one type, and the node says more than the chip.
  const auto same_chip = [](const NamedHardware& a, const NamedHardware& b) {
    return (a.count == 0 || b.count == 0) && chip_family(a.cluster) == chip_family(b.cluster);
  };
  for (const std::string_view part : parts_of(low)) {
    auto read = read_part(part, clusters);
    if (!read) continue;
    const auto same = std::find_if(named.begin(), named.end(), [&](const NamedHardware& other) {
      return other.cluster == read->cluster || same_chip(other, *read);
    });
    if (same == named.end()) {
      named.push_back(std::move(*read));
    } else if (same->count == 0 && (read->count > 0 || read->nodes)) {
      *same = std::move(*read);
    }
  }
  return named;
}

}  // namespace braid
