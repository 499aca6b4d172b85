#include "braid/explore/search_page.h"

#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "braid/explore/heat_map.h"
#include "braid/explore/page_parts.h"
#include "braid/explore/search_text.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

/// What an architecture is sorted by in a map.
struct MapAxis {
  const char* name;
  std::int64_t (*of)(const Architecture&);
};

struct ArchitectureMap {
  const char* title;
  MapAxis rows, columns;
};

const ArchitectureMap kMaps[] = {
    {"Tensor cores and their size",
     {"tensor cores", [](const Architecture& a) { return std::int64_t{a.tensor_cores}; }},
     {"units of an array", [](const Architecture& a) { return std::int64_t{a.width} * a.depth; }}},
    {"Vector lanes and global buffer",
     {"vector lanes", [](const Architecture& a) { return std::int64_t{a.vector_cores} * a.width; }},
     {"global buffer, MiB",
      [](const Architecture& a) { return std::int64_t{a.global_buffer_mib}; }}},
    {"Width and depth of an array",
     {"width, units", [](const Architecture& a) { return std::int64_t{a.width}; }},
     {"depth, units", [](const Architecture& a) { return std::int64_t{a.depth}; }}}};

/// The best architecture of a cell.
struct MapCell {
  double most = -1;
  bool is_exact = false;
  std::size_t architecture = 0;
};

std::string cell_html(const MapCell& cell, double best, const SystemArchitectures& every) {
  if (cell.most < 0) return "<td></td>";
  const double share = cell.most / best;
  const std::string text =
      share >= 0.0995 ? fmt::format("{:.0f}", 100 * share) : fmt::format("{:.2g}", 100 * share);
  return fmt::format("<td style=\"background:{};color:{}\" title=\"{}{}\">{}{}</td>",
                     heat_colour(share), is_dark(share) ? "#fff" : "#000",
                     cell.is_exact ? "" : "at most, such as ",
                     name_of(every.all[cell.architecture]), cell.is_exact ? "" : "≤\u202f", text);
}

std::string map_html(const ArchitectureMap& map, const SystemArchitectures& every,
                     const PlannerSearch& search, double best) {
  std::map<std::int64_t, std::map<std::int64_t, MapCell>> rows;
  std::map<std::int64_t, bool> columns;
  for (std::size_t i = 0; i < every.all.size(); ++i) {
    const std::int64_t column = map.columns.of(every.all[i]);
    columns[column] = true;
    MapCell& cell = rows[map.rows.of(every.all[i])][column];
    const bool better = search.at_most[i] > cell.most ||
                        (search.at_most[i] == cell.most && search.is_exact[i] && !cell.is_exact);
    if (better) cell = {search.at_most[i], search.is_exact[i], i};
  }
  std::string html = fmt::format("<h3>{}</h3>\n<table class=\"figures\">\n<tr><th>{} \\ {}</th>",
                                 map.title, map.rows.name, map.columns.name);
  for (const auto& [column, any] : columns) html += fmt::format("<th>{}</th>", column);
  html += "</tr>\n";
  for (auto& [row, cells] : rows) {
    html += fmt::format("<tr><th>{}</th>", row);
    for (const auto& [column, any] : columns) html += cell_html(cells[column], best, every);
    html += "</tr>\n";
  }
  return scrolled(html + "</table>\n");
}

std::string maps_html(const Space& space, const PlannerSearch& search) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  if (!systems.architectures || search.best.empty()) return "";
  std::string html =
      "<h2>What architectures reach</h2>\n<p class=\"note\">The best of each cell, in % of the "
      "best of all. Where there is a ≤, all of the cell were left out because none can have "
      "more.</p>\n";
  html += heat_scale("% of the best of all");
  for (const ArchitectureMap& map : kMaps) {
    html += map_html(map, *systems.architectures, search, search.best.front().value);
  }
  return html;
}

}  // namespace

std::string search_page(const Space& space, const SystemSearchResult& found) {
  std::string page = page_head(space.name);
  page += fmt::format("<h1>{}</h1>\n", escaped(space.name));
  for (const PlannerSearch& search : found.searches) {
    page += fmt::format("<p style=\"white-space:pre-line\">{}</p>\n",
                        escaped(search_text(space, search)));
    const std::vector<std::size_t> best = best_points(space, search);
    if (best.empty()) continue;
    if (space.units.size() > 1) page += html_table(systems_table(space, search), false);
    page += points_part(space, found.results, best, true);
    const std::vector<std::size_t> pareto = pareto_points(space, found.results, search.planner);
    page += pareto_plots(space, found.results,
                         {.pareto = pareto, .listed = best, .method = search.planner});
    page += maps_html(space, search);
  }
  page += assumed_part(best_assumptions(space, found));
  return page + page_end();
}

}  // namespace braid
