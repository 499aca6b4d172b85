#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/trust/evidence.h"

namespace braid {

/// How many of a source's runs lie within the intervals that evidence gives, and how wide these
/// are, as shares of the predicted times.
struct SourceCoverage {
  std::string source;
  std::size_t runs = 0;
  /// Each run by all others, this source's among them, with its error as it is.
  double covered = 0, width = 0;
  /// Each run by the other sources alone, with its left-out error.
  double covered_left_out = 0, width_left_out = 0;
};

/// By source, in the order of their names, and over all runs (an empty name) at the end. At least
/// one run. Cost: n² log n in the runs.
std::vector<SourceCoverage> coverage_of(const Evidence& runs);

}  // namespace braid
