#include "braid/explore/heat_map.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace braid {
namespace {

constexpr double kLeft = 150, kTop = 84, kCellWidth = 62, kCellHeight = 26;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

/// Numbers of the points of one workload and way to divide, by row and column.
struct Grid {
  std::size_t rows = 0, columns = 0;
  std::vector<std::size_t> numbers;
  std::vector<std::string> row_names;
  std::vector<std::string> topologies;  ///< Each over all links.
  std::vector<std::string> links;

  std::size_t number(std::size_t row, std::size_t column) const {
    return numbers[row * columns + column];
  }
};

Grid grid_of(const Space& space, std::size_t workload, std::size_t parallelism) {
  Grid grid;
  grid.rows = space.chips.size() * space.memories.size();
  grid.columns = space.topologies.size() * space.links.size();
  // The last axes are rows, then columns.
  const std::size_t first =
      (workload * space.parallelisms.size() + parallelism) * grid.rows * grid.columns;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    grid.row_names.push_back(space.chips[row / space.memories.size()].name + " " +
                             space.memories[row % space.memories.size()].name);
  }
  for (const SpaceTopology& topology : space.topologies) grid.topologies.push_back(topology.name);
  for (const SpaceLinks& links : space.links) grid.links.push_back(links.name);
  // Chips, memories, topologies, links: points are in this order.
  grid.numbers.reserve(grid.rows * grid.columns);
  for (std::size_t i = 0; i < grid.rows * grid.columns; ++i) grid.numbers.push_back(first + i);
  return grid;
}

std::string title_of(const Space& space, std::size_t workload, std::size_t parallelism,
                     std::string_view what) {
  return fmt::format("{}: {}, parallelism {}", escaped(what), space.workloads[workload].name,
                     name_of(space.parallelisms[parallelism]));
}

// From pale to dark blue; text on it stays readable.
std::string colour_of(double share) {
  const double t = std::clamp(share, 0.0, 1.0);
  const auto mix = [t](double from, double to) {
    return static_cast<int>(std::lround(from + t * (to - from)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(247, 8), mix(251, 69), mix(255, 148));
}

std::string head(const Grid& grid, const std::string& title, double height) {
  const double width = kLeft + static_cast<double>(grid.columns) * kCellWidth + 16;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n"
      "<style>text{{font:12px sans-serif;fill:#222}}.head{{font-size:15px;font-weight:600}}"
      ".dark{{fill:#fff}}.none{{fill:#ddd}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text class=\"head\" x=\"8\" y=\"22\">{2}</text>\n",
      width, height, title);
  const double group = static_cast<double>(grid.links.size()) * kCellWidth;
  for (std::size_t t = 0; t < grid.topologies.size(); ++t) {
    const double x = kLeft + static_cast<double>(t) * group;
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       x + group / 2, kTop - 32, grid.topologies[t]);
    for (std::size_t l = 0; l < grid.links.size(); ++l) {
      svg += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                         x + (static_cast<double>(l) + 0.5) * kCellWidth, kTop - 12, grid.links[l]);
    }
  }
  for (std::size_t row = 0; row < grid.rows; ++row) {
    svg += fmt::format("<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                       kTop + (static_cast<double>(row) + 0.7) * kCellHeight, grid.row_names[row]);
  }
  return svg;
}

double height_of(const Grid& grid) {
  return kTop + static_cast<double>(grid.rows) * kCellHeight + 16;
}

}  // namespace

std::string heat_map_svg(const Space& space, std::span<const PointResult> results,
                         std::size_t workload, std::size_t parallelism, SpaceFigure figure) {
  static constexpr const char* kTitles[] = {"Utilisation", "Operations per second, relative",
                                            "Operations per second and USD, relative",
                                            "Operations per second and watt, relative"};
  const Grid grid = grid_of(space, workload, parallelism);
  double most = 0;
  for (const std::size_t number : grid.numbers) {
    most = std::max(most, figure_of(results[number], figure));
  }
  const double whole = figure == SpaceFigure::utilisation ? 1 : most;
  std::string svg =
      head(grid, title_of(space, workload, parallelism, kTitles[static_cast<std::size_t>(figure)]),
           height_of(grid));
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      const PointResult& result = results[grid.number(row, column)];
      const double x = kLeft + static_cast<double>(column) * kCellWidth;
      const double y = kTop + static_cast<double>(row) * kCellHeight;
      if (!is_found(result) || !(whole > 0)) {
        svg += fmt::format("<rect class=\"none\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                           x + 1, y + 1, kCellWidth - 2, kCellHeight - 2);
        continue;
      }
      const double share = figure_of(result, figure) / whole;
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/><text{} x=\"{}\" "
          "y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
          x + 1, y + 1, kCellWidth - 2, kCellHeight - 2, colour_of(share),
          share > 0.45 ? " class=\"dark\"" : "", x + kCellWidth / 2, y + 0.68 * kCellHeight,
          share >= 0.0995 ? fmt::format("{:.2f}", share) : fmt::format("{:.2g}", share));
    }
  }
  return svg + "</svg>\n";
}

std::string breakdown_svg(const Space& space, std::span<const PointResult> results,
                          std::size_t workload, std::size_t parallelism) {
  static constexpr const char* kColours[] = {"#2b6cb0", "#d69e2e", "#c05621"};
  static constexpr const char* kNames[] = {"compute", "memory", "network"};
  const Grid grid = grid_of(space, workload, parallelism);
  const double height = height_of(grid) + 22;
  std::string svg =
      head(grid, title_of(space, workload, parallelism, "Compute, memory and network time, shares"),
           height);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      const PointResult& result = results[grid.number(row, column)];
      const double y = kTop + static_cast<double>(row) * kCellHeight;
      double x = kLeft + static_cast<double>(column) * kCellWidth + 2;
      const double sum = result.compute_s + result.memory_s + result.network_s;
      if (!is_found(result) || !(sum > 0)) continue;
      const double parts[] = {result.compute_s, result.memory_s, result.network_s};
      for (std::size_t i = 0; i < 3; ++i) {
        const double width = parts[i] / sum * (kCellWidth - 4);
        svg +=
            fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>",
                        x, y + 4, width, kCellHeight - 8, kColours[i]);
        x += width;
      }
      svg += "\n";
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double x = kLeft + 110 * static_cast<double>(i);
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        x, height - 24, kColours[i], x + 18, height - 14, kNames[i]);
  }
  return svg + "</svg>\n";
}

std::string explore_page(const Space& space, std::span<const PointResult> results,
                         std::span<const std::size_t> pareto,
                         std::span<const RatioFinding> ratios) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><style>\n"
      "body{{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}}\n"
      "table{{border-collapse:collapse}}td,th{{padding:.15em .7em;text-align:right;"
      "border-bottom:1px solid #dde}}td:first-child,th:first-child{{text-align:left}}\n"
      "svg{{max-width:100%;height:auto;display:block;margin:1em 0}}</style></head><body>\n"
      "<h1>{0}</h1>\n<p>{1} points, {2} devices each.</p>\n",
      escaped(space.name), results.size(), space.devices);
  if (!ratios.empty()) {
    page +=
        "<h2>Ratios</h2><table><tr><th>ratio</th><th>of</th><th>parallelism</th><th>value</th>"
        "<th>published</th></tr>\n";
    for (const RatioFinding& finding : ratios) {
      const SpaceRatio& ratio = space.ratios[finding.ratio];
      page += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(ratio.name),
          name_of(ratio.figure),
          finding.parallelism ? name_of(space.parallelisms[*finding.parallelism]) : "across",
          finding.value ? fmt::format("{:.3g}", *finding.value) : "",
          ratio.published > 0 ? fmt::format("{:.3g}", ratio.published) : "");
    }
    page += "</table>\n";
  }
  page +=
      "<h2>Systems that none beats in throughput, price and power</h2><table><tr><th>system</th>"
      "<th>FLOP/s</th><th>of peak</th><th>USD</th><th>W</th><th>tp x pp x dp</th></tr>\n";
  constexpr std::size_t kMostRows = 200;
  for (const std::size_t number : pareto.first(std::min(pareto.size(), kMostRows))) {
    const SpacePoint point = point_of(space, number);
    const PointResult& r = results[number];
    std::string name;
    for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
      name += std::string(axis > 0 ? " " : "") +
              std::string(value_name(space, static_cast<SpaceAxis>(axis), point[axis]));
    }
    page += fmt::format(
        "<tr><td>{}</td><td>{:.4g}</td><td>{:.1f}%</td><td>{:.4g}</td><td>{:.4g}</td><td>{} x {} x "
        "{}</td></tr>\n",
        name, figure_of(r, SpaceFigure::throughput), 100 * r.utilisation, r.usd, r.watts, r.tensor,
        r.pipeline, r.data);
  }
  page += "</table>\n";
  if (pareto.size() > kMostRows) {
    page +=
        fmt::format("<p>The first {} of {}; pareto.csv has all.</p>\n", kMostRows, pareto.size());
  }
  for (std::size_t workload = 0; workload < space.workloads.size(); ++workload) {
    for (std::size_t way = 0; way < space.parallelisms.size(); ++way) {
      for (const SpaceFigure figure :
           {SpaceFigure::utilisation, SpaceFigure::per_usd, SpaceFigure::per_w}) {
        page += heat_map_svg(space, results, workload, way, figure);
      }
      page += breakdown_svg(space, results, workload, way);
    }
  }
  return page + "</body></html>\n";
}

}  // namespace braid
