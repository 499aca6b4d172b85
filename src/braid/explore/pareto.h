#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace braid {

/// A system to compare: more throughput is better, less price and power are.
struct ParetoPoint {
  double throughput = 0, usd = 0, watts = 0;
};

/// Whether `a` is at least as good as `b` in everything and better in something.
bool dominates(const ParetoPoint& a, const ParetoPoint& b);

/// Indices of the points that none dominates, ascending; equal points are all kept. Figures must be
/// finite. O(n log n + n f) for f points in the set.
std::vector<std::size_t> pareto_set(std::span<const ParetoPoint> points);

}  // namespace braid
