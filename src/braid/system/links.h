#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/system/system.h"

namespace braid {

// Bandwidth, latency and ring collectives between explicitly named devices of any system: mixed
// groups, ragged nodes, bandwidth matrices. collective.h has the closed forms for groups of a
// homogeneous system. Devices are numbered as in System; all numbers given must be in
// [0, device_count).

/// Where a device is.
struct Placement {
  std::size_t group = 0;  ///< Index into System::groups.
  std::int64_t node = 0;  ///< Counted across groups, from 0.
  std::int64_t slot = 0;  ///< Within its node.
  friend bool operator==(const Placement&, const Placement&) = default;
};
/// Cost: groups.
Placement placement_of(const System& system, std::int64_t device);

/// Chip of a device.
const Chip& chip_at(const System& system, std::int64_t device);

/// Groups that the devices lie in, ascending.
std::vector<std::size_t> groups_of(const System& system, std::span<const std::int64_t> devices);

/// Names of these groups' chips, each once: `V100-SXM2-16GB + T4`.
std::string chip_names_of(const System& system, std::span<const std::size_t> groups);
/// Of all groups.
std::string chip_names_of(const System& system);

/// The innermost network that joins both: 0 inside a node, l for System::levels[l - 1].
std::size_t level_between(const System& system, std::int64_t from, std::int64_t to);

/// Number of the unit that `node` is in, among the units that `level` (1 …) joins.
std::int64_t unit_of(const System& system, std::size_t level, std::int64_t node);

/// What the unit of `level` (1 …) that holds `place` can send into that level in all, less
/// oversubscription. Without a matrix.
double uplink_bytes_per_s(const System& system, std::size_t level, const Placement& place);

/// Nominal bandwidth of a single flow from one device to another while nothing else runs. With a
/// matrix its entry. Else inside a node the link between them (all of the device's bandwidth
/// through a switch, one link of a ring, torus or full mesh); between nodes the least over every
/// level on the way of what either end's unit sends, less oversubscription, and of one rail.
/// Infinite from a device to itself. Cost: groups + levels.
double link_bytes_per_s(const System& system, std::int64_t from, std::int64_t to);

/// Latency of one message: that of the innermost network that joins both; 0 with a bandwidth
/// matrix (which states none) and from a device to itself.
double link_latency_s(const System& system, std::int64_t from, std::int64_t to);

/// A stream of bytes from one device to another.
struct Flow {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Rates in bytes/s that the flows reach when all run at once and each sends messages of
/// `message_bytes`: each port, link, node uplink and outer unit's uplink divides its bandwidth
/// equally among the flows through it (in each direction by itself), and a flow has the least of
/// its shares, times each network's achieved share for that message size. This is a lower bound on
/// max-min fair sharing, and equal to it when all flows look alike. Flows passing through third
/// devices of a ring or torus are not charged to those. A bandwidth matrix says nothing of shared
/// links: each flow has its entry, shared among flows between the same two devices.
/// Infinite for flows from a device to itself. Cost: flows x (groups + levels) + sorting.
std::vector<double> flow_rates(const System& system, std::span<const Flow> flows,
                               double message_bytes);

/// What the messages of flows that run at once take, for any number of bytes: flow_rates() and
/// link_latency_s() with what does not depend on the bytes worked out once.
class FlowTimes {
 public:
  /// `system` outlives this. Cost: as flow_rates().
  FlowTimes(const System& system, std::span<const Flow> flows);
  /// Of the slowest flow's message; 0 without flows. Cost: flows that differ, which are few.
  double slowest_s(double message_bytes) const;

 private:
  /// What a flow gets of a network.
  struct Part {
    const NetworkLevel* level = nullptr;  ///< Null: of a matrix.
    double bytes_per_s = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Kind {
    double latency_s = 0;
    std::vector<Part> parts;  ///< The least of each network; none: to itself.
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  std::vector<Kind> kinds_;
};

/// Time of one message of `bytes`: latency + bytes / achieved rate, while `concurrent` flows (this
/// one among them) share each node's and outer unit's uplink on its way.
double message_s(const System& system, std::int64_t from, std::int64_t to, double bytes,
                 std::int64_t concurrent = 1);

/// Ring all-reduce of `bytes` over the devices in the order given, alone: 2(n - 1) steps, each as
/// long as the slowest of its n messages of bytes / n (Thakur et al. 2005). 0 for fewer than two
/// devices. Devices of one node are best named next to each other.
double ring_all_reduce_s(const System& system, std::span<const std::int64_t> ring, double bytes);

/// The same for several rings that run at the same time and share nodes' uplinks and devices'
/// ports as in flow_rates; one time for each ring. A ring of its own that is done early does not
/// speed up the others.
std::vector<double> ring_all_reduce_s(const System& system,
                                      std::span<const std::vector<std::int64_t>> rings,
                                      double bytes);

}  // namespace braid
