#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/accelerator/architectures.h"

namespace braid {

//   for (const auto& family : families_by_array(all)) {
//     const Architecture best = envelope(all, family);    // none of the family is faster
//     const auto parts = split_family(all, family);       // two, with tighter envelopes
//   }

/// Architectures with arrays and lanes of the same size: indices into a list, ascending.
using ArchitectureFamily = std::vector<std::uint32_t>;

/// The families of a list, in the order of their first members.
std::vector<ArchitectureFamily> families_by_array(std::span<const Architecture> all);

/// The architecture with the most tensor cores, vector cores and global buffer of any in the
/// family. Operators take no longer on it than on a member. Its area is that of no member.
Architecture envelope(std::span<const Architecture> all, const ArchitectureFamily& family);

/// A family of several in two, at the middle of the widest of its three ranges, in powers of two;
/// of equally wide ones tensor cores first, then vector cores. Members must differ.
std::vector<ArchitectureFamily> split_family(std::span<const Architecture> all,
                                             const ArchitectureFamily& family);

}  // namespace braid
