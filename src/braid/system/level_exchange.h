#pragma once

#include <cmath>

#include "braid/system/collective.h"

namespace braid {

/// One level of a group of devices, ready for the formulas.
struct LevelStep {
  const NetworkLevel* level = nullptr;
  double members = 1;          ///< Units of the level below that take part.
  double inner = 1;            ///< Devices of the group within each of them.
  double group_bandwidth = 0;  ///< Of one unit's members together, when each carries its share.
  double flow_bandwidth = 0;   ///< Of a single flow out of a unit.
};

inline double log2_ceil(double value) { return std::ceil(std::log2(value)); }

/// The faster of two.
inline CollectiveTime better(const CollectiveTime& a, const CollectiveTime& b) {
  return b.time_s < a.time_s ? b : a;
}

inline CollectiveTime timed(double latency_s, double transfer_s, CollectiveAlgorithm algorithm) {
  return {latency_s + transfer_s, algorithm, latency_s};
}

/// What messages of that size reach of a bandwidth on that level.
double achieved_bytes_per_s(const NetworkLevel& level, double bandwidth, double bytes);

/// Scatter-reduce and/or gather of `bytes` over one level, by ring, direct or double binary tree:
/// `rounds` is 1 for one of them, 2 for both.
CollectiveTime level_exchange(const LevelStep& step, double bytes, double rounds);

}  // namespace braid
