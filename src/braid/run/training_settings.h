#pragma once

#include <cstdint>

#include "braid/program/element_type.h"

namespace braid {

enum class OptimizerRule : std::uint8_t {
  sgd,   ///< p -= rate · g.
  adam,  ///< Kingma and Ba 2015, with β 0.9 and 0.999, ε 1e-8, and no weight decay.
};

/// How a model is trained, whoever runs it: equal settings mean equal weights, whatever the plan.
struct TrainingSettings {
  std::int64_t iterations = 10;
  std::uint64_t seed = 1;  ///< Of weights and data.
  double learning_rate = 0.01;
  OptimizerRule optimizer = OptimizerRule::sgd;
  /// Of weights, activations and gradients: f64, f32 or bf16. Under bf16 the optimizer's state
  /// and a copy of the weights that it updates are f32.
  ElementType type = ElementType::f32;
};

}  // namespace braid
