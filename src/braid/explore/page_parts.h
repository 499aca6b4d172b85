#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "braid/explore/findings_table.h"

namespace braid {

// Parts of pages about spaces.

/// `words`: the last column has text, not figures as the others.
std::string html_table(const TextRows& rows, bool words);

/// A table of these points, numbered from 1 if so, and below it what its columns and marks are.
std::string points_part(const Space& space, std::span<const PointResult> results,
                        std::span<const std::size_t> numbers, bool is_numbered);

/// What plots of a space mark, by numbers of points.
struct PlotMarks {
  std::span<const std::size_t> pareto;  ///< What pareto_points() says; ascending.
  std::span<const std::size_t> listed;  ///< Those of the numbered table, in its order.
  std::optional<std::size_t> method;    ///< Only points of this way to plan are drawn.
};

/// Throughput over price and power of the points that have a plan, a plot for each workload. Those
/// that are Pareto-optimal have rings, those that are listed their names, or their numbers where
/// there is no room. Nothing where the space has neither prices nor powers.
std::string pareto_plots(const Space& space, std::span<const PointResult> results,
                         const PlotMarks& marks);

/// What it all depends on, as a list under a heading; nothing where that is nothing.
std::string assumed_part(std::span<const std::string> assumptions);

}  // namespace braid
