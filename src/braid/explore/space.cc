#include "braid/explore/space.h"

#include <algorithm>
#include <utility>

namespace braid {

std::string_view name_of(SpaceFigure figure) {
  static constexpr std::string_view kNames[] = {"utilisation", "throughput", "per_usd", "per_w",
                                                "per_j"};
  return kNames[static_cast<std::size_t>(figure)];
}

std::string_view words_of(SpaceFigure figure) {
  static constexpr std::string_view kWords[] = {"utilisation", "throughput", "per USD", "per W",
                                                "per J"};
  return kWords[static_cast<std::size_t>(figure)];
}

Space make_space(std::string name, DataflowSpace points) {
  Space space;
  space.name = std::move(name);
  space.axes = axes_of(points);
  space.units.assign(points.workloads.size(), "FLOP");
  space.has_prices = points.has_prices;
  space.has_powers = points.has_powers;
  space.points = std::move(points);
  return space;
}

Space make_space(std::string name, SystemSpace points) {
  Space space;
  space.name = std::move(name);
  space.axes = axes_of(points);
  for (const SystemWorkload& workload : points.workloads) {
    space.units.emplace_back(workload.graph.seq_len > 0 ? "token" : "sample");
  }
  space.has_energies = points.counts_energy;
  space.has_prices = points.has_prices;
  space.has_powers = points.has_powers;
  space.points = std::move(points);
  return space;
}

std::size_t point_count(const Space& space) {
  std::size_t count = 1;
  for (const SpaceAxis& axis : space.axes) count *= axis.values.size();
  return count;
}

SpacePoint point_of(const Space& space, std::size_t number) {
  SpacePoint point(space.axes.size());
  for (std::size_t axis = point.size(); axis-- > 0;) {
    const std::size_t size = space.axes[axis].values.size();
    point[axis] = number % size;
    number /= size;
  }
  return point;
}

std::vector<SpacePoint> places_from(const Space& space, std::size_t first_axis) {
  std::vector<SpacePoint> places{SpacePoint(space.axes.size(), 0)};
  for (std::size_t axis = first_axis; axis < space.axes.size(); ++axis) {
    std::vector<SpacePoint> more;
    for (const SpacePoint& place : places) {
      for (std::size_t value = 0; value < space.axes[axis].values.size(); ++value) {
        more.push_back(place);
        more.back()[axis] = value;
      }
    }
    places = std::move(more);
  }
  return places;
}

std::size_t point_number(const Space& space, const SpacePoint& place, std::size_t workload,
                         std::size_t method) {
  SpacePoint point = place;
  point[kWorkloadAxis] = workload;
  point[kMethodAxis] = method;
  std::size_t number = 0;
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    number = number * space.axes[axis].values.size() + point[axis];
  }
  return number;
}

const std::string& value_name(const Space& space, const SpacePoint& point, std::size_t axis) {
  return space.axes[axis].values[point[axis]];
}

std::string point_name(const Space& space, std::size_t number, std::string_view between) {
  const SpacePoint point = point_of(space, number);
  std::string name;
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    if (space.axes[axis].values.size() == 1) continue;
    if (!name.empty()) name += between;
    name += value_name(space, point, axis);
  }
  return name;
}

std::string unit_of(const Space& space) {
  const std::string& first = space.units.front();
  const bool one = std::all_of(space.units.begin(), space.units.end(),
                               [&first](const std::string& unit) { return unit == first; });
  return one ? first : "unit";
}

std::vector<SpaceFigure> figures_of(const Space& space) {
  std::vector<SpaceFigure> figures{SpaceFigure::utilisation, SpaceFigure::throughput};
  if (space.has_prices) figures.push_back(SpaceFigure::per_usd);
  if (space.has_powers) figures.push_back(SpaceFigure::per_w);
  if (space.has_energies) figures.push_back(SpaceFigure::per_j);
  return figures;
}

const ResultColumns& columns_of(const Space& space) {
  static const ResultColumns kDataflow{
      {"network"}, {"tp", "pp", "dp", "partitions"}, {"layer_s"}, {"compute", "memory", "network"}};
  static const ResultColumns kSystem{
      {"tp", "pp", "cp", "vp", "ep", "dp", "micro_batch", "schedule", "recompute", "zero",
       "offload"},
      {"devices_used", "evaluated"},
      {"search_bound_s", "peak_memory_bytes", "model_flops_per_s_per_device", "objective"},
      {"compute", "recompute", "tp_comm", "cp_comm", "ep_comm", "pp_comm", "dp_comm", "bubble",
       "offload", "optimizer"}};
  return std::holds_alternative<DataflowSpace>(space.points) ? kDataflow : kSystem;
}

bool is_searched(const Space& space) {
  const auto* systems = std::get_if<SystemSpace>(&space.points);
  return systems != nullptr && systems->search.has_value();
}

std::string canonical_text(const Space& space) {
  return std::visit([](const auto& points) { return canonical_text(points); }, space.points);
}

}  // namespace braid
