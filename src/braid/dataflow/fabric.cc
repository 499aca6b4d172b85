#include "braid/dataflow/fabric.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace braid {
namespace {

double chips(const FabricDimension& dimension) { return static_cast<double>(dimension.size); }

double latency_s(const FabricDimension& dimension, const Fabric& fabric,
                 const CollectiveRules& rules) {
  if (!rules.latency) return 0;
  switch (dimension.shape) {
    case FabricShape::ring:
      return fabric.latency_s * (chips(dimension) - 1);
    case FabricShape::fully_connected:
      return fabric.latency_s;
    case FabricShape::switched:
      return fabric.latency_s *
             static_cast<double>(std::bit_width(static_cast<std::uint64_t>(dimension.size - 1)));
  }
  return 0;
}

// Seconds per byte of one pass of a reduce-scatter or all-gather.
double pass_s_per_byte(const FabricDimension& dimension) {
  const double n = chips(dimension);
  const double share = dimension.shape == FabricShape::fully_connected ? 1 / n : (n - 1) / n;
  return share / dimension.bytes_per_s;
}

// Of a rail-only fabric: seconds per byte over `n` chips of which domains of some are joined at
// full bandwidth and `between` joins the domains.
double rail_s_per_byte(double n, const Fabric& fabric, double between) {
  const double inside = fabric.dimensions.front().bytes_per_s;
  const double domain = fabric.domain_size;
  if (domain >= n) return (n - 1) / (n * inside);
  return (domain - 1) / (domain * inside) + (n / domain - 1) / (n * between);
}

bool is_rail_only(const Fabric& fabric) {
  return fabric.domain_size > 0 && !fabric.dimensions.empty();
}

double rail_s(double bytes, FabricRole role, const Fabric& fabric) {
  const auto n = static_cast<double>(degree_of(fabric, role));
  if (n <= 1) return 0;
  const std::size_t outer = role == FabricRole::data ? 2 : 1;
  const double between =
      fabric.dimensions[std::min(outer, fabric.dimensions.size() - 1)].bytes_per_s;
  return bytes * rail_s_per_byte(n, fabric, between);
}

// Dimension by dimension, each with the share that the earlier ones leave.
template <typename Takes, typename InDimension>
double over_dimensions(double bytes, const Fabric& fabric, Takes&& takes,
                       InDimension&& in_dimension) {
  double total = 0;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (!takes(dimension) || dimension.size == 1) continue;
    total += in_dimension(bytes, dimension);
    bytes /= chips(dimension);
  }
  return total;
}

template <typename InDimension>
double over_role(double bytes, FabricRole role, const Fabric& fabric, InDimension&& in_dimension) {
  return over_dimensions(
      bytes, fabric, [role](const FabricDimension& dimension) { return dimension.role == role; },
      in_dimension);
}

bool is_torus(const Fabric& fabric) {
  return std::all_of(
      fabric.dimensions.begin(), fabric.dimensions.end(),
      [](const FabricDimension& dimension) { return dimension.shape == FabricShape::ring; });
}

}  // namespace

std::int64_t degree_of(const Fabric& fabric, FabricRole role) {
  std::int64_t degree = 1;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (dimension.role == role) degree *= dimension.size;
  }
  return degree;
}

double all_reduce_s(double bytes, const FabricDimension& dimension, const Fabric& fabric,
                    const CollectiveRules& rules) {
  if (dimension.size == 1) return 0;
  return rules.all_reduce_passes *
         (bytes * pass_s_per_byte(dimension) + latency_s(dimension, fabric, rules));
}

double all_gather_s(double bytes, const FabricDimension& dimension, const Fabric& fabric,
                    const CollectiveRules& rules) {
  if (dimension.size == 1) return 0;
  return bytes * pass_s_per_byte(dimension) + latency_s(dimension, fabric, rules);
}

double all_to_all_s(double bytes, const FabricDimension& dimension, const Fabric& fabric,
                    const CollectiveRules& rules) {
  if (dimension.size == 1) return 0;
  const double n = chips(dimension);
  const double load = dimension.shape == FabricShape::ring              ? n * n / 8
                      : dimension.shape == FabricShape::fully_connected ? 1
                                                                        : n / 4;
  return bytes * load / dimension.bytes_per_s + latency_s(dimension, fabric, rules);
}

double all_reduce_s(double bytes, FabricRole role, const Fabric& fabric,
                    const CollectiveRules& rules) {
  if (is_rail_only(fabric)) return rules.all_reduce_passes * rail_s(bytes, role, fabric);
  return over_role(bytes, role, fabric, [&](double share, const FabricDimension& dimension) {
    return all_reduce_s(share, dimension, fabric, rules);
  });
}

double all_gather_s(double bytes, FabricRole role, const Fabric& fabric,
                    const CollectiveRules& rules) {
  if (is_rail_only(fabric)) return rail_s(bytes, role, fabric);
  return over_role(bytes, role, fabric, [&](double share, const FabricDimension& dimension) {
    return all_gather_s(share, dimension, fabric, rules);
  });
}

double all_to_all_s(double bytes, FabricRole role, const Fabric& fabric,
                    const CollectiveRules& rules) {
  double total = 0;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (dimension.role == role) total += all_to_all_s(bytes, dimension, fabric, rules);
  }
  return total;
}

double all_reduce_s(double bytes, const Fabric& fabric, const CollectiveRules& rules) {
  return over_dimensions(
      bytes, fabric, [](const FabricDimension&) { return true; },
      [&](double share, const FabricDimension& dimension) {
        return all_reduce_s(share, dimension, fabric, rules);
      });
}

double exchange_s(double pair_bytes, const Fabric& fabric) {
  double total = 1;
  for (const FabricDimension& dimension : fabric.dimensions) total *= chips(dimension);
  const bool torus = is_torus(fabric);
  double worst = 0;
  for (std::size_t i = 0; i < fabric.dimensions.size(); ++i) {
    const FabricDimension& dimension = fabric.dimensions[i];
    if (dimension.size == 1) continue;
    const double x = chips(dimension);
    const bool inner = !torus && i + 1 < fabric.dimensions.size();
    const double pairs = inner ? x * (x - 1) / 2 : total * total / 2;
    double links = 1;
    switch (dimension.shape) {
      case FabricShape::ring:
        links = torus ? 2 * total / x : 2;
        break;
      case FabricShape::fully_connected:
        links = x * x / 2;
        break;
      case FabricShape::switched:
        links = fabric.switch_bisection * x;
        break;
    }
    worst = std::max(worst, pair_bytes * pairs / (dimension.bytes_per_s * links));
  }
  return worst;
}

double pipeline_hop_s(double bytes, const Fabric& fabric, const CollectiveRules& rules) {
  double worst = 0;
  for (const FabricDimension& dimension : fabric.dimensions) {
    if (dimension.role != FabricRole::pipeline || dimension.size == 1) continue;
    worst = std::max(worst, bytes / dimension.bytes_per_s + (rules.latency ? fabric.latency_s : 0));
  }
  return worst;
}

}  // namespace braid
