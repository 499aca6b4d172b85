#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/machine/measure_operators.h"
#include "braid/system/chip.h"

namespace braid {

/// What the cost model says of a measured operator on the fitted chip.
struct FittedOperator {
  std::string name;
  double measured_s = 0, fitted_s = 0;
};

struct FittedChip {
  Chip chip;
  /// In the order of the measurements; gradients, where measured, behind their operator.
  std::vector<FittedOperator> operators;
};

/// A device of this machine by measured operators. Peak and memory bandwidth are the highest rates
/// that a GEMM and a sum of two tensors that moves `cache_bytes` or more (or else the largest)
/// reach; the vector units are those of the peak. The efficiencies, the launch of a kernel and the
/// tile are those with which the planners' own estimate (operator_estimate.h) comes nearest to all
/// times, those of gradients too where they were measured: least squares of the logarithms of the
/// ratios, large ones counting linearly, for each of a list of tiles. `bare` has the name, the
/// memory's size and the compute units.
///
/// Throws Error where no GEMM or no such sum was measured. Cost: some thousand estimates.
FittedChip fit_chip(const Chip& bare, std::span<const MeasuredOperator> measured,
                    double cache_bytes);

/// A graph of one layer behind a layer that hands it its inputs, so that gradients of these are
/// wanted as in the middle of a model. The layer has the number 1.
Graph behind_a_layer(const Graph& graph);

/// exp of the mean of |log(fitted / measured)|, less 1: 0.1 for a tenth off.
double mean_error(std::span<const FittedOperator> operators);

}  // namespace braid
