#include "braid/explore/explore_page.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/explore/findings_table.h"
#include "braid/explore/heat_map.h"
#include "braid/explore/page_parts.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

constexpr std::size_t kMostRows = 200;

std::string ratios_part(const Space& space, std::span<const RatioFinding> ratios) {
  if (ratios.empty()) return "";
  const SpaceAxis& methods = space.axes[kMethodAxis];
  const bool published = std::any_of(space.ratios.begin(), space.ratios.end(),
                                     [](const SpaceRatio& ratio) { return ratio.published > 0; });
  TextRows rows{{"ratio", "of", methods.name, "value"}};
  if (published) rows.front().emplace_back("published");
  for (const RatioFinding& finding : ratios) {
    const SpaceRatio& ratio = space.ratios[finding.ratio];
    rows.push_back({ratio.name, std::string(words_of(ratio.figure)),
                    finding.method ? methods.values[*finding.method] : "across",
                    finding.value ? four_figures(*finding.value) : "-"});
    if (!published) continue;
    rows.back().push_back(ratio.published > 0 ? four_figures(ratio.published) : "");
  }
  return "<h2>Ratios</h2>\n" + html_table(rows, false);
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
  const std::span<const std::size_t> listed = pareto.first(std::min(pareto.size(), kMostRows));
  page += pareto_plots(space, results, {.pareto = pareto, .listed = listed, .method = {}});
  page += points_part(space, results, listed, true);
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
    page += "<h2>All points</h2>\n" + points_part(space, results, all, false);
  }
  page += assumed_part(assumptions_of(results));
  return page + page_end();
}

}  // namespace braid
