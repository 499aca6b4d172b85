#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "braid/explore/point_result.h"

namespace braid {

/// A ratio of a space, within one way to plan unless it compares these.
struct RatioFinding {
  std::size_t ratio = 0;              ///< Index into Space::ratios.
  std::optional<std::size_t> method;  ///< Value of the axis of ways to plan; none: across them.
  std::size_t above = 0, below = 0;   ///< Points that the means are over.
  std::optional<double> value;        ///< None when one side has no point with a positive figure.
};

/// The ratios of a space, for each way to plan (once, if the ratio's parts name ways):
/// geometric means over the points of either part where something was found.
std::vector<RatioFinding> find_ratios(const Space& space, std::span<const PointResult> results);

/// Points whose systems no other dominates in throughput and what of price and power the space has,
/// at the same workload: numbers, ascending. Points without a plan are not among them; with
/// `method` only points of this way to plan are.
std::vector<std::size_t> pareto_points(const Space& space, std::span<const PointResult> results,
                                       std::optional<std::size_t> method = std::nullopt);

}  // namespace braid
