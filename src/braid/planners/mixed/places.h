#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
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

/// Places of stages, and what messages between them take, worked out once.
class MixedPlaces {
 public:
  /// Both outlive this.
  MixedPlaces(const System& system, std::span<const DeviceRun> runs)
      : system_(system), runs_(runs) {}

  /// Of all kinds' runs, ascending.
  std::vector<std::int64_t> devices(const MixedPlace& place) const;
  /// Time of a message of that many bytes from each of the devices, as handover_s(). What does not
  /// depend on the bytes is kept.
  double message_s(const MixedPlace& from, const MixedPlace& to, double bytes);
  /// Something was worked out afresh over so many devices.
  void meet(std::int64_t devices) { devices_met_ += std::max<std::int64_t>(0, devices - kFew); }
  /// Devices of all these, but for the first few of each.
  std::int64_t devices_met() const { return devices_met_; }

 private:
  /// So many take next to no time.
  static constexpr std::int64_t kFew = 64;

  const System& system_;
  std::span<const DeviceRun> runs_;
  /// [used and taken behind either end]
  std::map<std::vector<std::int32_t>, FlowTimes> messages_;
  std::int64_t devices_met_ = 0;
};

}  // namespace braid
