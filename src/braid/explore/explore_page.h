#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "braid/explore/findings.h"

namespace braid {

/// One page (HTML, nothing from elsewhere) with the ratios, the Pareto set as a plot and a table,
/// all points where they are few, heat maps and breakdowns of each workload and way to plan, and
/// what it all depends on.
std::string explore_page(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto, std::span<const RatioFinding> ratios);

}  // namespace braid
