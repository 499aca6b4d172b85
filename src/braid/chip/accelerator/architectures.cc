#include "braid/chip/accelerator/architectures.h"

#include <cassert>

namespace braid {
namespace {

constexpr double kMiB = 0x1p20;

double power_of_two(int exponent) { return static_cast<double>(std::int64_t{1} << exponent); }

double tensor_area_um2(int width, int depth) {
  const double units = power_of_two(width + depth);
  return tensor_core_area_um2(power_of_two(width), power_of_two(depth), published_l2_bytes(units));
}

double vector_area_um2(int width) {
  const double lanes = power_of_two(width);
  return vector_core_area_um2(lanes, published_l2_bytes(lanes));
}

double buffer_area_um2(int mib) { return global_buffer_area_um2(power_of_two(mib) * kMiB); }

bool is_range(const PowersOfTwo& range, int least, int most) {
  return range.least >= least && range.least <= range.most && range.most <= most;
}

std::uint16_t count_of(int exponent) { return static_cast<std::uint16_t>(1U << exponent); }

/// Areas of what the exponents of a space stand for, each computed once.
struct PartAreas {
  explicit PartAreas(const ArchitectureSpace& space) {
    for (int depth = 0; depth <= space.depths.most; ++depth) {
      for (int width = 0; width <= space.widths.most; ++width) {
        tensor.push_back(tensor_area_um2(width, depth));
      }
    }
    for (int width = 0; width <= space.widths.most; ++width) {
      vector.push_back(vector_area_um2(width));
    }
    for (int mib = 0; mib <= space.global_buffers_mib.most; ++mib) {
      buffer.push_back(mib < space.global_buffers_mib.least ? 0 : buffer_area_um2(mib));
    }
  }
  std::vector<double> tensor, vector, buffer;
};

}  // namespace

bool is_in_model(const ArchitectureSpace& space) {
  return is_range(space.tensor_cores, 0, 15) && is_range(space.vector_cores, 0, 15) &&
         is_range(space.widths, 0, 12) && is_range(space.depths, 0, 12) &&
         published_l2_bytes(power_of_two(space.widths.most + space.depths.most)) <= kMostL2Bytes &&
         is_range(space.global_buffers_mib, 1, 7);
}

std::vector<Architecture> architectures(const ArchitectureSpace& space) {
  assert(is_in_model(space));
  const PartAreas areas(space);
  const auto columns = static_cast<std::size_t>(space.widths.most) + 1;
  std::vector<Architecture> found;
  Architecture one;
  const auto add_buffers = [&](double cores_um2) {
    const bool single = one.tensor_cores == 1 || one.vector_cores == 1;
    const double least_um2 =
        space.most_area_um2 * (single ? space.least_share_of_single : space.least_share);
    const PowersOfTwo& buffers = space.global_buffers_mib;
    for (int mib = buffers.most; mib >= buffers.least; --mib) {
      one.area_um2 = cores_um2 + areas.buffer[static_cast<std::size_t>(mib)];
      if (one.area_um2 < least_um2 || one.area_um2 > space.most_area_um2) continue;
      one.global_buffer_mib = count_of(mib);
      found.push_back(one);
    }
  };
  const auto add_shapes = [&] {
    for (int width = space.widths.most; width >= space.widths.least; --width) {
      const auto column = static_cast<std::size_t>(width);
      one.width = count_of(width);
      for (int depth = space.depths.most; depth >= space.depths.least; --depth) {
        one.depth = count_of(depth);
        add_buffers(one.tensor_cores *
                        areas.tensor[static_cast<std::size_t>(depth) * columns + column] +
                    one.vector_cores * areas.vector[column]);
      }
    }
  };
  for (int tensor = space.tensor_cores.most; tensor >= space.tensor_cores.least; --tensor) {
    one.tensor_cores = count_of(tensor);
    for (int vector = space.vector_cores.most; vector >= space.vector_cores.least; --vector) {
      one.vector_cores = count_of(vector);
      add_shapes();
    }
  }
  return found;
}

double least_area_um2(const ArchitectureSpace& space) {
  assert(is_in_model(space));
  return power_of_two(space.tensor_cores.least) *
             tensor_area_um2(space.widths.least, space.depths.least) +
         power_of_two(space.vector_cores.least) * vector_area_um2(space.widths.least) +
         buffer_area_um2(space.global_buffers_mib.least);
}

Accelerator accelerator_of(const Architecture& architecture, const Accelerator& rest) {
  Accelerator chip = rest;
  const double units = static_cast<double>(architecture.width) * architecture.depth;
  chip.tensor = {architecture.tensor_cores, architecture.width, architecture.depth,
                 published_l2_bytes(units)};
  chip.vector = {architecture.vector_cores, architecture.width,
                 published_l2_bytes(architecture.width)};
  chip.global_buffer_bytes = architecture.global_buffer_mib * kMiB;
  return chip;
}

}  // namespace braid
