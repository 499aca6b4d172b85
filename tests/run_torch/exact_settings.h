#pragma once

#include <cstdint>

#include "braid/run/torch/torch_training.h"

namespace braid::test {

/// Gradient descent in f64, in which sums in another order differ by kExact at most.
inline TrainingSettings exact_settings(std::int64_t iterations) {
  set_torch_threads(1);
  TrainingSettings settings;
  settings.iterations = iterations;
  settings.learning_rate = 0.1;
  settings.type = ElementType::f64;
  return settings;
}

inline constexpr double kExact = 1e-12;

}  // namespace braid::test
