#pragma once

#include <optional>
#include <string>

#include "braid/chip/accelerator/accelerator.h"

namespace braid {

/// Most cores, width, depth and lanes: so that their product is exact in a double.
inline constexpr std::int64_t kMostCores = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostWidth = std::int64_t{1} << 12;

/// L2 that the least tile of a tensor core takes: weights for all of its units, a row of inputs and
/// one of outputs. Each of them has a buffer of its own, so the weights decide.
double least_tensor_l2_bytes(const Accelerator& chip);
/// And of a vector core: two operands and a result of each lane.
double least_vector_l2_bytes(const Accelerator& chip);

/// What is wrong with an accelerator, for an Error.
struct AcceleratorFault {
  std::string key;  ///< Path in its YAML form: `tensor_cores.l2`; empty: all of it.
  std::string message, remedy;
};

/// The first fault: no cores, a buffer that holds no tile or that the area model (area.h) does not
/// have, no memory, no rate; nullopt for what die_area, chip_energy and chip_price take.
std::optional<AcceleratorFault> accelerator_fault(const Accelerator& chip);

}  // namespace braid
