#include "braid/chip/accelerator/area.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

namespace braid {
namespace {

// Phaze's artifact, cores.json: differences of areas that differ in one thing.
constexpr double kTensorUnitUm2 = 760.041386;
constexpr double kVectorUnitUm2 = 759.823853;

// Of powers of two, the first of kLeast…Bytes, each next one of twice the size.
constexpr double kL2Um2[] = {6133.98, 8248.43, 12610.5, 22139.9, 38583,  63338.4,
                             115579,  204764,  446565,  897890,  1634130};
constexpr double kGlobalBufferUm2[] = {3338220,  6078640,  11952400, 23745200,
                                       46750900, 88605700, 175423000};

/// `areas` of least_bytes · 2^i, interpolated.
double buffer_area(std::span<const double> areas, double least_bytes, double bytes) {
  assert(bytes >= least_bytes);
  const double place = std::log2(bytes / least_bytes);
  const double floor = std::floor(place);
  const auto below = static_cast<std::size_t>(floor);
  assert(below < areas.size());
  if (place == floor) return areas[below];
  const double share = place - floor;
  return areas[below] * std::pow(areas[below + 1] / areas[below], share);
}

}  // namespace

double l2_area_um2(double bytes) {
  assert(bytes <= kMostL2Bytes);
  return buffer_area(kL2Um2, kLeastL2Bytes, bytes);
}

double global_buffer_area_um2(double bytes) {
  assert(bytes <= kMostGlobalBufferBytes);
  return buffer_area(kGlobalBufferUm2, kLeastGlobalBufferBytes, bytes);
}

double tensor_core_area_um2(double width, double depth, double l2_bytes) {
  return width * depth * kTensorUnitUm2 + l2_area_um2(l2_bytes);
}

double vector_core_area_um2(double lanes, double l2_bytes) {
  return lanes * kVectorUnitUm2 + l2_area_um2(l2_bytes);
}

DieArea die_area(const Accelerator& chip) {
  DieArea area;
  area.tensor_um2 =
      static_cast<double>(chip.tensor.count) *
      tensor_core_area_um2(static_cast<double>(chip.tensor.width),
                           static_cast<double>(chip.tensor.depth), chip.tensor.l2_bytes);
  area.vector_um2 =
      static_cast<double>(chip.vector.count) *
      vector_core_area_um2(static_cast<double>(chip.vector.lanes), chip.vector.l2_bytes);
  area.global_buffer_um2 = global_buffer_area_um2(chip.global_buffer_bytes);
  return area;
}

}  // namespace braid
