#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "braid/explore/system_space.h"

namespace braid {

//   memory_groups(memories);  // of 32, 64 and 80 GiB at one rate: {{2, 0, 1}}

/// Memories that a family of systems may have together, as indices: a bound found with the first of
/// a group holds with the others. All are one group behind the memory that has most of everything;
/// where none has, each is alone. Without memories: one empty group.
std::vector<std::vector<std::size_t>> memory_groups(std::span<const PricedMemory> memories);

}  // namespace braid
