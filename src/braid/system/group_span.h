#pragma once

#include <cstdint>
#include <vector>

#include "braid/system/system.h"

namespace braid {

/// How one communicator lies on the hierarchy of a homogeneous system.
struct GroupSpan {
  /// For level 0 (node), 1, … : how many units of the level below the group touches within one unit
  /// of this level, where it touches most. The product is the group's size where units are filled
  /// evenly, and above it where they are not.
  std::vector<std::int64_t> members;
  /// For each level: how many such groups share one lower unit's link at that level at the same
  /// time (1: alone; 8: each of a node's eight devices belongs to a different group that leaves the
  /// node).
  std::vector<std::int64_t> sharing;
  friend bool operator==(const GroupSpan&, const GroupSpan&) = default;
};

/// The span of groups of `size` devices `stride` apart, when the first `devices` of `system` take
/// part in groups of this form: blocks of size·stride devices follow one another from device 0 on,
/// each of `stride` interleaved groups. Where the edges of blocks and units do not meet, the group
/// that touches most units (of the outermost level first) stands for all. Cost: linear in the
/// levels where they meet, else in the devices of a unit.
GroupSpan span_of(const System& system, std::int64_t stride, std::int64_t size,
                  std::int64_t devices);

/// The same when all devices of `system` take part.
inline GroupSpan span_of(const System& system, std::int64_t stride, std::int64_t size) {
  return span_of(system, stride, size, system.device_count);
}

/// Whether groups of this form lie on the units of each level alike wherever they start, so that
/// their span is the same for any number of devices.
bool lies_evenly(const System& system, std::int64_t stride, std::int64_t size);

}  // namespace braid
