#include "braid/system/named_groups.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "braid/system/aligned_span.h"
#include "braid/system/links.h"
#include "braid/system/named_hierarchy.h"

namespace braid {
namespace {

/// Like nodes on like networks that all devices lie in, as a system of its own.
struct Home {
  System system;
  std::int64_t first = 0;  ///< Device.
};

/// Whether collectives cannot tell nodes of the two groups apart.
bool alike(const DeviceGroup& a, const DeviceGroup& b) {
  return a.devices_per_node == b.devices_per_node && a.node_bytes_per_s == b.node_bytes_per_s &&
         a.intra_node == b.intra_node;
}

/// Whether what is in front of a node are whole units of all levels but the outermost.
bool starts_units(const System& system, std::int64_t node) {
  for (std::size_t l = 0; l + 1 < system.levels.size(); ++l) {
    const std::int64_t size = std::max<std::int64_t>(1, system.levels[l].size);
    if (node % size != 0) return false;
    node /= size;
  }
  return true;
}

/// Nullopt when the devices lie in different groups or on a bandwidth matrix.
std::optional<Home> home_of(const System& system,
                            std::span<const std::vector<std::int64_t>> groups) {
  if (!system.bandwidth_matrix.empty()) return std::nullopt;
  std::int64_t first = groups.front().front(), last = first;
  for (const std::vector<std::int64_t>& group : groups) {
    first = std::min(first, group.front());
    last = std::max(last, group.back());
  }
  const std::size_t from = placement_of(system, first).group;
  const std::size_t to = placement_of(system, last).group;
  Home home;
  std::int64_t nodes_before = 0;
  for (std::size_t g = 0; g < from; ++g) {
    nodes_before += system.groups[g].nodes;
    home.first += system.groups[g].nodes * system.groups[g].devices_per_node;
  }
  if (!starts_units(system, nodes_before)) return std::nullopt;
  home.system.groups = {system.groups[from]};
  for (std::size_t g = from + 1; g <= to; ++g) {
    if (!alike(system.groups[from], system.groups[g])) return std::nullopt;
    home.system.groups.front().nodes += system.groups[g].nodes;
  }
  home.system.levels = system.levels;
  const DeviceGroup& all = home.system.groups.front();
  home.system.device_count = system.groups.size() == to - from + 1
                                 ? system.device_count
                                 : all.nodes * all.devices_per_node;
  return home;
}

/// Whether the devices first, first + stride, … lie on the levels as {0, stride, …} do: each
/// level's units hold a whole number of members, or all of them.
bool is_aligned(const Home& home, std::int64_t first, std::int64_t stride, std::int64_t size) {
  const std::int64_t extent = (size - 1) * stride;
  std::int64_t unit = home.system.groups.front().devices_per_node;
  for (std::size_t l = 0; l <= home.system.levels.size(); ++l) {
    if (l > 0) unit *= std::max<std::int64_t>(1, home.system.levels[l - 1].size);
    const bool inside = first / unit == (first + extent) / unit;
    const bool whole =
        stride <= unit ? unit % stride == 0 && first % unit < stride : stride % unit == 0;
    if (!inside && !whole) return false;
    if (inside) return true;  // And inside all outer units.
  }
  return true;
}

/// Stride that all groups share; 0 when they do not lie evenly.
std::int64_t even_stride(const Home& home, std::span<const std::vector<std::int64_t>> groups) {
  const std::int64_t stride = groups.front()[1] - groups.front()[0];
  if (stride <= 0) return 0;
  for (const std::vector<std::int64_t>& group : groups) {
    for (std::size_t i = 1; i < group.size(); ++i) {
      if (group[i] - group[i - 1] != stride) return 0;
    }
    const auto size = static_cast<std::int64_t>(group.size());
    if (!is_aligned(home, group.front() - home.first, stride, size)) return 0;
  }
  return stride;
}

}  // namespace

double named_groups_time_s(Collective collective, double bytes,
                           std::span<const std::vector<std::int64_t>> groups,
                           const System& system) {
  assert(collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather);
  if (bytes <= 0 || groups.empty() || groups.front().size() < 2) return 0;
  if (const auto home = home_of(system, groups)) {
    if (const std::int64_t stride = even_stride(*home, groups); stride > 0) {
      const auto size = static_cast<std::int64_t>(groups.front().size());
      const GroupSpan span = aligned_span(home->system, stride, size);
      return collective_time(collective, bytes, span, home->system).time_s;
    }
  }
  const std::vector<double> times = ring_all_reduce_s(system, groups, bytes);
  const double slowest_s = *std::max_element(times.begin(), times.end());
  const double ring_s = collective == Collective::all_reduce ? slowest_s : slowest_s / 2;
  if (!system.bandwidth_matrix.empty()) return ring_s;
  return std::min(ring_s, named_hierarchy_time_s(collective, bytes, groups, system));
}

}  // namespace braid
