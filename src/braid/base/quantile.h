#pragma once

#include <span>
#include <vector>

namespace braid {

/// The value below which a share of an ascending list lies, 0 for the first and 1 for the last one;
/// between two neighbours in proportion. Needs a value.
///
///     quantile(std::array{1.0, 2.0, 4.0}, 0.75);  // 3
double quantile(std::span<const double> sorted, double share);

/// The middle one, or the mean of the two middle ones. Needs a value.
double median(std::vector<double> values);

}  // namespace braid
