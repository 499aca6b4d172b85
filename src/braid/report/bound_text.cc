#include "braid/report/bound_text.h"

#include <cmath>

#include "braid/base/quantity.h"

namespace braid {

std::string bound_figures(double value) {
  std::string text = four_figures(value);
  if (value <= 0 || std::stod(text) <= value) return text;
  const double digit = std::pow(10, std::floor(std::log10(value)) - 3);
  return four_figures((std::floor(value / digit) + 1e-9) * digit);
}

}  // namespace braid
