#pragma once

#include <string>
#include <vector>

namespace braid {

/// One run in a plot.
struct PlottedRun {
  double predicted_s = 0, measured_s = 0;  ///< Positive.
  std::size_t group = 0;                   ///< Decides the colour.
  std::string label;                       ///< Shown on hovering; escaped here.
};

/// CSS colour of a group: hues as far apart as can be, however many there are.
std::string group_colour(std::size_t group);

/// SVG of predicted against measured seconds, both logarithmic, with the diagonal and lines a fifth
/// off to either side. Empty without runs.
std::string scatter_plot(const std::vector<PlottedRun>& runs);

/// Errors (predicted / measured - 1) of the runs that have one value of a column.
struct ErrorColumn {
  std::string name;
  std::vector<double> errors;  ///< At least one.
};

/// SVG of a column of dots for each value, with its median and the range of the middle nine tenths.
/// Errors beyond the axis are drawn at its end. Empty without columns.
std::string error_plot(const std::vector<ErrorColumn>& columns);

}  // namespace braid
