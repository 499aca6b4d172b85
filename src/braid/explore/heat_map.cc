#include "braid/explore/heat_map.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "braid/explore/findings_table.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

constexpr double kTitleLine = 26, kHeaderLine = 20, kCellHeight = 26, kEdge = 8;
constexpr double kLetter = 6.8, kTitleLetter = 9.2;  // Wide ones of 12 and 15 pixels.

/// A line of names above the columns, each over `span` of them.
struct HeadLine {
  const SpaceAxis* axis = nullptr;
  std::size_t span = 1;
};

/// The points of one workload and way to plan, by row and column.
struct Grid {
  std::size_t first = 0, rows = 1, columns = 1;
  std::vector<std::string> row_names;
  std::string row_axes;  ///< What the names of rows are of: "chip, memory".
  std::vector<HeadLine> head;
  double title_height = 0;  // 0: it is not drawn.
  double left = 0, top = 0, cell_width = 62;

  std::size_t number(std::size_t row, std::size_t column) const {
    return first + row * columns + column;
  }
  double x(std::size_t column) const { return left + static_cast<double>(column) * cell_width; }
  double y(std::size_t row) const { return top + static_cast<double>(row) * kCellHeight; }
};

// Axes of rows stand before those of columns, and both behind those of pages.
Grid grid_of(const Space& space, std::size_t workload, std::size_t method, TitleOfMap title) {
  Grid grid;
  grid.title_height = title == TitleOfMap::drawn ? kTitleLine : 0;
  std::vector<const SpaceAxis*> row_axes;
  for (const SpaceAxis& axis : space.axes) {
    if (axis.place == AxisPlace::row) {
      grid.rows *= axis.values.size();
      row_axes.push_back(&axis);
    } else if (axis.place == AxisPlace::column) {
      grid.columns *= axis.values.size();
      grid.head.push_back({&axis, 1});
    }
  }
  const std::size_t methods = space.axes[kMethodAxis].values.size();
  grid.first = (workload * methods + method) * grid.rows * grid.columns;
  // An axis of one value tells nothing apart.
  const auto is_one = [](const SpaceAxis& axis) { return axis.values.size() == 1; };
  while (grid.head.size() > 1) {
    const auto one = std::find_if(grid.head.begin(), grid.head.end(),
                                  [&](const HeadLine& line) { return is_one(*line.axis); });
    if (one == grid.head.end()) break;
    grid.head.erase(one);
  }
  std::size_t span = 1;
  for (std::size_t i = grid.head.size(); i-- > 0;) {
    grid.head[i].span = span;
    span *= grid.head[i].axis->values.size();
  }
  for (std::size_t row = 0; row < grid.rows; ++row) {
    std::string name;
    std::size_t left = row, below = grid.rows;
    for (const SpaceAxis* axis : row_axes) {
      below /= axis->values.size();
      if (is_one(*axis) && (grid.rows > 1 || axis != row_axes.front())) continue;
      name += (name.empty() ? "" : " ") + axis->values[left / below];
      left %= below;
    }
    grid.left = std::max(grid.left, kLetter * static_cast<double>(name.size()) + 2 * kEdge);
    grid.row_names.push_back(std::move(name));
  }
  for (const SpaceAxis* axis : row_axes) {
    if (is_one(*axis) && (grid.rows > 1 || axis != row_axes.front())) continue;
    grid.row_axes += (grid.row_axes.empty() ? "" : ", ") + axis->name;
  }
  const auto make_room = [&grid](const std::string& name) {
    grid.left = std::max(grid.left, kLetter * static_cast<double>(name.size()) + 2 * kEdge);
  };
  make_room(grid.row_axes);
  for (const HeadLine& line : grid.head) {
    make_room(line.axis->name);
    for (const std::string& value : line.axis->values) {
      const double width = kLetter * static_cast<double>(value.size()) + kEdge;
      grid.cell_width = std::max(grid.cell_width, width / static_cast<double>(line.span));
    }
  }
  // A line more for what the rows are.
  grid.top = kEdge + grid.title_height + kHeaderLine * static_cast<double>(grid.head.size() + 1);
  return grid;
}

std::string title_of(const Space& space, std::size_t workload, std::size_t method,
                     std::string_view what) {
  return fmt::format("{}: {}, {} {}", what, space.axes[kWorkloadAxis].values[workload],
                     space.axes[kMethodAxis].name, space.axes[kMethodAxis].values[method]);
}

// From pale to dark blue; black text on it is readable up to this share, white text above.
constexpr double kPaleText = 0.72;

constexpr double kScaleWidth = 300, kNoneWidth = 110, kScaleHeight = 56, kScaleInset = 12;

double scale_width(const std::string& title) {
  return std::max(kScaleWidth, kLetter * static_cast<double>(title.size()) + 2 * kScaleInset);
}

/// What the colours stand for, below its title: from 0 to 100 %, and where there is no plan.
std::string scale_svg(double x, double y, const std::string& title, bool any_none) {
  constexpr int kSteps = 25, kMarks = 4;
  constexpr double kInset = kScaleInset, kTitle = 18;
  const double width = kScaleWidth - 2 * kInset;
  std::string svg = fmt::format("<text class=\"axis-name\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
                                x + kInset, y + 10, escaped(title));
  y += kTitle;
  for (int i = 0; i < kSteps; ++i) {
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"12\" fill=\"{}\"/>",
        x + kInset + width * i / kSteps, y, width / kSteps + 0.3, heat_colour((i + 0.5) / kSteps));
  }
  for (int i = 0; i <= kMarks; ++i) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                       x + kInset + width * i / kMarks, y + 27, 100 * i / kMarks);
  }
  if (any_none) {
    svg += fmt::format(
        "<rect class=\"none\" x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"12\" height=\"12\"/>"
        "<text x=\"{2:.0f}\" y=\"{3:.0f}\">no plan</text>",
        x + kScaleWidth + 8, y, x + kScaleWidth + 26, y + 11);
  }
  return svg + "\n";
}

constexpr const char* kMapStyle =
    "<style>svg.map text{font:12px sans-serif;fill:#222}svg.map text.head{font-size:15px;"
    "font-weight:600}svg.map text.axis-name{fill:#536273}svg.map text.dark{fill:#000}"
    "svg.map text.pale{fill:#fff}svg.map .none{fill:#ddd}svg.map .track{fill:#eef1f5}"
    "svg.map .back{fill:#fff}"
    "@media(prefers-color-scheme:dark){svg.map text{fill:#dfe6ee}"
    "svg.map text.axis-name{fill:#a0aebd}svg.map .none{fill:#3a434d}svg.map .track{fill:#2a323b}"
    "svg.map .back{fill:#15191e}}</style>\n";

/// What rows or columns are, at the left of what names them.
std::string axis_name(const Grid& grid, double y, const std::string& name) {
  if (name.empty()) return "";
  return fmt::format(
      "<text class=\"axis-name\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n",
      grid.left - kEdge, y, escaped(name));
}

std::string head_of(const Grid& grid, const std::string& title, double height, double least_width) {
  double width = std::max(grid.x(grid.columns) + 2 * kEdge, least_width);
  std::string drawn;
  if (grid.title_height > 0) {
    width = std::max(width, kTitleLetter * static_cast<double>(title.size()) + 2 * kEdge);
    drawn =
        fmt::format("<text class=\"head\" x=\"{}\" y=\"22\">{}</text>\n", kEdge, escaped(title));
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"map\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "style=\"margin:.8em 0\" "
      "role=\"img\">\n<title>{2}</title>\n"
      "{3}<rect class=\"back\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n"
      "{4}",
      width, height, escaped(title), kMapStyle, drawn);
  double y = grid.title_height + 18;
  for (const HeadLine& line : grid.head) {
    svg += axis_name(grid, y, line.axis->name);
    const std::vector<std::string>& values = line.axis->values;
    for (std::size_t i = 0; i * line.span < grid.columns; ++i) {
      const double x = (grid.x(i * line.span) + grid.x((i + 1) * line.span)) / 2;
      svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n", x, y,
                         escaped(values[i % values.size()]));
    }
    y += kHeaderLine;
  }
  svg += axis_name(grid, y, grid.row_axes);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n",
                       grid.left - kEdge, grid.y(row) + 0.7 * kCellHeight,
                       escaped(grid.row_names[row]));
  }
  return svg;
}

double height_of(const Grid& grid) { return grid.y(grid.rows) + 2 * kEdge; }

std::string plural_of(const std::string& unit) {
  if (unit == "FLOP") return "Operations";
  return unit == "token" ? "Tokens" : "Samples";
}

/// "Tokens per second".
std::string figure_title(const Space& space, std::size_t workload, SpaceFigure figure) {
  const bool planned = std::holds_alternative<SystemSpace>(space.points);
  if (figure == SpaceFigure::utilisation) {
    return planned ? "Model FLOPs utilisation" : "Utilisation";
  }
  static constexpr const char* kPer[] = {"", "second", "second per USD", "second per watt",
                                         "joule"};
  return fmt::format("{} per {}", plural_of(space.units[workload]),
                     kPer[static_cast<std::size_t>(figure)]);
}

/// As tables have shares; of small ones two digits.
std::string percent_text(double share) {
  return share >= 0.0995 ? fmt::format("{:.1f} %", 100 * share)
                         : fmt::format("{:.2g} %", 100 * share);
}

/// What 100 % is.
std::string scale_title(const std::string& figure, bool of_peak, double most) {
  return figure + (of_peak ? ", % of the peak" : ", % of " + figure_text(most));
}

struct PartStyle {
  std::string_view name, label, colour;
};

// Labels and colours of the parts of all kinds of spaces.
PartStyle style_of(std::string_view part) {
  static constexpr PartStyle kStyles[] = {
      {"compute", "compute", "#2b6cb0"},     {"memory", "memory", "#d69e2e"},
      {"network", "network", "#c05621"},     {"recompute", "recomputation", "#7fb0d8"},
      {"tp_comm", "TP", "#e08e3c"},          {"cp_comm", "CP", "#c9b037"},
      {"ep_comm", "EP", "#a0522d"},          {"pp_comm", "PP", "#8c6bb1"},
      {"dp_comm", "DP", "#c2528b"},          {"bubble", "bubble", "#aab4bf"},
      {"offload", "host memory", "#777777"}, {"optimizer", "optimizer", "#4f9d69"}};
  for (const PartStyle& style : kStyles) {
    if (style.name == part) return style;
  }
  return {part, part, "#444444"};
}

double key_width(std::string_view part) {
  return 36 + kLetter * static_cast<double>(style_of(part).label.size());
}

double part_of(const PointResult& result, std::size_t part) {
  return part < result.parts_s.size() ? std::max(0.0, result.parts_s[part]) : 0;
}

double sum_of_parts(const PointResult& result) {
  double sum = 0;
  for (std::size_t p = 0; p < result.parts_s.size(); ++p) sum += part_of(result, p);
  return sum;
}

/// The time that the parts of a result are of.
double parts_whole_s(const Space& space, const PointResult& result) {
  const bool planned = std::holds_alternative<SystemSpace>(space.points);
  return planned || result.figures.empty() ? result.time_s : result.figures.front();
}

bool parts_overlap(const Space& space, const PointResult& result) {
  return is_found(result) && sum_of_parts(result) > 1.001 * parts_whole_s(space, result);
}

/// Those that any result has.
std::vector<std::size_t> parts_of(std::span<const PointResult> results, std::size_t count) {
  std::vector<std::size_t> parts;
  for (std::size_t p = 0; p < count; ++p) {
    const auto has = [p](const PointResult& result) { return part_of(result, p) > 0; };
    if (std::any_of(results.begin(), results.end(), has)) parts.push_back(p);
  }
  return parts;
}

std::string breakdown_title(const Space& space, bool overlap) {
  if (overlap) {
    return "What each part would take alone, overlapping, shares of the time";
  }
  return std::holds_alternative<SystemSpace>(space.points)
             ? "Where the time goes in the busiest stage, shares of an iteration"
             : "Where the time goes, shares of an iteration";
}

struct Bar {
  double x = 0, y = 0, width = 0, height = 0;
};

std::string part_bar(const Bar& bar, std::string_view part, double share) {
  const PartStyle style = style_of(part);
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{} "
      "{:.1f} %</title></rect>",
      bar.x, bar.y, bar.width, bar.height, style.colour, style.label, 100 * share);
}

/// Parts one after the other, all of the bar together.
std::string share_bar(const Space& space, const PointResult& result, Bar bar) {
  const double sum = sum_of_parts(result), whole = bar.width;
  std::string svg;
  for (std::size_t p = 0; p < result.parts_s.size(); ++p) {
    bar.width = part_of(result, p) / sum * whole;
    if (!(bar.width > 0)) continue;
    svg += part_bar(bar, columns_of(space).parts[p], part_of(result, p) / sum);
    bar.x += bar.width;
  }
  return svg;
}

/// Parts below each other, each of the time that all of them take.
std::string alone_bars(const Space& space, const PointResult& result,
                       std::span<const std::size_t> parts, const Bar& cell) {
  const double whole = parts_whole_s(space, result);
  Bar bar = cell;
  bar.height = cell.height / static_cast<double>(parts.size());
  std::string svg = fmt::format(
      "<rect class=\"track\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"/>",
      cell.x, cell.y, cell.width, cell.height);
  for (const std::size_t part : parts) {
    const double share = part_of(result, part) / whole;
    bar.width = std::min(1.0, share) * cell.width;
    if (bar.width > 0) svg += part_bar(bar, columns_of(space).parts[part], share);
    bar.y += bar.height;
  }
  return svg;
}

}  // namespace

std::string heat_colour(double share) {
  const double t = std::clamp(share, 0.0, 1.0);
  const auto mix = [t](double from, double to) {
    return static_cast<int>(std::lround(from + t * (to - from)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(247, 8), mix(251, 69), mix(255, 148));
}

bool is_dark(double share) { return share > kPaleText; }

std::string heat_scale(const std::string& title) {
  const double width = scale_width(title);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"map\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n{3}{4}</svg>\n",
      width, kScaleHeight, escaped(title), kMapStyle, scale_svg(0, 0, title, false));
}

TitledMap heat_map(const Space& space, std::span<const PointResult> results, std::size_t workload,
                   std::size_t method, SpaceFigure figure, TitleOfMap where) {
  const Grid grid = grid_of(space, workload, method, where);
  double most = 0;
  for (std::size_t i = 0; i < grid.rows * grid.columns; ++i) {
    most = std::max(most, figure_of(results[grid.first + i], figure));
  }
  const bool of_peak = figure == SpaceFigure::utilisation;
  const double whole = of_peak ? 1 : most;
  const std::string name = figure_title(space, workload, figure);
  const std::string title =
      title_of(space, workload, method,
               of_peak ? name : name + ", relative to the greatest, " + figure_text(most));
  const bool any_none =
      std::any_of(results.begin() + static_cast<std::ptrdiff_t>(grid.first),
                  results.begin() + static_cast<std::ptrdiff_t>(grid.number(grid.rows, 0)),
                  [](const PointResult& result) { return !is_found(result); });
  const double scale_y = height_of(grid);
  const std::string scale = scale_title(name, of_peak, most);
  std::string svg =
      head_of(grid, title, scale_y + kScaleHeight,
              kEdge + std::max(scale_width(scale), kScaleWidth + (any_none ? kNoneWidth : kEdge)));
  if (whole > 0) svg += scale_svg(kEdge, scale_y, scale, any_none);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      const PointResult& result = results[grid.number(row, column)];
      const double x = grid.x(column), y = grid.y(row);
      const std::string box =
          fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"", x + 1, y + 1,
                      grid.cell_width - 2, kCellHeight - 2);
      if (!is_found(result) || !(whole > 0)) {
        svg += fmt::format(
            "<rect class=\"none\" {}><title>{}</title></rect>\n", box,
            escaped(result.reason.empty() ? std::string(name_of(result.status)) : result.reason));
        continue;
      }
      const double share = figure_of(result, figure) / whole;
      svg += fmt::format(
          "<rect {} fill=\"{}\">{}</rect><text{} x=\"{:.1f}\" y=\"{:.0f}\" "
          "text-anchor=\"middle\">{}</text>\n",
          box, heat_colour(share),
          result.form.empty() ? "" : "<title>" + escaped(result.form) + "</title>",
          is_dark(share) ? " class=\"pale\"" : " class=\"dark\"", x + grid.cell_width / 2,
          y + 0.68 * kCellHeight, percent_text(share));
    }
  }
  return {title, svg + "</svg>\n"};
}

TitledMap breakdown_map(const Space& space, std::span<const PointResult> results,
                        std::size_t workload, std::size_t method, TitleOfMap where) {
  // Wide enough to tell small shares apart where columns are few.
  constexpr double kWidest = 160, kWhole = 640;
  Grid grid = grid_of(space, workload, method, where);
  grid.cell_width =
      std::max(grid.cell_width, std::min(kWidest, kWhole / static_cast<double>(grid.columns)));
  const std::span<const PointResult> shown = results.subspan(grid.first, grid.rows * grid.columns);
  const std::vector<std::string>& names = columns_of(space).parts;
  const std::vector<std::size_t> parts = parts_of(shown, names.size());
  const bool overlap = std::any_of(shown.begin(), shown.end(), [&](const PointResult& result) {
    return parts_overlap(space, result);
  });
  const double height = height_of(grid) + 22;
  double keys_width = 0;
  for (const std::size_t part : parts) keys_width += key_width(names[part]);
  const std::string title = title_of(space, workload, method, breakdown_title(space, overlap));
  std::string svg = head_of(grid, title, height, grid.left + keys_width);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      const PointResult& result = results[grid.number(row, column)];
      if (!is_found(result)) continue;
      const Bar cell{grid.x(column) + 2, grid.y(row) + 4, grid.cell_width - 4, kCellHeight - 8};
      svg += (overlap ? alone_bars(space, result, parts, cell) : share_bar(space, result, cell)) +
             "\n";
    }
  }
  double x = grid.left;
  for (const std::size_t part : parts) {
    const PartStyle style = style_of(names[part]);
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/><text "
        "x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
        x, height - 24, style.colour, x + 18, height - 14, style.label);
    x += key_width(names[part]);
  }
  return {title, svg + "</svg>\n"};
}

}  // namespace braid
