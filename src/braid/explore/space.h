#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/explore/dataflow_space.h"
#include "braid/explore/space_axis.h"
#include "braid/explore/system_space.h"

namespace braid {

enum class SpaceFigure : std::uint8_t { utilisation, throughput, per_usd, per_w, per_j };
std::string_view name_of(SpaceFigure figure);   ///< As files have it: "per_w".
std::string_view words_of(SpaceFigure figure);  ///< For people: "per W".

/// The values of each axis that a mean is over; an empty list is all of them.
using SpaceSubset = std::vector<std::vector<std::size_t>>;

/// A ratio of geometric means of a figure over two parts of the space.
struct SpaceRatio {
  std::string name;
  SpaceFigure figure = SpaceFigure::utilisation;
  SpaceSubset above, below;
  double published = 0;  ///< 0: none.
};

/// Names of what results of a space have beside the figures that all have, for tables.
struct ResultColumns {
  std::vector<std::string> words, counts, figures;
  std::vector<std::string> parts;  ///< Of the time, in seconds.
};

/// A space of systems and workloads to explore: the product of its axes, each point planned.
struct Space {
  std::string name;
  std::vector<SpaceAxis> axes;  ///< Slowest first: workloads, the ways to plan, then systems.
  std::vector<SpaceRatio> ratios;
  /// Of each workload what its throughput counts: "FLOP", "token", "sample".
  std::vector<std::string> units;
  bool has_prices = false;  ///< All systems have a price; else none is compared.
  bool has_powers = false;
  bool has_energies = false;  ///< Of every plan.
  std::variant<DataflowSpace, SystemSpace> points;
};

/// A space with the axes, units and prices of its points; no ratios.
Space make_space(std::string name, DataflowSpace points);
Space make_space(std::string name, SystemSpace points);

/// Number of points; at most kMostPoints in a space that was read.
inline constexpr std::size_t kMostPoints = 1'000'000;
std::size_t point_count(const Space& space);
/// The number-th point, the last axis fastest. Needs number < point_count.
SpacePoint point_of(const Space& space, std::size_t number);

/// Every combination of the values of the axes from `first_axis` on, the last axis fastest, with
/// the first value of the others.
std::vector<SpacePoint> places_from(const Space& space, std::size_t first_axis);

/// The number of the point of a workload and planner on the system that `place` has.
std::size_t point_number(const Space& space, const SpacePoint& place, std::size_t workload,
                         std::size_t method);

/// The name of a point's value on an axis.
const std::string& value_name(const Space& space, const SpacePoint& point, std::size_t axis);

/// Names of a point's values on all axes that have several, with this between them.
std::string point_name(const Space& space, std::size_t number, std::string_view between);

/// What all workloads' throughput counts, or "unit" where they differ.
std::string unit_of(const Space& space);

/// The figures that all systems of the space have.
std::vector<SpaceFigure> figures_of(const Space& space);

const ResultColumns& columns_of(const Space& space);

/// Whether systems of the space are searched for, not all planned.
bool is_searched(const Space& space);

/// Everything that results of the space depend on, as text: equal texts, equal results. Names of
/// the space and ratios are not in it.
std::string canonical_text(const Space& space);

}  // namespace braid
