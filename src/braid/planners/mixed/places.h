#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "braid/system/links.h"
#include "braid/system/part.h"
#include "braid/system/system.h"

namespace braid {

/// Where a stage lies: behind it `used` devices of each kind are taken, from the end of the kind's
/// run, and it takes the next ones.
struct MixedPlace {
  std::span<const std::int32_t> used, takes;  ///< [kind]
};

/// Places of stages, which cost the same wherever they lie alike: without a bandwidth matrix and
/// with no more than one network between nodes, only which devices share a node counts. What is
/// inside one node may be anywhere in it; else whole nodes further on is the same.
class MixedPlaces {
 public:
  /// Both outlive this. `share`: whether what is alike is worked out once.
  MixedPlaces(const System& system, std::span<const DeviceRun> runs, bool share = true)
      : system_(system),
        runs_(runs),
        alike_(share && system.bandwidth_matrix.empty() && system.levels.size() <= 1) {}

  /// Of all kinds' runs, ascending.
  std::vector<std::int64_t> devices(const MixedPlace& place) const;
  /// A name for the place that places alike share.
  std::vector<std::int32_t> key(const MixedPlace& place) const { return key({&place, 1}); }
  /// Time of a message of that many bytes from each of the devices, as handover_s(). What does not
  /// depend on the bytes is kept.
  double message_s(const MixedPlace& from, const MixedPlace& to, double bytes);
  /// Messages that were worked out; those between places alike are one.
  std::int64_t messages_known() const { return std::ssize(messages_); }
  /// Something was worked out afresh over so many devices.
  void meet(std::int64_t devices) { devices_met_ += std::max<std::int64_t>(0, devices - kFew); }
  /// Devices of all these, but for the first few of each.
  std::int64_t devices_met() const { return devices_met_; }

 private:
  /// So many take next to no time.
  static constexpr std::int64_t kFew = 64;

  /// The only node that the place has devices in.
  struct Node {
    std::int32_t kind = 0, number = 0;
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::optional<Node> only_node(const MixedPlace& place) const;
  /// `places` are told apart from each other.
  std::vector<std::int32_t> key(std::span<const MixedPlace> places) const;
  /// The same for what a message takes, of which less counts.
  std::vector<std::int32_t> message_key(const MixedPlace& from, const MixedPlace& to) const;

  const System& system_;
  std::span<const DeviceRun> runs_;
  bool alike_ = false;  ///< Only which devices share a node counts.
  std::map<std::vector<std::int32_t>, FlowTimes> messages_;
  std::int64_t devices_met_ = 0;
};

}  // namespace braid
