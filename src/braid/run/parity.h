#pragma once

#include <string>
#include <vector>

#include "braid/run/safetensors.h"

namespace braid {

/// Losses and weights after training.
struct TrainedWeights {
  std::vector<double> losses;
  std::vector<NamedTensor> weights;  ///< In any order.
};

/// How far two trainings are apart.
struct Parity {
  double loss = 0;      ///< Greatest relative difference of a loss.
  double weight = 0;    ///< Greatest difference of a weight, as a part of the larger of 1 and it.
  std::string worst;    ///< The parameter that has it.
  std::string missing;  ///< A parameter that only one of them has, or not in one size.
  double allowed = 0;
  bool holds() const { return missing.empty() && loss <= allowed && weight <= allowed; }
};

/// Compares with what one process trained; NaN is as far apart as can be.
Parity parity_of(const TrainedWeights& run, const TrainedWeights& whole, double allowed);

/// What sums in another order may make of numbers of that type over some iterations: 1e-12 (f64),
/// 1e-4 (f32), 5e-2 (bf16).
double allowed_difference(ElementType type);

}  // namespace braid
