#include "braid/run/parity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "braid/program/numbers.h"

namespace braid {
namespace {

double apart(double a, double b, double unit) {
  const double difference = std::abs(a - b) / unit;
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

}  // namespace

Parity parity_of(const TrainedWeights& run, const TrainedWeights& whole, double allowed) {
  Parity parity;
  parity.allowed = allowed;
  if (run.losses.size() != whole.losses.size()) parity.missing = "a loss";
  for (std::size_t i = 0; i < std::min(run.losses.size(), whole.losses.size()); ++i) {
    const double unit = std::max(1e-300, std::abs(whole.losses[i]));
    parity.loss = std::max(parity.loss, apart(run.losses[i], whole.losses[i], unit));
  }
  std::map<std::string, const DenseTensor*> found;
  for (const NamedTensor& each : run.weights) found[each.name] = &each.tensor;
  if (found.size() != whole.weights.size()) parity.missing = "a parameter";
  for (const NamedTensor& each : whole.weights) {
    const auto other = found.find(each.name);
    if (other == found.end() || other->second->shape != each.tensor.shape) {
      parity.missing = each.name;
      continue;
    }
    const std::vector<double> a = numbers_of<double>(*other->second);
    const std::vector<double> b = numbers_of<double>(each.tensor);
    for (std::size_t i = 0; i < b.size(); ++i) {
      const double difference = apart(a[i], b[i], std::max(1.0, std::abs(b[i])));
      if (difference <= parity.weight) continue;
      parity.weight = difference;
      parity.worst = each.name;
    }
  }
  return parity;
}

double allowed_difference(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return 1e-12;
    case ElementType::f32:
      return 1e-4;
    default:
      return 5e-2;
  }
}

}  // namespace braid
