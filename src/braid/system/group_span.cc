#include "braid/system/group_span.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/system/aligned_span.h"

namespace braid {
namespace {

using Counts = std::vector<std::int64_t>;

/// Whether every unit of `capacity` devices cuts groups of this form alike, or not at all.
bool meets_edges(std::int64_t capacity, std::int64_t stride, std::int64_t size) {
  const std::int64_t block = stride * size;
  return (capacity % block == 0 || block % capacity == 0) &&
         (capacity % stride == 0 || stride % capacity == 0);
}

/// Units of `capacity` devices that devices first, first + stride, … (`size` of them) touch.
std::int64_t units_touched(std::int64_t capacity, std::int64_t first, std::int64_t stride,
                           std::int64_t size) {
  if (stride >= capacity) return size;
  return (first + (size - 1) * stride) / capacity - first / capacity + 1;
}

/// First device of the group that touches most units, of the outermost level first.
std::int64_t widest_group(const Counts& capacities, std::int64_t stride, std::int64_t size,
                          std::int64_t device_count) {
  const std::int64_t block = stride * size;
  const std::size_t finite = capacities.size() - 1;
  // Blocks lie on the units as the first `period` do, and interleaved groups as the first of a
  // unit.
  const std::int64_t unit = capacities[finite - 1];
  const std::int64_t period = unit / std::gcd(unit, block);
  const std::int64_t blocks = std::clamp<std::int64_t>(device_count / block, 1, period);
  std::int64_t widest = 0;
  Counts most(finite, 0);
  Counts touched(finite, 0);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t offset = 0; offset < std::min(stride, unit); ++offset) {
      const std::int64_t first = b * block + offset;
      for (std::size_t l = 0; l < finite; ++l) {
        touched[finite - 1 - l] = units_touched(capacities[l], first, stride, size);
      }
      if (touched > most) {
        most = touched;
        widest = first;
      }
    }
  }
  return widest;
}

/// For each level, the most units of the level below that the group touches within one unit.
Counts members_of(const Counts& capacities, std::int64_t first, std::int64_t stride,
                  std::int64_t size) {
  Counts members(capacities.size(), 0);
  Counts here(capacities.size(), 0);
  Counts ends(capacities.size(), 0);  // Of the unit that the last device was in.
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t device = first + i * stride;
    bool new_unit = true;  // Of the level below: a device is one at level 0.
    for (std::size_t l = 0; l < capacities.size() && new_unit; ++l) {
      bool enters = i == 0;
      if (l + 1 < capacities.size() && device >= ends[l]) {
        ends[l] = (device / capacities[l] + 1) * capacities[l];
        enters = true;
      }
      here[l] = enters ? 1 : here[l] + 1;
      members[l] = std::max(members[l], here[l]);
      new_unit = enters;
    }
  }
  return members;
}

/// Of the block that covers `edge`, the offsets of the groups with members on both sides of it.
std::pair<std::int64_t, std::int64_t> cut_groups(std::int64_t edge, std::int64_t stride,
                                                 std::int64_t size) {
  const std::int64_t inside = edge % (stride * size);
  return {std::max<std::int64_t>(0, inside - (size - 1) * stride), std::min(stride, inside)};
}

/// The most groups that lie partly in one unit of `unit` devices.
std::int64_t most_leaving(std::int64_t unit, std::int64_t stride, std::int64_t size,
                          std::int64_t device_count) {
  if (stride >= unit) return unit;
  const std::int64_t block = stride * size;
  const std::int64_t covered = std::max(block, device_count / block * block);
  const std::int64_t period = block / std::gcd(unit, block);
  const std::int64_t units = std::min(period, (covered + unit - 1) / unit);
  std::int64_t most = 1;
  for (std::int64_t u = 0; u < units; ++u) {
    const std::int64_t begin = u * unit;
    const std::int64_t end = begin + unit;
    const auto left = begin > 0 ? cut_groups(begin, stride, size) : std::pair{begin, begin};
    const auto right = end < covered ? cut_groups(end, stride, size) : std::pair{begin, begin};
    std::int64_t leaving = std::max<std::int64_t>(0, left.second - left.first) +
                           std::max<std::int64_t>(0, right.second - right.first);
    // Groups of one block that reaches over both edges count once.
    if (begin / block == (end - 1) / block) {
      leaving -= std::max<std::int64_t>(
          0, std::min(left.second, right.second) - std::max(left.first, right.first));
    }
    most = std::max(most, leaving);
  }
  return most;
}

/// The outermost unit has all devices and cuts nothing.
bool all_meet_edges(const Counts& capacities, std::int64_t stride, std::int64_t size) {
  return std::all_of(capacities.begin(), capacities.end() - 1,
                     [&](std::int64_t c) { return meets_edges(c, stride, size); });
}

}  // namespace

bool lies_evenly(const System& system, std::int64_t stride, std::int64_t size) {
  return all_meet_edges(unit_devices(system), stride, size);
}

GroupSpan span_of(const System& system, std::int64_t stride, std::int64_t size,
                  std::int64_t devices) {
  const Counts capacities = unit_devices(system);
  if (all_meet_edges(capacities, stride, size)) return aligned_span(system, stride, size);
  GroupSpan span;
  span.members =
      members_of(capacities, widest_group(capacities, stride, size, devices), stride, size);
  span.sharing.push_back(1);
  for (std::size_t l = 1; l < capacities.size(); ++l) {
    span.sharing.push_back(
        span.members[l] == 1 ? 1 : most_leaving(capacities[l - 1], stride, size, devices));
  }
  return span;
}

}  // namespace braid
