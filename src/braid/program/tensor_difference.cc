#include "braid/program/tensor_difference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "braid/program/numbers.h"

namespace braid {

double greatest_size(const DenseTensor& tensor) {
  double most = 0;
  for (const double each : numbers_of<double>(tensor)) most = std::max(most, std::abs(each));
  return most;
}

std::string tensor_difference(const DenseTensor& actual, const DenseTensor& expected,
                              const Tolerance& tolerance) {
  if (actual.type != expected.type || actual.shape != expected.shape) {
    return form_text(actual) + " where " + form_text(expected) + " is due";
  }
  if (!is_real(actual.type)) {
    return actual.data == expected.data ? "" : "whole numbers differ";
  }
  const std::vector<double> a = numbers_of<double>(actual);
  const std::vector<double> b = numbers_of<double>(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(b[i]);
    if (std::isinf(b[i]) || !(std::abs(a[i] - b[i]) <= allowed)) {
      return fmt::format("element {} is {} where {} is due", i, a[i], b[i]);
    }
  }
  return "";
}

}  // namespace braid
