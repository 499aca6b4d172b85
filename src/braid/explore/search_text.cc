#include "braid/explore/search_text.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/planners/registry.h"

namespace braid {
namespace {

std::string aim_text(const Space& space, SearchFor what) {
  switch (what) {
    case SearchFor::throughput:
      return "throughput";
    case SearchFor::per_usd:
      return "throughput for their price";
    case SearchFor::per_w:
      return "throughput for their power";
    case SearchFor::energy:
      return fmt::format("{}s for a joule of what their plans do", unit_of(space));
    case SearchFor::front:
      break;
  }
  return compared_text(space);
}

}  // namespace

std::string search_text(const Space& space, const PlannerSearch& search) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  const SystemSearch& asked = *systems.search;
  const std::string planner = space.axes[kMethodAxis].values[search.planner];
  if (search.best.empty() && search.open_value > 0) {
    return fmt::format("{}: the budget of the search ended before any of {} had a plan", planner,
                       counted(search.systems, "system"));
  }
  if (search.best.empty()) {
    return fmt::format("{}: none of {} has a plan: {}", planner, counted(search.systems, "system"),
                       search.why_none);
  }
  const std::string aim = aim_text(space, asked.what);
  std::string text = fmt::format("{}: of {} the {} ", planner, counted(search.systems, "system"),
                                 search.best.size());
  text += asked.what == SearchFor::front ? "that are Pareto-optimal in " + aim : "with most " + aim;
  if (const auto own = find_planner(planner).own_time; !own.empty()) {
    text += fmt::format(", by {}", own);
  }
  text +=
      fmt::format("; {} planned, {} families of others bounded.", search.planned, search.bounded);
  if (search.open_value > 0) {
    text +=
        std::isfinite(search.open_value)
            ? fmt::format("\nNot proven: another system, left or planned with a gap, may have {}.",
                          figure_text(search.open_value))
            : std::string("\nNot proven: the search ended before all systems were bounded.");
  } else if (asked.within > 0) {
    text +=
        fmt::format("\nProven: no other system is more than {:g} % better.", 100 * asked.within);
  } else {
    text += "\nProven: no other system is better.";
  }
  if (systems.architectures) {
    text += "\nArchitectures: tensor cores-vector cores-width x depth of an array-global buffer.";
  }
  return text;
}

std::vector<std::string> best_assumptions(const Space& space, const SystemSearchResult& found) {
  std::vector<PointResult> listed;
  for (const PlannerSearch& search : found.searches) {
    if (search.best.empty()) continue;
    const std::vector<std::size_t> numbers = best_points(space, search);
    for (std::size_t w = 0; w < space.units.size(); ++w) {
      listed.push_back(found.results[numbers[w]]);
    }
  }
  return assumptions_of(listed);
}

std::string system_name(const Space& space, const FoundSystem& system) {
  std::string name;
  for (std::size_t axis = kMethodAxis + 1; axis < space.axes.size(); ++axis) {
    if (space.axes[axis].values.size() == 1) continue;
    name += (name.empty() ? "" : " ") + value_name(space, system.place, axis);
  }
  return name.empty() ? "the only system" : name;
}

std::string joint_text(const Space& space, const PlannerSearch& search,
                       const OneAfterOther& other) {
  if (other.form.empty()) return "One after the other: the reference has no plan.";
  const std::string fixed = fmt::format(
      "One after the other: with the work split as on the "
      "reference ({})",
      other.form);
  if (!(other.value > 0)) return fixed + " no system has a plan.";
  std::string text = fmt::format(
      "{} the best is {},\nand its own best plan reaches {}. Together: {}, {:.1f} % more.", fixed,
      system_name(space, other.system), figure_text(other.value),
      figure_text(search.best.front().value), 100 * (search.best.front().value / other.value - 1));
  const auto own = find_planner(space.axes[kMethodAxis].values[search.planner]).own_time;
  if (!own.empty()) {
    text += fmt::format(
        "\nBoth are {}s/s by {}, which is what was searched by; the table's are by the plan's time "
        "on the real network.",
        unit_of(space), own);
  }
  return text;
}

std::string hysteresis_text(const Space& space, const PlannerSearch& search,
                            const HysteresisRule& rule, const HysteresisFinding& finding) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  std::string text = fmt::format(
      "By Phaze's rule, to stop when {} of {:g} mm2 in a row get no better: {} of {} looked at in "
      "{},\nthose of {:.2f} mm2 and more; ",
      counted(rule.buckets, "bucket"), rule.bucket_um2 * 1e-6, finding.architectures,
      counted(systems.architectures->all.size(), "architecture"), counted(finding.walks, "walk"),
      finding.least_area_um2 * 1e-6);
  if (!(finding.value > 0)) return text + "none has a plan.";
  text += fmt::format("the best is {}, {}.", system_name(space, finding.system),
                      figure_text(finding.value));
  if (search.best.empty()) return text;
  const double most = search.best.front().value;
  return text + fmt::format(" Searched: {}, {:.1f} % more.", figure_text(most),
                            100 * (most / finding.value - 1));
}

std::vector<std::size_t> best_points(const Space& space, const PlannerSearch& search) {
  std::vector<std::size_t> numbers;
  for (const FoundSystem& system : search.best) {
    for (std::size_t w = 0; w < space.units.size(); ++w) {
      numbers.push_back(point_number(space, system.place, w, search.planner));
    }
  }
  return numbers;
}

TextRows systems_table(const Space& space, const PlannerSearch& search) {
  const SystemSearch& asked = *std::get<SystemSpace>(space.points).search;
  TextRows rows{{"system"}};
  std::vector<std::string>& head = rows.front();
  head.push_back(asked.what == SearchFor::per_usd  ? "mean/USD"
                 : asked.what == SearchFor::per_w  ? "mean/W"
                 : asked.what == SearchFor::energy ? "mean/J"
                                                   : "mean/s");
  for (std::size_t w = 0; w < space.units.size(); ++w) {
    head.push_back(fmt::format("{} {}s/s", space.axes[kWorkloadAxis].values[w], space.units[w]));
  }
  if (space.has_prices) head.emplace_back("USD");
  if (space.has_powers) head.emplace_back("W");
  for (const FoundSystem& system : search.best) {
    rows.push_back({system_name(space, system), figure_text(system.value)});
    std::vector<std::string>& row = rows.back();
    for (const double throughput : system.throughput) row.push_back(figure_text(throughput));
    if (space.has_prices) row.push_back(figure_text(system.usd));
    if (space.has_powers) row.push_back(figure_text(system.watts));
  }
  return rows;
}

}  // namespace braid
