#include "braid/explore/explore_page.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "braid/explore/findings_table.h"
#include "braid/explore/heat_map.h"
#include "braid/report/html_chart.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

constexpr std::size_t kMostRows = 200;

/// `words`: the last column has text, not figures as the others.
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

std::string ratios_part(const Space& space, std::span<const RatioFinding> ratios) {
  if (ratios.empty()) return "";
  const SpaceAxis& methods = space.axes[kMethodAxis];
  const bool published = std::any_of(space.ratios.begin(), space.ratios.end(),
                                     [](const SpaceRatio& ratio) { return ratio.published > 0; });
  TextRows rows{{"ratio", "of", methods.name, "value"}};
  if (published) rows.front().emplace_back("published");
  for (const RatioFinding& finding : ratios) {
    const SpaceRatio& ratio = space.ratios[finding.ratio];
    rows.push_back({ratio.name, std::string(name_of(ratio.figure)),
                    finding.method ? methods.values[*finding.method] : "across",
                    finding.value ? fmt::format("{:.3g}", *finding.value) : "-"});
    if (!published) continue;
    rows.back().push_back(ratio.published > 0 ? fmt::format("{:.3g}", ratio.published) : "");
  }
  return "<h2>Ratios</h2>\n" + html_table(rows, false);
}

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
  data["title"] = "Throughput of " + space.axes[kWorkloadAxis].values[workload];
  data["x"] = Json::array();
  if (space.has_prices) data["x"].push_back({{"name", "price"}, {"unit", "USD"}});
  if (space.has_powers) data["x"].push_back({{"name", "power"}, {"unit", "W"}});
  data["y"] = {{"name", space.axes[kWorkloadAxis].values[workload]}, {"unit", unit + "/s"}};
  data["front"] = true;
  data["groups"] = methods.values;
  data["points"] = std::move(points);
  return chart("scatter", data);
}

/// Nothing where the space has neither prices nor powers.
std::string pareto_plots(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto) {
  if (!space.has_prices && !space.has_powers) return "";
  std::string text;
  for (std::size_t workload = 0; workload < space.units.size(); ++workload) {
    text += pareto_chart(space, results, pareto, workload);
  }
  if (text.empty()) return "";
  return "<p class=\"note\">A mark for each system, with a ring where no other is as good in " +
         compared_text(space) +
         " and better in one of them. The line is the most throughput up to each point of the "
         "axis. "
         "Point at a mark to see what it is.</p>\n" +
         text;
}

/// A title that takes as many lines as it needs, and a picture that scrolls where it is wider.
std::string map_part(const TitledMap& map) {
  return fmt::format("<h3>{}</h3>\n{}", escaped(map.title), scrolled(map.svg));
}

}  // namespace

std::string explore_page(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto,
                         std::span<const RatioFinding> ratios) {
  std::string page = page_head(space.name);
  const auto found = std::count_if(results.begin(), results.end(), is_found);
  page += fmt::format("<h1>{}</h1>\n<p>{} points, {} with a plan.</p>\n", escaped(space.name),
                      results.size(), found);
  page += ratios_part(space, ratios);
  page += fmt::format("<h2>Pareto-optimal systems: {}</h2>\n", compared_text(space));
  page += pareto_plots(space, results, pareto);
  page += html_table(points_table(space, results, pareto.first(std::min(pareto.size(), kMostRows))),
                     true);
  if (pareto.size() > kMostRows) {
    page +=
        fmt::format("<p>The first {} of {}; pareto.csv has all.</p>\n", kMostRows, pareto.size());
  }
  page += "<h2>Maps</h2>\n";
  for (std::size_t workload = 0; workload < space.axes[kWorkloadAxis].values.size(); ++workload) {
    for (std::size_t way = 0; way < space.axes[kMethodAxis].values.size(); ++way) {
      for (const SpaceFigure figure : figures_of(space)) {
        page += map_part(heat_map(space, results, workload, way, figure, TitleOfMap::on_page));
      }
      page += map_part(breakdown_map(space, results, workload, way, TitleOfMap::on_page));
    }
  }
  if (results.size() <= kMostRows) {
    std::vector<std::size_t> all(results.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    page += "<h2>All points</h2>\n" + html_table(points_table(space, results, all), true);
  }
  const std::vector<std::string> assumptions = assumptions_of(results);
  if (!assumptions.empty()) {
    page += "<h2>Assumed</h2>\n<ul>\n";
    for (const std::string& line : assumptions) page += "<li>" + escaped(line) + "</li>\n";
    page += "</ul>\n";
  }
  return page + page_end();
}

}  // namespace braid
