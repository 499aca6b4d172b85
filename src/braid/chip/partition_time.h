#pragma once

#include <algorithm>

#include "braid/chip/mapping.h"

namespace braid {

/// Time of a partition that computes, moves tensors and sends messages for these times.
inline double partition_time_s(double compute_s, double memory_s, double network_s,
                               PartitionOverlap overlap) {
  switch (overlap) {
    case PartitionOverlap::all:
      return std::max({compute_s, memory_s, network_s});
    case PartitionOverlap::compute_memory:
      return std::max(compute_s, memory_s) + network_s;
    case PartitionOverlap::none:
      break;
  }
  return compute_s + memory_s + network_s;
}

}  // namespace braid
