#include "braid/explore/page_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/report/html_chart.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

/// Throughput over price and power of the points of a workload, coloured by the way to plan.
std::string pareto_chart(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto, std::size_t workload) {
  const SpaceAxis& methods = space.axes[kMethodAxis];
  const std::string unit = space.units[workload] + (space.units[workload] == "FLOP" ? "" : "s");
  Json points = Json::array();
  for (std::size_t number = 0; number < results.size(); ++number) {
    const PointResult& result = results[number];
    const SpacePoint point = point_of(space, number);
    const bool drawn = is_found(result) && (!space.has_prices || result.usd > 0) &&
                       (!space.has_powers || result.watts > 0) && result.throughput > 0;
    if (point[kWorkloadAxis] != workload || !drawn) continue;
    const bool best = std::binary_search(pareto.begin(), pareto.end(), number);
    Json x = Json::array();
    std::string text = point_name(space, number, " ") + "\n" + result.form + "\n" +
                       figure_text(result.throughput) + " " + unit + "/s, " +
                       fmt::format("{:.1f} % of the peak", 100 * result.utilisation);
    if (space.has_prices) {
      x.push_back(result.usd);
      text += ", " + figure_text(result.usd) + " USD";
    }
    if (space.has_powers) {
      x.push_back(result.watts);
      text += ", " + figure_text(result.watts) + " W";
    }
    points.push_back({{"x", std::move(x)},
                      {"y", result.throughput},
                      {"group", point[kMethodAxis]},
                      {"best", best},
                      {"text", text + (best ? "\nPareto-optimal" : "")}});
  }
  if (points.empty()) return "";
  Json data = Json::object();
  data["title"] = data["caption"] = "Throughput of " + space.axes[kWorkloadAxis].values[workload];
  data["x"] = Json::array();
  if (space.has_prices) data["x"].push_back({{"name", "price"}, {"unit", "USD"}});
  if (space.has_powers) data["x"].push_back({{"name", "power"}, {"unit", "W"}});
  data["y"] = {{"name", "throughput"}, {"unit", unit + "/s"}};
  data["front"] = {{"best", "Pareto-optimal in " + compared_text(space)},
                   {"line", "the most throughput up to each point of the axis"}};
  data["groups"] = methods.values;
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

std::string pareto_plots(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto) {
  if (!space.has_prices && !space.has_powers) return "";
  std::string text;
  for (std::size_t workload = 0; workload < space.units.size(); ++workload) {
    text += pareto_chart(space, results, pareto, workload);
  }
  if (text.empty()) return "";
  return "<p class=\"note\">A mark for each system; Pareto-optimal is where no other is as good in "
         "all of these and better in one of them. Point at a mark to see what it is.</p>\n" +
         text;
}

std::string assumed_part(std::span<const std::string> assumptions) {
  if (assumptions.empty()) return "";
  std::string part = "<h2>Assumed</h2>\n<ul>\n";
  for (const std::string& line : assumptions) part += "<li>" + escaped(line) + "</li>\n";
  return part + "</ul>\n";
}

}  // namespace braid
