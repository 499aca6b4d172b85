#include "braid/explore/page_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/report/html_chart.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

bool is_drawn(const Space& space, const PointResult& result) {
  return is_found(result) && (!space.has_prices || result.usd > 0) &&
         (!space.has_powers || result.watts > 0) && result.throughput > 0;
}

/// What is said of a point where it is pointed at.
std::string tip_of(const Space& space, const PointResult& result, std::size_t number) {
  const std::string& unit = space.units[point_of(space, number)[kWorkloadAxis]];
  std::string text =
      fmt::format("{}\n{}{}{} {}{}/s, {:.1f} % of the peak", point_name(space, number, " "),
                  result.form, result.form.empty() ? "" : "\n", figure_text(result.throughput),
                  unit, unit == "FLOP" ? "" : "s", 100 * result.utilisation);
  if (space.has_prices) text += ", " + figure_text(result.usd) + " USD";
  if (space.has_powers) text += ", " + figure_text(result.watts) + " W";
  return text;
}

Json point_of_plot(const Space& space, const PointResult& result, std::size_t number,
                   const PlotMarks& marks) {
  const bool best = std::binary_search(marks.pareto.begin(), marks.pareto.end(), number);
  const auto listed = std::find(marks.listed.begin(), marks.listed.end(), number);
  std::string text = tip_of(space, result, number) + (best ? "\nPareto-optimal" : "");
  Json x = Json::array();
  if (space.has_prices) x.push_back(result.usd);
  if (space.has_powers) x.push_back(result.watts);
  Json point = {{"x", std::move(x)},
                {"y", result.throughput},
                {"group", point_of(space, number)[kMethodAxis]},
                {"best", best}};
  if (listed != marks.listed.end()) {
    point["number"] = listed - marks.listed.begin() + 1;
    point["name"] = point_name(space, number, " ");
    text += fmt::format("\nnumber {} of the table", listed - marks.listed.begin() + 1);
  }
  point["text"] = std::move(text);
  return point;
}

/// Throughput over price and power of the points of a workload, coloured by the way to plan.
std::string pareto_chart(const Space& space, std::span<const PointResult> results,
                         const PlotMarks& marks, std::size_t workload) {
  const std::string unit = space.units[workload] + (space.units[workload] == "FLOP" ? "" : "s");
  Json points = Json::array();
  for (std::size_t number = 0; number < results.size(); ++number) {
    if (!is_drawn(space, results[number])) continue;
    const SpacePoint point = point_of(space, number);
    if (point[kWorkloadAxis] != workload) continue;
    if (marks.method && point[kMethodAxis] != *marks.method) continue;
    points.push_back(point_of_plot(space, results[number], number, marks));
  }
  if (points.empty()) return "";
  Json data = Json::object();
  data["title"] = data["caption"] = "Throughput of " + space.axes[kWorkloadAxis].values[workload];
  data["x"] = Json::array();
  if (space.has_prices) data["x"].push_back({{"name", "price"}, {"unit", "USD"}});
  if (space.has_powers) data["x"].push_back({{"name", "power"}, {"unit", "W"}});
  data["y"] = {{"name", "throughput"}, {"unit", unit + "/s"}};
  data["front"] = {{"best", "Pareto-optimal in " + compared_text(space) +
                                (is_searched(space) ? ", of what was planned" : "")},
                   {"line", "the most throughput up to each point of the axis"}};
  data["groups"] = marks.method
                       ? std::vector<std::string>{space.axes[kMethodAxis].values[*marks.method]}
                       : space.axes[kMethodAxis].values;
  data["points"] = std::move(points);
  return chart("scatter", data);
}

}  // namespace

std::string html_table(const TextRows& rows, bool words) {
  std::string html = "<table class=\"figures\">\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char* tag = i == 0 ? "th" : "td";
    html += "<tr>";
    for (std::size_t c = 0; c < rows[i].size(); ++c) {
      const bool is_text = words && c + 1 == rows[i].size();
      html += fmt::format("<{0}{1}>{2}</{0}>", tag, is_text ? " class=\"words\"" : "",
                          escaped(rows[i][c]));
    }
    html += "</tr>\n";
  }
  return scrolled(html + "</table>\n");
}

std::string points_part(const Space& space, std::span<const PointResult> results,
                        std::span<const std::size_t> numbers, bool is_numbered) {
  TextRows rows = points_table(space, results, numbers);
  for (std::size_t i = 0; is_numbered && i < rows.size(); ++i) {
    rows[i].insert(rows[i].begin(), i == 0 ? "#" : fmt::format("{}", i));
  }
  return html_table(rows, true) + "<p class=\"note\" style=\"white-space:pre-line\">" +
         escaped(points_legend(space, results, numbers)) + "</p>\n";
}

std::string pareto_plots(const Space& space, std::span<const PointResult> results,
                         const PlotMarks& marks) {
  if (!space.has_prices && !space.has_powers) return "";
  std::string text;
  for (std::size_t workload = 0; workload < space.units.size(); ++workload) {
    text += pareto_chart(space, results, marks, workload);
  }
  if (text.empty()) return "";
  return "<p class=\"note\">A mark for each system; Pareto-optimal is where no other is as good in "
         "all of these and better in one of them. Systems of the table are named, or have its "
         "numbers where there is no room. Point at a mark to see what it is.</p>\n" +
         text;
}

std::string assumed_part(std::span<const std::string> assumptions) {
  if (assumptions.empty()) return "";
  std::string part = "<h2>Assumed</h2>\n<ul>\n";
  for (const std::string& line : assumptions) part += "<li>" + escaped(line) + "</li>\n";
  return part + "</ul>\n";
}

}  // namespace braid
