#include "braid/system/links.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <tuple>

#include "braid/base/infinity.h"
#include "braid/system/topology.h"

namespace braid {
namespace {

const NetworkLevel& inside_node(const System& system, const Placement& place) {
  return system.groups[place.group].intra_node;
}

double matrix_entry(const System& system, const Flow& flow) {
  return system.bandwidth_matrix[static_cast<std::size_t>(flow.from) *
                                     static_cast<std::size_t>(system.device_count) +
                                 static_cast<std::size_t>(flow.to)];
}

/// Something that flows share.
struct Resource {
  enum class Kind : std::uint8_t { pair, device_out, device_in, unit_out, unit_in };
  Kind kind = Kind::pair;
  std::size_t level = 0;
  std::int64_t first = 0;   ///< Device or unit.
  std::int64_t second = 0;  ///< Of a pair.
  friend bool operator<(const Resource& a, const Resource& b) {
    return std::tie(a.kind, a.level, a.first, a.second) <
           std::tie(b.kind, b.level, b.first, b.second);
  }
};

/// A flow's claim on a resource: with `share` flows on it, it has bytes_per_s / share, and never
/// more than `alone`.
struct Claim {
  Resource resource;
  double bytes_per_s = 0;
  double alone_bytes_per_s = kInfinity;
  const NetworkLevel* level = nullptr;  ///< Null for a matrix.
};

/// What messages of that size reach of a nominal bandwidth.
double achieved(const NetworkLevel* level, double bandwidth, double message_bytes) {
  if (level == nullptr) return bandwidth;
  const double half = level->half_bytes;
  const double ramp = half > 0 ? message_bytes / (message_bytes + half) : 1.0;
  return bandwidth * level->efficiency * ramp;
}

template <typename Take>
void claims_of(const System& system, const Flow& flow, const Take& take) {
  using Kind = Resource::Kind;
  if (flow.from == flow.to) return;
  if (!system.bandwidth_matrix.empty()) {
    take(
        Claim{{Kind::pair, 0, flow.from, flow.to}, matrix_entry(system, flow), kInfinity, nullptr});
    return;
  }
  const Placement from = placement_of(system, flow.from);
  const Placement to = placement_of(system, flow.to);
  const std::size_t top = level_between(system, flow.from, flow.to);
  if (top == 0) {
    const NetworkLevel& level = inside_node(system, from);
    const double link = level.bytes_per_s * link_fraction(level);
    take(Claim{{Kind::device_out, 0, flow.from, 0}, level.bytes_per_s, link, &level});
    take(Claim{{Kind::device_in, 0, flow.to, 0}, level.bytes_per_s, link, &level});
    if (link < level.bytes_per_s) {
      take(Claim{{Kind::pair, 0, flow.from, flow.to}, link, kInfinity, &level});
    }
    return;
  }
  for (std::size_t l = 1; l <= top; ++l) {
    const NetworkLevel& level = system.levels[l - 1];
    const double part = std::min(link_fraction(level), 1.0 / level.rails);
    const double out = uplink_bytes_per_s(system, l, from);
    const double in = uplink_bytes_per_s(system, l, to);
    const std::int64_t from_unit = unit_of(system, l, from.node);
    const std::int64_t to_unit = unit_of(system, l, to.node);
    take(Claim{{Kind::unit_out, l, from_unit, 0}, out, out * part, &level});
    take(Claim{{Kind::unit_in, l, to_unit, 0}, in, in * part, &level});
    if (l == top && link_fraction(level) < 1) {
      const double link = std::min(out, in) * link_fraction(level);
      take(Claim{{Kind::pair, l, from_unit, to_unit}, link, kInfinity, &level});
    }
  }
}

/// Calls `take(flow, level, bytes_per_s)` with what each flow gets, when all run at once, of
/// everything that it passes.
template <typename Take>
void share_out(const System& system, std::span<const Flow> flows, const Take& take) {
  struct ClaimOfFlow {
    Claim claim;
    std::size_t flow = 0;
  };
  std::vector<ClaimOfFlow> claims;
  claims.reserve(4 * flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    claims_of(system, flows[f], [&](const Claim& claim) { claims.push_back({claim, f}); });
  }
  std::sort(claims.begin(), claims.end(), [](const ClaimOfFlow& a, const ClaimOfFlow& b) {
    return a.claim.resource < b.claim.resource;
  });
  for (std::size_t first = 0, end = 0; first < claims.size(); first = end) {
    const Resource& resource = claims[first].claim.resource;
    while (end < claims.size() && !(resource < claims[end].claim.resource)) ++end;
    const auto users = static_cast<double>(end - first);
    for (std::size_t c = first; c < end; ++c) {
      const Claim& claim = claims[c].claim;
      take(claims[c].flow, claim.level,
           std::min(claim.bytes_per_s / users, claim.alone_bytes_per_s));
    }
  }
}

}  // namespace

double uplink_bytes_per_s(const System& system, std::size_t level, const Placement& place) {
  const NetworkLevel& across = system.levels[level - 1];
  double bandwidth = std::max(across.unit_bytes_per_s, across.bytes_per_s);
  const double own = system.groups[place.group].node_bytes_per_s;
  if (level == 1 && own > 0) bandwidth = std::min(bandwidth, own);
  return bandwidth / across.oversubscription;
}

std::int64_t unit_of(const System& system, std::size_t level, std::int64_t node) {
  for (std::size_t l = 1; l < level; ++l) {
    node /= std::max<std::int64_t>(1, system.levels[l - 1].size);
  }
  return node;
}

Placement placement_of(const System& system, std::int64_t device) {
  assert(device >= 0 && device < system.device_count);
  Placement place;
  for (place.group = 0; place.group + 1 < system.groups.size(); ++place.group) {
    const DeviceGroup& group = system.groups[place.group];
    const std::int64_t devices = group.nodes * group.devices_per_node;
    if (device < devices) break;
    device -= devices;
    place.node += group.nodes;
  }
  const std::int64_t per_node = system.groups[place.group].devices_per_node;
  place.node += device / per_node;
  place.slot = device % per_node;
  return place;
}

const Chip& chip_at(const System& system, std::int64_t device) {
  if (system.groups.size() == 1) return system.groups.front().chip;
  return system.groups[placement_of(system, device).group].chip;
}

std::vector<std::size_t> groups_of(const System& system, std::span<const std::int64_t> devices) {
  if (system.groups.size() == 1 && !devices.empty()) return {0};
  std::vector<std::size_t> groups;
  for (const std::int64_t device : devices) {
    const std::size_t group = placement_of(system, device).group;
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

std::string chip_names_of(const System& system, std::span<const std::size_t> groups) {
  std::string names;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string& name = system.groups[groups[g]].chip.name;
    const auto before = groups.first(g);
    if (std::any_of(before.begin(), before.end(),
                    [&](std::size_t other) { return system.groups[other].chip.name == name; })) {
      continue;
    }
    names += (names.empty() ? "" : " + ") + name;
  }
  return names;
}

std::string chip_names_of(const System& system) {
  std::vector<std::size_t> all(system.groups.size());
  std::iota(all.begin(), all.end(), 0);
  return chip_names_of(system, all);
}

std::size_t level_between(const System& system, std::int64_t from, std::int64_t to) {
  std::int64_t a = placement_of(system, from).node;
  std::int64_t b = placement_of(system, to).node;
  std::size_t level = 0;
  while (a != b && level < system.levels.size()) {
    const std::int64_t size = std::max<std::int64_t>(1, system.levels[level].size);
    ++level;
    a /= size;
    b /= size;
  }
  return level;
}

double link_bytes_per_s(const System& system, std::int64_t from, std::int64_t to) {
  double rate = kInfinity;
  claims_of(system, {from, to}, [&](const Claim& claim) {
    rate = std::min({rate, claim.bytes_per_s, claim.alone_bytes_per_s});
  });
  return rate;
}

double link_latency_s(const System& system, std::int64_t from, std::int64_t to) {
  if (from == to || !system.bandwidth_matrix.empty()) return 0;
  const std::size_t level = level_between(system, from, to);
  return level == 0 ? inside_node(system, placement_of(system, from)).latency_s
                    : system.levels[level - 1].latency_s;
}

std::vector<double> flow_rates(const System& system, std::span<const Flow> flows,
                               double message_bytes) {
  std::vector<double> rates(flows.size(), kInfinity);
  share_out(system, flows, [&](std::size_t flow, const NetworkLevel* level, double bytes_per_s) {
    rates[flow] = std::min(rates[flow], achieved(level, bytes_per_s, message_bytes));
  });
  return rates;
}

FlowTimes::FlowTimes(const System& system, std::span<const Flow> flows) {
  std::vector<Kind> of_flow(flows.size());
  share_out(system, flows, [&](std::size_t flow, const NetworkLevel* level, double bytes_per_s) {
    std::vector<Part>& parts = of_flow[flow].parts;
    const auto known = std::find_if(parts.begin(), parts.end(),
                                    [level](const Part& part) { return part.level == level; });
    if (known == parts.end()) {
      parts.push_back({level, bytes_per_s});
    } else {
      known->bytes_per_s = std::min(known->bytes_per_s, bytes_per_s);
    }
  });
  for (std::size_t f = 0; f < flows.size(); ++f) {
    Kind& kind = of_flow[f];
    kind.latency_s = link_latency_s(system, flows[f].from, flows[f].to);
    if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) {
      kinds_.push_back(std::move(kind));
    }
  }
}

double FlowTimes::slowest_s(double message_bytes) const {
  double slowest_s = 0;
  for (const Kind& kind : kinds_) {
    double rate = kInfinity;
    for (const Part& part : kind.parts) {
      rate = std::min(rate, achieved(part.level, part.bytes_per_s, message_bytes));
    }
    slowest_s = std::max(slowest_s, kind.latency_s + message_bytes / rate);
  }
  return slowest_s;
}

double message_s(const System& system, std::int64_t from, std::int64_t to, double bytes,
                 std::int64_t concurrent) {
  if (from == to || bytes <= 0) return 0;
  const auto sharers = static_cast<double>(std::max<std::int64_t>(1, concurrent));
  double rate = kInfinity;
  claims_of(system, {from, to}, [&](const Claim& claim) {
    const double share = claim.resource.level > 0 ? claim.bytes_per_s / sharers : claim.bytes_per_s;
    rate = std::min(rate, achieved(claim.level, std::min(share, claim.alone_bytes_per_s), bytes));
  });
  return link_latency_s(system, from, to) + bytes / rate;
}

double ring_all_reduce_s(const System& system, std::span<const std::int64_t> ring, double bytes) {
  const std::vector<std::int64_t> members(ring.begin(), ring.end());
  return ring_all_reduce_s(system, std::span(&members, 1), bytes).front();
}

std::vector<double> ring_all_reduce_s(const System& system,
                                      std::span<const std::vector<std::int64_t>> rings,
                                      double bytes) {
  std::vector<double> times(rings.size(), 0.0);
  // Rings of one size send messages of one size; the flows of all rings share the links.
  std::vector<Flow> flows;
  for (const std::vector<std::int64_t>& ring : rings) {
    for (std::size_t i = 0; ring.size() > 1 && i < ring.size(); ++i) {
      flows.push_back({ring[i], ring[(i + 1) % ring.size()]});
    }
  }
  if (bytes <= 0) return times;
  std::map<std::size_t, std::vector<double>> rates_by_size;
  std::size_t first = 0;
  for (std::size_t r = 0; r < rings.size(); ++r) {
    const std::size_t n = rings[r].size();
    if (n < 2) continue;
    const double block = bytes / static_cast<double>(n);
    auto [found, fresh] = rates_by_size.try_emplace(n);
    if (fresh) found->second = flow_rates(system, flows, block);
    double step_s = 0;
    for (std::size_t i = first; i < first + n; ++i) {
      step_s = std::max(
          step_s, link_latency_s(system, flows[i].from, flows[i].to) + block / found->second[i]);
    }
    times[r] = 2 * static_cast<double>(n - 1) * step_s;
    first += n;
  }
  return times;
}

}  // namespace braid
