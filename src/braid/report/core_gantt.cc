#include "braid/report/core_gantt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "braid/base/rounding.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

constexpr double kGanttWidth = 1080, kGanttLeft = 104, kGanttRight = 24, kGanttTop = 84;
constexpr double kCoreRow = 26, kCoreGap = 3, kKindGap = 14, kGanttBottom = 54;
constexpr double kBoxLetter = 6.4;  ///< A letter of 11 px, on the wide side.

struct PartStyle {
  const char* name;
  const char* style;
};
constexpr std::array<PartStyle, 4> kPartStyles = {{{"forward", "forward"},
                                                   {"input gradients", "input"},
                                                   {"weight gradients", "weight"},
                                                   {"optimizer", "optimizer"}}};

struct TimeUnit {
  const char* name;
  double seconds;
};
TimeUnit unit_of(double seconds) {
  for (const TimeUnit unit : {TimeUnit{"s", 1}, TimeUnit{"ms", 1e-3}, TimeUnit{"us", 1e-6}}) {
    if (seconds >= 2 * unit.seconds) return unit;
  }
  return {"ns", 1e-9};
}
std::string time_text(double seconds) {
  const TimeUnit unit = unit_of(2 * seconds);
  return fmt::format("{:.4g} {}", seconds / unit.seconds, unit.name);
}

/// 1, 2 or 5 times a power of ten, of which about ten make up the whole.
double tick_step(double whole) {
  const double rough = whole / 10;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

/// Where rows and times are.
struct Layout {
  std::vector<double> tops;
  double bottom = 0;
  double end_s = 1;

  double x(double time_s) const {
    return kGanttLeft + time_s / end_s * (kGanttWidth - kGanttLeft - kGanttRight);
  }
};

Layout layout_of(const CoreRows& rows, double end_s) {
  Layout layout;
  layout.end_s = end_s > 0 ? end_s : 1;
  double y = kGanttTop;
  for (std::size_t r = 0; r < rows.rows.size(); ++r) {
    if (r > 0 && rows.rows[r].kind != rows.rows[r - 1].kind) y += kKindGap;
    layout.tops.push_back(y);
    y += kCoreRow + kCoreGap;
  }
  layout.bottom = y;
  return layout;
}

std::string rows_svg(const CoreRows& rows, const Layout& layout) {
  std::string svg;
  for (std::size_t r = 0; r < rows.rows.size(); ++r) {
    svg += fmt::format(
        "<rect class=\"row\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kGanttLeft, layout.tops[r], kGanttWidth - kGanttLeft - kGanttRight, kCoreRow,
        kGanttLeft - 8, layout.tops[r] + kCoreRow / 2 + 4, rows.rows[r].name);
  }
  return svg;
}

std::string axis_svg(const Layout& layout) {
  const TimeUnit unit = unit_of(layout.end_s);
  const double step = tick_step(layout.end_s / unit.seconds);
  std::string svg;
  for (int tick = 0; tick * step * unit.seconds <= layout.end_s * kAboveTolerance; ++tick) {
    const double x = layout.x(tick * step * unit.seconds);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:.4g}</text>\n",
        x, kGanttTop - 4, layout.bottom + 2, layout.bottom + 18, tick * step);
  }
  return svg + fmt::format(
                   "<text class=\"axis-name\" x=\"{:.1f}\" y=\"{:.1f}\" "
                   "text-anchor=\"middle\">time, {}</text>\n",
                   (kGanttLeft + kGanttWidth - kGanttRight) / 2, layout.bottom + 38, unit.name);
}

/// How many of several cores are busy, as a hill of steps.
std::string crowd_svg(const CoreRow& row, double top, const Layout& layout) {
  const auto y = [&](std::int64_t busy) {
    return top + kCoreRow * (1 - static_cast<double>(busy) / static_cast<double>(row.cores));
  };
  std::string path = fmt::format("M{:.1f} {:.1f}", layout.x(0), y(0));
  for (const auto& [time_s, busy] : row.busy) {
    path += fmt::format("H{:.1f}V{:.1f}", layout.x(time_s), y(busy));
  }
  return fmt::format("<path class=\"crowd\" d=\"{}V{:.1f}Z\"/>\n", path, y(0));
}

std::string box_label(const std::string& name, double x, double y, double width, double height) {
  const double letters = kBoxLetter * static_cast<double>(name.size());
  if (letters + 6 <= width) {
    return fmt::format(
        "<text class=\"in\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
        x + width / 2, y + height / 2 + 4, escaped(name));
  }
  if (letters + 6 > height || width < 15) return "";
  return fmt::format(
      "<text class=\"in\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>",
      x + width / 2 + 4, y + height / 2, escaped(name));
}

std::string boxes_svg(const CoreDrawing& drawing, const CoreRows& rows, const Layout& layout) {
  std::string svg;
  for (const CoreBox& box : rows.boxes) {
    const PlacedOperator& placed = drawing.outcome.schedule.operators[box.op];
    if (placed.end_s <= placed.start_s) continue;
    const CoreName& name = drawing.names[box.op];
    const double x = layout.x(placed.start_s);
    const double whole = layout.x(placed.end_s) - x;
    const double width = std::max(0.6, whole - std::min(0.8, whole / 8));
    const double y = layout.tops[box.first_row];
    const double height = layout.tops[box.last_row] + kCoreRow - y;
    svg += fmt::format(
        "<g class=\"{}\"><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"/>"
        "<title>{}, {}{}: {} from {}</title>{}</g>\n",
        kPartStyles[static_cast<std::size_t>(name.part)].style, x, y, width, height,
        escaped(name.name), kPartStyles[static_cast<std::size_t>(name.part)].name,
        placed.all_cores ? ", on all cores" : "", time_text(placed.end_s - placed.start_s),
        time_text(placed.start_s), box_label(name.name, x, y, width, height));
  }
  return svg;
}

std::string keys_svg(const CoreDrawing& drawing) {
  std::string svg;
  double x = kGanttLeft;
  for (std::size_t part = 0; part < kPartStyles.size(); ++part) {
    const bool any = std::any_of(drawing.names.begin(), drawing.names.end(), [&](const auto& name) {
      return static_cast<std::size_t>(name.part) == part;
    });
    if (!any) continue;
    svg += fmt::format(
        "<g class=\"{}\"><rect x=\"{:.0f}\" y=\"58\" width=\"11\" height=\"11\"/></g>"
        "<text x=\"{:.0f}\" y=\"68\">{}</text>\n",
        kPartStyles[part].style, x, x + 17, kPartStyles[part].name);
    x += 17 + 26 + 7 * static_cast<double>(std::string(kPartStyles[part].name).size());
  }
  return svg;
}

constexpr const char* kGanttStyle =
    "text{font:12px sans-serif;fill:#1c2733}.head{font-size:15px;font-weight:600}"
    ".dim{fill:#536273}.back{fill:#fff}.row{fill:#eef1f5}.grid{stroke:#d3dae2}"
    ".forward rect{fill:#2f6aa8}.input rect{fill:#e08e3c}.weight rect{fill:#c9b037}"
    ".optimizer rect{fill:#2f7049}.crowd{fill:#7d8a98}"
    ".in{font-size:11px;fill:#fff}.input .in,.weight .in{fill:#16202b}"
    "@media(prefers-color-scheme:dark){text{fill:#dfe6ee}.dim{fill:#a0aebd}.back{fill:#15191e}"
    ".row{fill:#20262e}.grid{stroke:#38424d}.in{fill:#fff}.input .in,.weight .in{fill:#16202b}}";

std::string count_of(std::int64_t cores, const char* kind) {
  return fmt::format("{} {} core{}", cores, kind, cores == 1 ? "" : "s");
}

}  // namespace

std::string core_summary(const CoreDrawing& drawing) {
  const CoreOutcome& outcome = drawing.outcome;
  return fmt::format("{} on {} and {}, {}", time_text(outcome.schedule.makespan_s),
                     count_of(drawing.problem.cores.tensor, "tensor"),
                     count_of(drawing.problem.cores.vector, "vector"),
                     outcome.status == CoreStatus::optimal
                         ? "proven to be the least"
                         : fmt::format("at most {:.2g} % above the least", 100 * outcome.gap()));
}

std::string core_gantt_svg(const CoreDrawing& drawing) {
  const CoreRows rows = core_rows(drawing.problem, drawing.outcome.schedule);
  const Layout layout = layout_of(rows, drawing.outcome.schedule.makespan_s);
  const double height = layout.bottom + kGanttBottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>When each core runs what</title>\n<style>{2}</style>\n"
      "<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"head\" x=\"{3}\" y=\"24\">{4}</text>\n"
      "<text class=\"dim\" x=\"{3}\" y=\"44\">{5}</text>\n",
      kGanttWidth, height, kGanttStyle, kGanttLeft, escaped(drawing.title), core_summary(drawing));
  svg += keys_svg(drawing) + rows_svg(rows, layout) + axis_svg(layout);
  for (std::size_t r = 0; r < rows.rows.size(); ++r) {
    if (!rows.rows[r].busy.empty()) svg += crowd_svg(rows.rows[r], layout.tops[r], layout);
  }
  return svg + boxes_svg(drawing, rows, layout) + "</svg>\n";
}

}  // namespace braid
