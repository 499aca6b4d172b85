#pragma once

#include <cstdint>

#include "braid/program/program.h"

namespace braid {

/// Numbers that depend on `seed`, the type and the shape alone, and are the same everywhere. Reals
/// are close to normally distributed (sums of four uniform ones, at most 3.5 deviations from 0)
/// with the standard deviation `scale`; whole numbers and booleans are 0 or 1.
DenseTensor random_tensor(ElementType type, const Shape& shape, std::uint64_t seed,
                          double scale = 1);

/// Numbers for one missing weight from `seed`, as fill_missing_weights() gives it.
DenseTensor random_weight(const MissingWeight& weight, std::uint64_t seed);

/// Gives every missing weight numbers from `seed`. Those of two and more dimensions have the
/// standard deviation 1/√(elements / first size), so that sums of products keep their size; those
/// of one are between 0.5 and 1.5, which suits scales and variances.
void fill_missing_weights(Program& program, std::uint64_t seed);

}  // namespace braid
