#include "braid/system/level_exchange.h"

#include <algorithm>

namespace braid {
namespace {

bool is_direct(Topology topology) {
  return topology == Topology::fully_connected || topology == Topology::switched ||
         topology == Topology::dragonfly;
}

}  // namespace

double achieved_bytes_per_s(const NetworkLevel& level, double bandwidth, double bytes) {
  const double ramp = level.half_bytes > 0 ? bytes / (bytes + level.half_bytes) : 1;
  return bandwidth * level.efficiency * ramp;
}

CollectiveTime level_exchange(const LevelStep& step, double bytes, double rounds) {
  const double n = step.members;
  const NetworkLevel& level = *step.level;
  const double message = bytes / n / std::max(1.0, step.inner);
  double hops = n - 1;
  if (level.topology == Topology::torus && !level.torus_dims.empty()) {
    // One bucket ring per dimension, all dimensions at once.
    double around = 0;
    for (const std::int64_t dim : level.torus_dims) around += static_cast<double>(dim - 1);
    hops = std::min(hops, around);
  }
  CollectiveTime best = timed(
      rounds * hops * level.latency_s,
      rounds * (n - 1) / n * bytes / achieved_bytes_per_s(level, step.group_bandwidth, message),
      CollectiveAlgorithm::ring);
  if (is_direct(level.topology)) {
    best = better(best, timed(rounds * level.latency_s,
                              rounds * (n - 1) / n * bytes /
                                  achieved_bytes_per_s(level, step.group_bandwidth, message),
                              CollectiveAlgorithm::direct));
  }
  if (rounds == 2) {
    // A double binary tree moves the whole tensor up and down, half of it along each tree.
    best =
        better(best, timed(2 * log2_ceil(n) * level.latency_s,
                           2 * bytes / achieved_bytes_per_s(level, step.group_bandwidth, bytes / 8),
                           CollectiveAlgorithm::tree));
  }
  return best;
}

}  // namespace braid
