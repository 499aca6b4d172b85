#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/plan/outcome.h"

namespace braid {

/// Times of an iteration by what they go into, with the words and in the order of all reports. They
/// sum to the iteration time.
std::vector<std::pair<std::string, double>> time_terms(const Metrics& metrics);

/// The same of memory on a device.
std::vector<std::pair<std::string, double>> memory_terms(const MemoryBreakdown& memory);

}  // namespace braid
