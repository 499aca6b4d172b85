#pragma once

#include "braid/system/system.h"

namespace braid::test {

inline NetworkLevel level(Topology topology, std::int64_t size, double bytes_per_s,
                          double unit_bytes_per_s, double latency_s) {
  NetworkLevel made;
  made.name = "level";
  made.topology = topology;
  made.size = size;
  made.bytes_per_s = bytes_per_s;
  made.unit_bytes_per_s = unit_bytes_per_s;
  made.latency_s = latency_s;
  made.efficiency = 1;
  return made;
}

}  // namespace braid::test
