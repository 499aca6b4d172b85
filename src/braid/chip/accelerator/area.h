#pragma once

#include "braid/chip/accelerator/accelerator.h"

namespace braid {

// The silicon that Phaze counts of an accelerator, in um2 at 22 nm: arrays, lanes, L2 buffers and
// the global buffer, without HBM interfaces, links and wires between them (Adnan et al. 2024,
// appendix C.1; figures of Accelergy in its artifact). A closed form,
//
//   tensor cores · (width · depth · 760.04 + L2(tensor)) + vector cores · (lanes · 759.82 +
//   L2(vector)) + global buffer,
//
// gives all 29,360 areas of the artifact's cores.json to 6e-8 um2. It has one figure for a unit,
// whatever the number format.
//
//   die_area(chip).total_um2();                    // 278826676.31 of Phaze's TPUv4 template

/// Sizes of buffers that the model has an area for, in bytes. Between the published powers of two
/// areas are interpolated, the logarithm of the area over that of the size.
inline constexpr double kLeastL2Bytes = 1024, kMostL2Bytes = 1024 * 1024;
inline constexpr double kLeastGlobalBufferBytes = 0x1p21, kMostGlobalBufferBytes = 0x1p27;

/// Of one L2 of kLeastL2Bytes to kMostL2Bytes.
double l2_area_um2(double bytes);
/// Of a global buffer of kLeastGlobalBufferBytes to kMostGlobalBufferBytes.
double global_buffer_area_um2(double bytes);
/// Of one tensor or vector core with its L2.
double tensor_core_area_um2(double width, double depth, double l2_bytes);
double vector_core_area_um2(double lanes, double l2_bytes);

struct DieArea {
  double tensor_um2 = 0;  ///< Tensor cores with their L2.
  double vector_um2 = 0;  ///< Vector cores with their L2.
  double global_buffer_um2 = 0;
  double total_um2() const { return tensor_um2 + vector_um2 + global_buffer_um2; }
};

/// Of an accelerator without fault (accelerator_fault.h).
DieArea die_area(const Accelerator& chip);

/// Of Phaze's TPUv4 template, 8 tensor cores of 128 × 128, 2 vector cores of 128, 128 MB: the most
/// that its search allows.
inline constexpr double kTpuV4AreaUm2 = 278826676.31216;

}  // namespace braid
