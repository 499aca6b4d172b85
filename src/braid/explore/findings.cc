#include "braid/explore/findings.h"

#include <algorithm>
#include <cmath>

#include "braid/explore/pareto.h"

namespace braid {
namespace {

bool contains(const SpaceSubset& subset, const SpacePoint& point) {
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    const std::vector<std::size_t>& values = subset[axis];
    if (!values.empty() && std::find(values.begin(), values.end(), point[axis]) == values.end()) {
      return false;
    }
  }
  return true;
}

/// A geometric mean that grows.
struct Mean {
  double logarithms = 0;
  std::size_t count = 0;

  void add(double value) {
    if (!(value > 0)) return;
    logarithms += std::log(value);
    ++count;
  }
};

RatioFinding find_ratio(const Space& space, std::span<const PointResult> results, std::size_t index,
                        std::optional<std::size_t> way) {
  const SpaceRatio& ratio = space.ratios[index];
  Mean above, below;
  for (std::size_t number = 0; number < results.size(); ++number) {
    const SpacePoint point = point_of(space, number);
    if (way && point[kMethodAxis] != *way) continue;
    const double value = figure_of(results[number], ratio.figure);
    if (contains(ratio.above, point)) above.add(value);
    if (contains(ratio.below, point)) below.add(value);
  }
  RatioFinding finding{index, way, above.count, below.count, {}};
  if (above.count > 0 && below.count > 0) {
    finding.value = std::exp(above.logarithms / static_cast<double>(above.count) -
                             below.logarithms / static_cast<double>(below.count));
  }
  return finding;
}

}  // namespace

std::vector<RatioFinding> find_ratios(const Space& space, std::span<const PointResult> results) {
  std::vector<RatioFinding> findings;
  for (std::size_t r = 0; r < space.ratios.size(); ++r) {
    const SpaceRatio& ratio = space.ratios[r];
    if (!ratio.above[kMethodAxis].empty() || !ratio.below[kMethodAxis].empty()) {
      findings.push_back(find_ratio(space, results, r, {}));
      continue;
    }
    for (std::size_t way = 0; way < space.axes[kMethodAxis].values.size(); ++way) {
      findings.push_back(find_ratio(space, results, r, way));
    }
  }
  return findings;
}

std::vector<std::size_t> pareto_points(const Space& space, std::span<const PointResult> results,
                                       std::optional<std::size_t> method) {
  std::vector<std::size_t> all;
  for (std::size_t workload = 0; workload < space.axes[kWorkloadAxis].values.size(); ++workload) {
    std::vector<std::size_t> numbers;
    std::vector<ParetoPoint> points;
    for (std::size_t number = 0; number < results.size(); ++number) {
      if (!is_found(results[number])) continue;
      const SpacePoint point = point_of(space, number);
      if (point[kWorkloadAxis] != workload || (method && point[kMethodAxis] != *method)) continue;
      numbers.push_back(number);
      points.push_back({figure_of(results[number], SpaceFigure::throughput), results[number].usd,
                        results[number].watts});
    }
    for (const std::size_t i : pareto_set(points)) all.push_back(numbers[i]);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace braid
