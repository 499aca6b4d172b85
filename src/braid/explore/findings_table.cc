#include "braid/explore/findings_table.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/report/plans_table.h"

namespace braid {
namespace {

bool has_planners(const Space& space) { return std::holds_alternative<SystemSpace>(space.points); }

std::vector<std::string> column_titles(const Space& space) {
  const std::string unit = unit_of(space);
  const std::string rate = (unit == "FLOP" ? unit : unit + "s") + "/s";
  std::vector<std::string> head{"point", "s/iter", "bound s", rate,
                                has_planners(space) ? "MFU" : "utilisation"};
  if (space.has_prices) head.insert(head.end(), {"USD", rate + "/USD"});
  if (space.has_powers) head.insert(head.end(), {"W", rate + "/W"});
  if (space.has_energies) head.insert(head.end(), {"J", unit + "s/J"});
  if (has_planners(space)) head.emplace_back("GiB");
  head.insert(head.end(), {"status", has_planners(space) ? "plan" : "tp x pp x dp"});
  return head;
}

std::vector<std::string> row_of(const Space& space, const PointResult& result, std::string name) {
  std::vector<std::string> row{std::move(name)};
  const bool found = is_found(result);
  const auto add = [&](double value) { row.push_back(found ? figure_text(value) : "-"); };
  const auto add_share = [&](double value) {
    row.push_back(found ? fmt::format("{:.1f} %", 100 * value) : "-");
  };
  add(result.time_s);
  add(result.lower_bound_s);
  add(result.throughput);
  add_share(result.utilisation);
  if (space.has_prices) {
    add(result.usd);
    add(figure_of(result, SpaceFigure::per_usd));
  }
  if (space.has_powers) {
    add(result.watts);
    add(figure_of(result, SpaceFigure::per_w));
  }
  if (space.has_energies) {
    add(result.joules);
    add(figure_of(result, SpaceFigure::per_j));
  }
  if (has_planners(space)) add(found ? result.figures[1] / kGiB : 0);  // Peak memory.
  row.emplace_back(name_of(result.status));
  row.push_back(found ? result.form : result.reason);
  return row;
}

/// Of the plans of these points, whose texts do not say schedules.
std::string marks_of(const Space& space, std::span<const PointResult> results,
                     std::span<const std::size_t> numbers) {
  if (!has_planners(space)) return "";
  const std::vector<std::string>& words = columns_of(space).words;
  const auto column = [&words](const char* name) {
    return static_cast<std::size_t>(std::find(words.begin(), words.end(), name) - words.begin());
  };
  const std::size_t tp = column("tp"), ep = column("ep"), offload = column("offload");
  std::vector<MarkedForm> forms;
  for (const std::size_t number : numbers) {
    const std::vector<std::string>& of = results[number].words;
    if (is_found(results[number]) && of.size() == words.size()) {
      forms.push_back({of[tp], of[ep], of[offload], ""});
    }
  }
  return marks_legend(forms, /*gaps=*/false);
}

}  // namespace

std::string figure_text(double value) {
  return value >= 1e3 && value < 1e8 ? fmt::format("{:.0f}", value) : four_figures(value);
}

TextRows points_table(const Space& space, std::span<const PointResult> results,
                      std::span<const std::size_t> numbers) {
  TextRows rows{column_titles(space)};
  for (const std::size_t number : numbers) {
    const std::string name = point_name(space, number, " ");
    rows.push_back(row_of(space, results[number], name.empty() ? "the only point" : name));
  }
  const bool is_silent =
      std::all_of(rows.begin() + 1, rows.end(), [](const auto& row) { return row.back().empty(); });
  for (std::vector<std::string>& row : rows) {
    if (is_silent)
      row.pop_back();
    else if (row.back().empty())
      row.back() = "-";
  }
  return rows;
}

std::string points_legend(const Space& space, std::span<const PointResult> results,
                          std::span<const std::size_t> numbers) {
  std::string text = "bound s: no plan on that system takes less";
  if (space.has_prices || space.has_powers) {
    text += fmt::format("; {}: of all devices and what joins them", !space.has_powers  ? "USD"
                                                                    : space.has_prices ? "USD, W"
                                                                                       : "W");
  }
  if (space.has_energies) text += "; J: of an iteration";
  if (has_planners(space)) text += "; GiB: of the device that holds most";
  return text + "\n" + marks_of(space, results, numbers);
}

std::string compared_text(const Space& space) {
  if (space.has_prices && space.has_powers) return "throughput, price and power";
  if (space.has_prices) return "throughput and price";
  return space.has_powers ? "throughput and power" : "throughput";
}

std::vector<std::string> assumptions_of(std::span<const PointResult> results) {
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (const PointResult& result : results) {
    for (const std::string& line : result.assumptions) {
      if (seen.insert(line).second) lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace braid
