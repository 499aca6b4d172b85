#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "braid/explore/findings_table.h"

namespace braid {

// Parts of pages about spaces.

/// `words`: the last column has text, not figures as the others.
std::string html_table(const TextRows& rows, bool words);

/// Throughput over price and power of the points that have a plan, a plot for each workload, with
/// the points of `pareto` (numbers, ascending) marked. Nothing where the space has neither prices
/// nor powers.
std::string pareto_plots(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto);

/// What it all depends on, as a list under a heading; nothing where that is nothing.
std::string assumed_part(std::span<const std::string> assumptions);

}  // namespace braid
