#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/piper/problem.h"
#include "braid/system/system.h"

namespace braid {

/// Devices of which nothing is known but their memory, all of which plans may fill, each as far
/// from all others at `bytes_per_s`: no peaks, no rate of memory (0), so that times are those of a
/// profile alone and the optimizer takes none. Messages start at once and reach the full rate.
System plain_system(std::int64_t devices, double memory_bytes, double bytes_per_s);

/// The same on a network of levels, lowest first: `bandwidth_bytes` are per second, of each unit
/// that a level joins, shared by its devices when all send.
System plain_system(const std::vector<PiperLevel>& levels, double memory_bytes);

}  // namespace braid
