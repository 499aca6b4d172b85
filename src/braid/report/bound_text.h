#pragma once

#include <string>

namespace braid {

/// A lower bound with four significant digits, rounded down: four_figures() may be above it.
std::string bound_figures(double value);

}  // namespace braid
