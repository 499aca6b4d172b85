#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "braid/backend/report/placement_report.h"
#include "braid/base/index.h"
#include "braid/report/html_parts.h"
#include "braid/report/row_lanes.h"

namespace braid {
namespace {

constexpr double row_height = 18, top = 78, left = 20, lane_width = 12, bars_width = 150;
constexpr double picture_width = 1080, letter_width = 6.6;

/// Dark enough for white text, light enough on black.
constexpr std::array<const char*, 8> colours = {"#2f6aa8", "#e08e3c", "#2f7049", "#b1494f",
                                                "#7a5ea8", "#c9b037", "#2b8a94", "#a05195"};
std::string milliseconds_text(double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); }

constexpr const char* reference_colour = "#7d8a98";

/// Backends in the order in which they are listed; the reference kernels are grey.
const char* colour_of(const PlacementReport& report, const std::string& backend) {
  for (std::size_t b = 0; b < report.backends.size(); ++b) {
    if (report.backends[b].name == backend) return colours[b % colours.size()];
  }
  return reference_colour;
}

/// Groups that read what others compute.
RowEdges group_edges(const PlacementReport& report) {
  const Program& program = report.fixed.program;
  const std::vector<PlacedGroup>& groups = report.chosen().placement.groups;
  std::vector<std::size_t> maker(program.values.size(), groups.size());
  RowEdges edges;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const NodeId id : groups[g].nodes) {
      const ProgramNode& node = program.nodes[at(id)];
      for (const ValueId input : node.inputs) {
        if (input < 0 || maker[at(input)] >= g) continue;
        edges.emplace(maker[at(input)], g);
      }
      for (const ValueId output : node.outputs) {
        if (output >= 0) maker[at(output)] = g;
      }
    }
  }
  return edges;
}

std::string cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + "…";
}

std::string legend_svg(const PlacementReport& report) {
  std::vector<std::string> used;
  for (const PlacedGroup& group : report.chosen().placement.groups) {
    if (std::find(used.begin(), used.end(), group.backend) == used.end()) {
      used.push_back(group.backend);
    }
  }
  std::sort(used.begin(), used.end());
  std::string svg;
  double x = left;
  for (const std::string& name : used) {
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"54\" width=\"11\" height=\"11\" fill=\"{}\"/>"
        "<text x=\"{:.0f}\" y=\"64\">{}</text>\n",
        x, colour_of(report, name), x + 17, escaped(name));
    x += 17 + 24 + letter_width * static_cast<double>(name.size());
  }
  return svg;
}

double y_of(std::size_t row) { return top + row_height * (static_cast<double>(row) + 0.5); }
double x_of(std::size_t lane) { return left + lane_width * (static_cast<double>(lane) + 0.5); }

std::string lines_svg(const RowEdges& edges, const std::vector<std::size_t>& lanes) {
  std::string svg;
  for (const auto& [from, to] : edges) {
    const double x0 = x_of(lanes[from]), y0 = y_of(from), x1 = x_of(lanes[to]), y1 = y_of(to);
    // Along the lane of the one that reads, or of the one that is read where that lane is its own.
    const double bend = lanes[from] <= lanes[to] ? y0 + row_height : y1 - row_height;
    if (x0 == x1) {
      svg += fmt::format("<path class=\"edge\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x0, y0, y1);
    } else if (lanes[from] <= lanes[to]) {
      svg += fmt::format("<path class=\"edge\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}V{:.1f}\"/>\n", x0,
                         y0, x1, bend, y1);
    } else {
      svg += fmt::format("<path class=\"edge\" d=\"M{:.1f} {:.1f}V{:.1f}L{:.1f} {:.1f}\"/>\n", x0,
                         y0, bend, x1, y1);
    }
  }
  return svg;
}

std::string rows_svg(const PlacementReport& report, const std::vector<std::size_t>& lanes) {
  const std::vector<PlacedGroup>& groups = report.chosen().placement.groups;
  double most_s = 0;
  for (const PlacedGroup& group : groups) most_s = std::max(most_s, group.cost_s);
  const std::size_t lane_count = *std::max_element(lanes.begin(), lanes.end()) + 1;
  const double bars = left + lane_width * static_cast<double>(lane_count) + 10;
  const double words = bars + bars_width + 66;
  const auto room =
      static_cast<std::size_t>(std::max(20.0, (picture_width - words - 10) / letter_width));
  std::string svg;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const PlacedGroup& group = groups[g];
    const char* colour = colour_of(report, group.backend);
    const std::string operators =
        fmt::format("{}", fmt::join(operator_names(report.fixed, group), ", "));
    const double width = most_s > 0 ? std::max(1.0, bars_width * group.cost_s / most_s) : 1;
    svg += fmt::format(
        "<g><title>{}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"{}\"/>"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"11\" fill=\"{}\"/>"
        "<text class=\"dim\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>\n",
        escaped(fmt::format("{}: {}, {}: {}", group.backend, group.pattern,
                            milliseconds_text(group.cost_s), operators)),
        x_of(lanes[g]), y_of(g), colour, bars, y_of(g) - 5.5, width, colour, bars + width + 6,
        y_of(g) + 4, milliseconds_text(group.cost_s), words, y_of(g) + 4,
        escaped(cut(group.pattern + "  " + operators, room)));
  }
  return svg;
}

constexpr const char* style =
    "text{font:12px sans-serif;fill:#1c2733}.head{font-size:15px;font-weight:600}"
    ".dim{fill:#536273}.back{fill:#fff}.edge{stroke:#9aa7b5;fill:none}"
    "@media(prefers-color-scheme:dark){text{fill:#dfe6ee}.dim{fill:#a0aebd}.back{fill:#15191e}"
    ".edge{stroke:#55616f}}";

std::string summary(const PlacementReport& report) {
  const NetworkWay& way = report.chosen();
  return fmt::format(
      "{} on {} of {}",
      milliseconds_text(way.measured ? way.measured->median_s : way.placement.predicted_s),
      report.threads == 1 ? "one thread" : fmt::format("{} threads", report.threads),
      report.machine);
}

std::string preformatted(const std::string& text) {
  return scrolled("<pre>" + escaped(text) + "</pre>");
}

}  // namespace

std::string placement_svg(const PlacementReport& report) {
  const std::vector<PlacedGroup>& groups = report.chosen().placement.groups;
  const RowEdges edges = group_edges(report);
  const std::vector<std::size_t> lanes = lanes_of(groups.size(), edges);
  const double height = top + row_height * static_cast<double>(groups.size()) + 16;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>Which backend runs what</title>\n<style>{2}</style>\n"
      "<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"head\" x=\"{3}\" y=\"24\">{4}</text>\n"
      "<text class=\"dim\" x=\"{3}\" y=\"43\">{5}</text>\n",
      picture_width, height, style, left, escaped(report.model), escaped(summary(report)));
  svg += legend_svg(report);
  if (!groups.empty()) svg += lines_svg(edges, lanes) + rows_svg(report, lanes);
  return svg + "</svg>\n";
}

std::string placement_page(const PlacementReport& report) {
  const std::string title = report.model + " on the backends of this machine";
  return page_head(title) + "<h1>" + escaped(title) + "</h1>\n<p>" + escaped(summary(report)) +
         "</p>\n" + section("Ways to run it", preformatted(ways_table(report))) +
         section("Kernels", preformatted(groups_table(report))) +
         section("Which backend runs what", scrolled(placement_svg(report))) + page_end();
}

}  // namespace braid
