#include "braid/validate/accuracy_plots.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

constexpr double kWidth = 1060;
constexpr double kLeft = 62, kRight = 24, kTop = 10;

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor,
                     escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)", x1, y1, x2,
                     y2, style);
}

constexpr const char* kGrid = "stroke=\"var(--line)\"";
constexpr const char* kStrong = "stroke=\"var(--dim)\"";
constexpr const char* kDashed = "stroke=\"var(--dim)\" stroke-dasharray=\"4 4\"";

/// The value at a share of the sorted list.
double at_share(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(
      std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

std::string group_colour(std::size_t group) {
  // Steps of the golden angle.
  const double hue = std::fmod(210 + 137.508 * static_cast<double>(group), 360);
  return fmt::format("hsl({:.0f} 60% 50%)", hue);
}

std::string scatter_plot(const std::vector<PlottedRun>& runs) {
  if (runs.empty()) return "";
  constexpr double kHeight = 620;
  constexpr double kBottom = 44;
  double least = runs.front().measured_s;
  double most = least;
  for (const PlottedRun& run : runs) {
    least = std::min({least, run.measured_s, run.predicted_s});
    most = std::max({most, run.measured_s, run.predicted_s});
  }
  const double low = std::log10(least) - 0.1;
  const double high = std::log10(most) + 0.1;
  const auto x = [&](double log) {
    return kLeft + (log - low) / (high - low) * (kWidth - kLeft - kRight);
  };
  const auto y = [&](double log) {
    return kHeight - kBottom - (log - low) / (high - low) * (kHeight - kBottom - kTop);
  };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"predicted against measured "
      "seconds\">\n",
      kWidth, kHeight);
  for (int decade = static_cast<int>(std::ceil(low)); decade <= std::floor(high); ++decade) {
    svg += line(x(decade), y(low), x(decade), y(high), kGrid);
    svg += line(x(low), y(decade), x(high), y(decade), kGrid);
    const std::string name = format_seconds(std::pow(10.0, decade));
    svg += text_at(x(decade), kHeight - kBottom + 16, "middle", name);
    svg += text_at(kLeft - 6, y(decade) + 4, "end", name) + '\n';
  }
  svg += line(x(low), y(low), x(high), y(high), kStrong);
  const double fifth = std::log10(1.2);
  svg += line(x(low), y(low + fifth), x(high - fifth), y(high), kDashed);
  svg += line(x(low + fifth), y(low), x(high), y(high - fifth), kDashed) + '\n';
  svg += text_at((kLeft + kWidth) / 2, kHeight - 8, "middle", "measured");
  svg += fmt::format(
      "<text transform=\"translate(13 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">predicted</text>\n",
      kHeight / 2);
  for (const PlottedRun& run : runs) {
    svg += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}" fill-opacity=".65"><title>{}</title>)"
        "</circle>\n",
        x(std::log10(run.measured_s)), y(std::log10(run.predicted_s)), group_colour(run.group),
        escaped(run.label));
  }
  return svg + "</svg>\n";
}

std::string error_plot(const std::vector<ErrorColumn>& columns) {
  if (columns.empty()) return "";
  const double width = (kWidth - kLeft - kRight) / static_cast<double>(columns.size());
  // Every other name stands lower where they would touch.
  constexpr double kCharacter = 7.5;
  const bool crowded = std::any_of(columns.begin(), columns.end(), [&](const ErrorColumn& column) {
    return kCharacter * static_cast<double>(column.name.size()) > width;
  });
  const double lower = crowded ? 34 : 0;
  const double bottom = 40 + lower;
  const double height = 250 + lower;
  double reach = 0.1;
  for (const ErrorColumn& column : columns) {
    for (const double error : column.errors) reach = std::max(reach, std::abs(error));
  }
  reach = std::min(1.0, std::ceil(reach * 10) / 10);
  const auto y = [&](double error) {
    const double share = std::clamp(error / reach, -1.0, 1.0);
    return kTop + (1 - share) / 2 * (height - kTop - bottom);
  };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\">\n", kWidth, height);
  for (int i = -2; i <= 2; ++i) {
    const double error = reach * i / 2;
    svg += line(kLeft, y(error), kWidth - kRight, y(error), i == 0 ? kStrong : kGrid);
    svg += text_at(kLeft - 6, y(error) + 4, "end",
                   i == 0 ? "0" : fmt::format("{:+.0f} %", 100 * error));
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::vector<double> sorted = columns[c].errors;
    std::sort(sorted.begin(), sorted.end());
    const double middle = kLeft + (static_cast<double>(c) + 0.5) * width;
    const double half = std::min(0.42 * width, 50.0);
    // Dots side by side, spread evenly by rank.
    std::string dots;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const double along = std::fmod(static_cast<double>(i) * 0.618034, 1.0);
      dots += fmt::format("M{:.1f} {:.1f}h0", middle + (2 * along - 1) * half, y(sorted[i]));
    }
    svg += fmt::format(R"(<path d="{}" stroke="#3572b0" stroke-opacity=".45" stroke-width="4" )"
                       "stroke-linecap=\"round\"/>\n",
                       dots);
    const double median = y(at_share(sorted, 0.5));
    svg += line(middle, y(at_share(sorted, 0.05)), middle, y(at_share(sorted, 0.95)),
                R"(stroke="#e08e3c" stroke-width="2")");
    svg += line(middle - std::min(half, 14.0), median, middle + std::min(half, 14.0), median,
                R"(stroke="#e08e3c" stroke-width="3")");
    const double below = height - bottom + (c % 2 == 1 ? lower : 0);
    svg += text_at(middle, below + 18, "middle", columns[c].name);
    svg += text_at(middle, below + 33, "middle", fmt::format("n = {}", columns[c].errors.size())) +
           '\n';
  }
  return svg + "</svg>\n";
}

}  // namespace braid
