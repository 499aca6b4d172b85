#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/explore/findings.h"

namespace braid {

/// CSV of points, one row each, in order; doubles are the shortest text that reads back exactly.
/// Without a plan all columns after `status` are empty but `work` and `reason`.
std::string points_csv(const Space& space, std::span<const PointResult> results,
                       std::span<const std::size_t> numbers);

/// CSV of ratios with what was published.
std::string ratios_csv(const Space& space, std::span<const RatioFinding> findings);

}  // namespace braid
