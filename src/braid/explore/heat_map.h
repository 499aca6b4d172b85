#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "braid/explore/findings.h"

namespace braid {

/// A heat map (SVG) of a figure over the systems of a space for one workload and way to divide, as
/// DFModel's figures 10, 12, 14 and 16: chips and memories down, topologies and links across. Each
/// cell has its value, prices and powers relative to the best; points without a plan are grey.
std::string heat_map_svg(const Space& space, std::span<const PointResult> results,
                         std::size_t workload, std::size_t parallelism, SpaceFigure figure);

/// Where the time goes, as DFModel's figures 11, 13, 15 and 17: for each system a bar of the shares
/// of compute, memory and network time of a chip.
std::string breakdown_svg(const Space& space, std::span<const PointResult> results,
                          std::size_t workload, std::size_t parallelism);

/// One page (HTML, nothing from elsewhere) with all of these, the Pareto set and the ratios.
std::string explore_page(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto, std::span<const RatioFinding> ratios);

}  // namespace braid
