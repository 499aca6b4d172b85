#include "braid/system/topology.h"

#include <algorithm>
#include <cmath>

#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Links of one unit: two in each dimension, but one in a dimension of two units.
double torus_links(const NetworkLevel& level) {
  double links = 0;
  for (const std::int64_t dim : level.torus_dims) links += dim > 2 ? 2 : dim > 1 ? 1 : 0;
  return std::max(1.0, links);
}

double torus_group_fraction(const NetworkLevel& level, double members) {
  double used = 0;
  double reached = 1;
  for (const std::int64_t dim : level.torus_dims) {
    if (reached >= members) break;
    const double whole = dim > 2 ? 2 : dim > 1 ? 1 : 0;
    const bool closed = reached * static_cast<double>(dim) <= members;
    used += closed ? whole : std::min(1.0, whole);
    reached *= static_cast<double>(dim);
  }
  return std::clamp(used, 1.0, torus_links(level)) / torus_links(level);
}

}  // namespace

double link_fraction(const NetworkLevel& level) {
  switch (level.topology) {
    case Topology::fully_connected:
      return level.size > 2 ? 1 / static_cast<double>(level.size - 1) : 1;
    case Topology::ring:
      return level.size > 2 ? 0.5 : 1;
    case Topology::torus:
      return 1 / torus_links(level);
    case Topology::switched:
    case Topology::dragonfly:
      return 1;
  }
  return 1;
}

double group_fraction(const NetworkLevel& level, double members) {
  const auto size = static_cast<double>(level.size);
  if (members >= size) return 1;
  switch (level.topology) {
    case Topology::fully_connected:
      return std::max(1.0, members - 1) / (size - 1);
    case Topology::ring:
      return size > 2 ? 0.5 : 1;
    case Topology::torus:
      return torus_group_fraction(level, members);
    case Topology::switched:
    case Topology::dragonfly:
      return 1;
  }
  return 1;
}

double bisection_load(const NetworkLevel& level, double members) {
  if (level.topology != Topology::ring && level.topology != Topology::torus) return 0;
  const auto load = [](double length, bool closed) { return length / (closed ? 8 : 4); };
  if (level.topology == Topology::ring || level.torus_dims.empty()) {
    return load(members, level.size > 2 && members >= static_cast<double>(level.size));
  }
  double most = 0;
  double rest = members;
  for (const std::int64_t dim : level.torus_dims) {
    if (rest <= 1) break;
    const auto size = static_cast<double>(dim);
    most = std::max(most, load(std::min(size, rest), dim > 2 && rest >= size));
    rest /= size;
  }
  return most;
}

std::vector<std::int64_t> torus_shape(std::int64_t units, std::size_t dimensions) {
  std::vector<std::int64_t> shape;
  std::int64_t rest = units;
  for (std::size_t left = dimensions; left > 1; --left) {
    const double root = std::pow(static_cast<double>(rest), 1 / static_cast<double>(left));
    // A root that only rounding keeps below a whole number is that number.
    auto size = std::max<std::int64_t>(1, static_cast<std::int64_t>(root * kAboveTolerance));
    while (rest % size != 0) --size;
    shape.push_back(size);
    rest /= size;
  }
  shape.push_back(rest);
  std::sort(shape.begin(), shape.end());
  return shape;
}

}  // namespace braid
