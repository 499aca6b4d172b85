#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "braid/explore/point_result.h"

namespace braid {

/// Four digits, and no exponent where whole numbers are read more easily.
std::string figure_text(double value);

using TextRows = std::vector<std::vector<std::string>>;

/// These points for people, below a head: what each takes and reaches, price and power where the
/// space has them, how the work is sharded, where any is; of a point without a plan why.
TextRows points_table(const Space& space, std::span<const PointResult> results,
                      std::span<const std::size_t> numbers);

/// What the columns of points_table() are, and the marks in these points' plans, for people: a line
/// of each with its end.
std::string points_legend(const Space& space, std::span<const PointResult> results,
                          std::span<const std::size_t> numbers);

/// What Pareto sets of the space compare: "throughput, price and power".
std::string compared_text(const Space& space);

/// Assumptions, each line once, in the order of the points.
std::vector<std::string> assumptions_of(std::span<const PointResult> results);

}  // namespace braid
