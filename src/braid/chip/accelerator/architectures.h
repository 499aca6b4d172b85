#pragma once

#include <cstdint>
#include <vector>

#include "braid/chip/accelerator/accelerator.h"
#include "braid/chip/accelerator/area.h"

namespace braid {

//   const auto all = architectures(ArchitectureSpace{});   // Phaze's 29,360
//   all.back().area_um2;                                   // 3355047.77
//   const Accelerator chip = accelerator_of(all[0], rest); // memory, clock, links of `rest`

/// Powers of two, from 2^least to 2^most.
struct PowersOfTwo {
  int least = 0, most = 0;
  friend bool operator==(const PowersOfTwo&, const PowersOfTwo&) = default;
};

/// What architectures are looked at. The default is Phaze's space (Adnan et al. 2024, table 1 and
/// appendix C.1; architecture.py of its artifact).
struct ArchitectureSpace {
  PowersOfTwo tensor_cores{0, 12};
  PowersOfTwo vector_cores{0, 12};
  PowersOfTwo widths{1, 8};  ///< Of arrays, and lanes of vector cores, which have the same.
  PowersOfTwo depths{1, 8};
  PowersOfTwo global_buffers_mib{1, 7};
  double most_area_um2 = kTpuV4AreaUm2;
  /// Dies below this share of most_area_um2 are left out, but for those with one tensor core or one
  /// vector core, which have a share of their own.
  double least_share = 0.3;
  double least_share_of_single = 0;
  friend bool operator==(const ArchitectureSpace&, const ArchitectureSpace&) = default;
};

/// An architecture of such a space: what areas and core shapes depend on.
struct Architecture {
  std::uint16_t tensor_cores = 1, vector_cores = 1;
  std::uint16_t width = 1, depth = 1;  ///< Vector cores have `width` lanes.
  std::uint16_t global_buffer_mib = 1;
  double area_um2 = 0;
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Exponents that an ArchitectureSpace may have: no core count beyond 2^15, arrays with an L2 of
/// the area model, its global buffers.
bool is_in_model(const ArchitectureSpace& space);

/// All architectures of a space in Phaze's order: the most tensor cores first, then the most vector
/// cores, the widest, the deepest, the largest buffers; 29,360 of the default. Empty where none is
/// within the area. Needs is_in_model. Cost: 1.4 ms and 700 KB for Phaze's 75,712 combinations.
std::vector<Architecture> architectures(const ArchitectureSpace& space);

/// The least area of any combination of the ranges.
double least_area_um2(const ArchitectureSpace& space);

/// `rest` with cores and buffers of `architecture`, L2 of the published size.
Accelerator accelerator_of(const Architecture& architecture, const Accelerator& rest);

}  // namespace braid
