#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

/// Cycles of a vector lane for one element of a function, forward and backward.
struct LaneCycles {
  std::string_view function;
  double forward = 1, backward = 1;
};

/// Those of Phaze's artifact (WHAM's op_to_compute.py and vector_core_estimator.py: a table
/// look-up, sum, product or comparison in 1 cycle, a division in 10). What it has no backward
/// figure for is given the forward one.
const std::vector<LaneCycles>& published_lane_cycles();

/// The published cycles of an operator's pass, for each element that it writes; nullopt for kinds
/// that it has no function for, which take a cycle per operation. A graph's pointwise operators are
/// known by their arithmetic: SiLU, GELU and tanh by what pointwise_figures.h says, dropout and
/// ReLU by their masks; others take a cycle per operation too.
std::optional<double> published_element_cycles(const Operator& op);

}  // namespace braid
