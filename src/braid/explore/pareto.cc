#include "braid/explore/pareto.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "braid/base/pareto_front.h"

namespace braid {

bool dominates(const ParetoPoint& a, const ParetoPoint& b) {
  if (a.throughput < b.throughput || a.usd > b.usd || a.watts > b.watts) return false;
  return a.throughput > b.throughput || a.usd < b.usd || a.watts < b.watts;
}

std::vector<std::size_t> pareto_set(std::span<const ParetoPoint> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Fastest first, then cheapest: whatever dominates a point stands before it.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(-points[a].throughput, points[a].usd, points[a].watts) <
           std::tuple(-points[b].throughput, points[b].usd, points[b].watts);
  });
  const auto beats = [&](std::size_t a, std::size_t b) { return dominates(points[a], points[b]); };
  std::vector<std::size_t> set;
  for (const std::size_t i : order) {
    if (!is_dominated(set, i, beats)) set.push_back(i);
  }
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace braid
