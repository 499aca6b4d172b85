#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

/// What the system says of the machine that braid runs on.
struct MachineFacts {
  std::string processor;    ///< "Intel(R) Xeon(R) Processor, 2 cores": machine_name().
  std::int64_t cores = 1;   ///< That this process may use.
  double memory_bytes = 0;  ///< Main memory, or as much of it as this process's group may have.
  double cache_bytes = 0;   ///< The largest cache; 0: not known.
};

MachineFacts machine_facts();

/// Main memory by the text of /proc/meminfo, limited by that of a control group's memory.max
/// ("max" or "": no limit). 0 where the text does not say.
double memory_bytes(std::string_view meminfo, std::string_view group_limit);

}  // namespace braid
