#include "braid/report/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/report/html_parts.h"
#include "braid/report/plot_labels.h"

namespace braid {
namespace {

constexpr double kPlotWidth = 760, kPlotHeight = 460;
constexpr double kPlotLeft = 92, kPlotRight = 32, kPlotTop = 46, kPlotBottom = 88;
constexpr std::size_t kMostLabels = 24;  ///< Partitions that are numbered and listed.
// Of the list below the plot; letters are narrower than digits on average, and wide ones wider.
constexpr double kListLine = 17, kListIndent = 34;
constexpr std::size_t kListLetters = 96, kMostListLines = 3;

struct Mark {
  double intensity = 0;  ///< Operations per byte.
  double rate = 0;       ///< Operations per second.
  std::size_t partition = 0;
  bool network = false;
};

/// Logarithmic axes from powers of ten to powers of ten.
struct Axes {
  double least_x = 0, most_x = 0, least_y = 0, most_y = 0;  ///< Decimal logarithms.

  double x(double value) const {
    const double share = (std::log10(value) - least_x) / (most_x - least_x);
    return kPlotLeft + std::clamp(share, 0.0, 1.0) * (kPlotWidth - kPlotLeft - kPlotRight);
  }
  double y(double value) const {
    const double share = (std::log10(value) - least_y) / (most_y - least_y);
    return kPlotHeight - kPlotBottom -
           std::clamp(share, 0.0, 1.0) * (kPlotHeight - kPlotTop - kPlotBottom);
  }
};

Axes axes_of(const std::vector<Mark>& marks, double peak, double slope) {
  const double ridge = peak / slope;
  double least_x = ridge, most_x = ridge, least_y = peak;
  for (const Mark& mark : marks) {
    least_x = std::min(least_x, mark.intensity);
    most_x = std::max(most_x, mark.intensity);
    least_y = std::min(least_y, mark.rate);
  }
  return {std::floor(std::log10(least_x / 2)), std::ceil(std::log10(most_x * 2)),
          std::floor(std::log10(least_y / 2)), std::ceil(std::log10(peak * 1.3))};
}

PlotBox mark_box(const Axes& axes, const Mark& mark) {
  constexpr double kRadius = 5;
  const double x = axes.x(mark.intensity), y = axes.y(mark.rate);
  return {x - kRadius, y - kRadius, x + kRadius, y + kRadius};
}

/// The kernels of each partition, in model order.
std::vector<std::vector<std::string>> kernels_of(const DataflowPlan& plan) {
  std::vector<std::vector<std::string>> names(plan.outcome.cost.partitions.size());
  for (std::size_t i = 0; i < plan.work.kernels.size(); ++i) {
    names[static_cast<std::size_t>(plan.outcome.mapping.partition_of[i])].push_back(
        plan.work.kernels[i].name);
  }
  return names;
}

/// What the names of all kernels begin with: "block0.".
std::string common_start(const std::vector<std::vector<std::string>>& kernels) {
  std::optional<std::string> start;
  for (const std::vector<std::string>& partition : kernels) {
    for (const std::string& name : partition) {
      if (!start)
        start = name.substr(0, name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
      while (name.compare(0, start->size(), *start) != 0) {
        start->pop_back();
        while (!start->empty() && start->back() != '.') start->pop_back();
      }
    }
  }
  return start.value_or("");
}

/// "3 attention.core.scores +6": the partition's number, its first kernel and how many there are
/// more.
std::string partition_name(std::size_t partition, const std::vector<std::string>& kernels,
                           const std::string& start) {
  constexpr std::size_t kMostLetters = 24;
  std::string text = fmt::format("{}", partition + 1);
  if (kernels.empty()) return text;
  text += " " + kernels.front().substr(start.size(), kMostLetters);
  return kernels.size() > 1 ? fmt::format("{} +{}", text, kernels.size() - 1) : text;
}

/// A label for each place that marks are at: what lies on one spot shares it. Names where all of
/// them have room, else numbers.
std::vector<LabelledSpot> labelled_spots(const Axes& axes, const std::vector<Mark>& marks,
                                         const std::vector<std::vector<std::string>>& kernels) {
  constexpr double kSame = 1;  ///< Pixels.
  constexpr std::size_t kMostNamed = 12;
  const std::string start = common_start(kernels);
  std::vector<LabelledSpot> spots;
  for (const Mark& mark : marks) {
    if (mark.partition >= kMostLabels) continue;
    const double x = axes.x(mark.intensity), y = axes.y(mark.rate);
    auto spot = std::find_if(spots.begin(), spots.end(), [&](const LabelledSpot& other) {
      return std::abs(other.x - x) < kSame && std::abs(other.y - y) < kSame;
    });
    if (spot == spots.end()) spot = spots.insert(spot, {x, y, {"", ""}});
    const std::string names[] = {partition_name(mark.partition, kernels[mark.partition], start),
                                 fmt::format("{}", mark.partition + 1)};
    for (std::size_t i = 0; i < 2; ++i) {
      spot->texts[i] += (spot->texts[i].empty() ? "" : ", ") + names[i];
    }
  }
  for (LabelledSpot& spot : spots) {
    if (kernels.size() > kMostNamed || spot.texts[0] == spot.texts[1]) {
      spot.texts.erase(spot.texts.begin());
    }
  }
  return spots;
}

/// Names in lines of so many letters at most; of very many the first, and how many there are more.
std::vector<std::string> lines_of(const std::vector<std::string>& names) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name =
        names[i].substr(0, kListLetters / 2) + (i + 1 < names.size() ? ", " : "");
    if (lines.back().size() + name.size() > kListLetters) {
      const std::string more = fmt::format("and {} more", names.size() - i);
      if (lines.size() == kMostListLines) {
        lines.back() += more;
        return lines;
      }
      lines.emplace_back();
    }
    lines.back() += name;
  }
  return lines;
}

/// Which partition has which kernels, below the plot.
struct KernelList {
  std::string svg;
  double height = 0;
};

KernelList kernel_list(const std::vector<std::vector<std::string>>& kernels) {
  KernelList list;
  double y = kPlotHeight + 8;
  const auto line = [&](double x, const std::string& text) {
    list.svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x, y, escaped(text));
  };
  for (std::size_t p = 0; p < std::min(kernels.size(), kMostLabels); ++p) {
    list.svg += fmt::format("<text class=\"label\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
                            kPlotLeft - kListIndent, y, p + 1);
    for (const std::string& text : lines_of(kernels[p])) {
      line(kPlotLeft, text);
      y += kListLine;
    }
  }
  if (kernels.size() > kMostLabels) {
    line(kPlotLeft, fmt::format("and {} partitions more", kernels.size() - kMostLabels));
    y += kListLine;
  }
  list.height = y - kPlotHeight;
  return list;
}

/// 0.01, 1, 1000, 1e-5: without an exponent where that is short.
std::string power_of_ten(int exponent) {
  return exponent >= -4 && exponent <= 6 ? fmt::format("{}", std::pow(10.0, exponent))
                                         : fmt::format("1e{}", exponent);
}

std::string grid(const Axes& axes) {
  std::string svg;
  for (auto at = static_cast<int>(axes.least_x); at <= static_cast<int>(axes.most_x); ++at) {
    const double x = axes.x(std::pow(10.0, at));
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x, kPlotTop, kPlotHeight - kPlotBottom, kPlotHeight - kPlotBottom + 18, power_of_ten(at));
  }
  for (auto at = static_cast<int>(axes.least_y); at <= static_cast<int>(axes.most_y); ++at) {
    const double y = axes.y(std::pow(10.0, at));
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kPlotLeft, y, kPlotWidth - kPlotRight, kPlotLeft - 6, y + 4, power_of_ten(at - 12));
  }
  svg += fmt::format(
      "<text class=\"axis-name\" transform=\"translate(26 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">performance, TFLOP/s</text>\n",
      (kPlotTop + kPlotHeight - kPlotBottom) / 2);
  return svg;
}

// The roof of a bandwidth below the peak, from the left edge to its ridge.
std::string slope_line(const Axes& axes, double bytes_per_s, double peak, const char* style) {
  const double least =
      std::max(std::pow(10.0, axes.least_x), std::pow(10.0, axes.least_y) / bytes_per_s);
  const double most = std::min(std::pow(10.0, axes.most_x), peak / bytes_per_s);
  if (least >= most) return "";
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style,
      axes.x(least), axes.y(least * bytes_per_s), axes.x(most), axes.y(most * bytes_per_s));
}

/// `taken`: where other texts of the plot are.
std::string marks_svg(const Axes& axes, const std::vector<Mark>& marks,
                      const std::vector<std::vector<std::string>>& kernels,
                      std::vector<PlotBox> taken) {
  std::string svg;
  for (const Mark& mark : marks) {
    const double x = axes.x(mark.intensity), y = axes.y(mark.rate);
    const std::string hover = fmt::format(
        "<title>partition {}: {}: {:.4g} operations a byte of {}, {:.4g} TFLOP/s</title>",
        mark.partition + 1, escaped(lines_of(kernels[mark.partition]).front()), mark.intensity,
        mark.network ? "messages" : "DRAM traffic", mark.rate / 1e12);
    svg += mark.network
               ? fmt::format(
                     "<rect class=\"network\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" "
                     "height=\"9\">{}</rect>\n",
                     x - 4.5, y - 4.5, hover)
               : fmt::format(
                     "<circle class=\"memory\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\">{}</circle>\n",
                     x, y, hover);
  }
  for (const Mark& mark : marks) taken.push_back(mark_box(axes, mark));
  const PlotBox plot{kPlotLeft, kPlotTop, kPlotWidth - 2, kPlotHeight - kPlotBottom};
  std::string texts;
  for (const PlotLabel& label : placed_labels(labelled_spots(axes, marks, kernels), plot, taken)) {
    if (label.has_leader) {
      svg += fmt::format(
          "<line class=\"leader\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
          label.mark_x, label.mark_y, label.end_x, label.end_y);
    }
    texts += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", label.x,
                         label.y, escaped(label.text));
  }
  return svg + texts;
}

}  // namespace

std::string roofline_svg(const DataflowPlan& plan) {
  const double peak = peak_flops_per_s(plan.setup.chip);
  const double dram = plan.setup.chip.dram_bytes_per_s;
  std::vector<Mark> marks;
  double sent_bytes = 0, sending_s = 0;
  const std::vector<PartitionCost>& partitions = plan.outcome.cost.partitions;
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    const PartitionCost& cost = partitions[p];
    sent_bytes += cost.network_bytes;
    sending_s += cost.network_s;
    if (cost.flops <= 0 || cost.time_s <= 0) continue;
    const double rate = cost.flops / cost.time_s;
    if (cost.dram_traffic_bytes > 0) {
      marks.push_back({cost.flops / cost.dram_traffic_bytes, rate, p, false});
    }
    if (cost.network_bytes > 0) {
      marks.push_back({cost.flops / cost.network_bytes, rate, p, true});
    }
  }
  const double network = sending_s > 0 ? sent_bytes / sending_s : 0;
  const std::vector<std::vector<std::string>> kernels = kernels_of(plan);
  const KernelList list = kernel_list(kernels);
  const Axes axes = axes_of(marks, peak, network > 0 ? std::min(dram, network) : dram);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>Roofline of the mapping's partitions</title>\n"
      "<style>text{{font:12px sans-serif;fill:#222}}.head{{font-size:15px;font-weight:600}}"
      ".back{{fill:#fff}}.grid{{stroke:#ddd}}.roof{{stroke:#222;stroke-width:2}}"
      ".dram{{stroke:#1f6fb2;stroke-width:2}}.links{{stroke:#c8551b;stroke-width:2}}"
      ".memory{{fill:#1f6fb2}}.network{{fill:#c8551b}}.memory,.network{{stroke:#fff}}"
      ".label{{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:3}}"
      ".leader{{stroke:#222}}"
      "@media(prefers-color-scheme:dark){{text{{fill:#dfe6ee}}.back{{fill:#15191e}}"
      ".grid{{stroke:#333c47}}.roof{{stroke:#dfe6ee}}.dram{{stroke:#6cb0ea}}.memory{{fill:#6cb0ea}}"
      ".links{{stroke:#f0915a}}.network{{fill:#f0915a}}.memory,.network,.label{{stroke:#15191e}}"
      ".leader{{stroke:#dfe6ee}}}}</style>\n"
      "<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"head\" x=\"{2}\" y=\"26\">Roofline of {3} partition{4} on one chip</text>\n",
      kPlotWidth, kPlotHeight + list.height, kPlotLeft, partitions.size(),
      partitions.size() == 1 ? "" : "s");
  svg += grid(axes);
  const double ridge = peak / std::max(dram, network);
  const std::string peak_text = fmt::format("peak {:.4g} TFLOP/s", peak / 1e12);
  svg += fmt::format(
      "<line class=\"roof\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
      axes.x(ridge), axes.y(peak), kPlotWidth - kPlotRight, axes.y(peak), kPlotWidth - kPlotRight,
      axes.y(peak) - 6, peak_text);
  svg += slope_line(axes, dram, peak, "dram");
  if (network > 0) svg += slope_line(axes, network, peak, "links");
  const double peak_width = text_box(0, 0, peak_text).right;
  svg += marks_svg(axes, marks, kernels,
                   {text_box(kPlotWidth - kPlotRight - peak_width, axes.y(peak) - 6, peak_text)}) +
         list.svg;
  svg += fmt::format(
      "<text class=\"axis-name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">intensity, operations "
      "per byte</text>\n",
      (kPlotLeft + kPlotWidth - kPlotRight) / 2, kPlotHeight - kPlotBottom + 38);
  const double key_y = kPlotHeight - 22;
  svg += fmt::format(
      "<circle class=\"memory\" cx=\"{}\" cy=\"{}\" r=\"5\"/><text x=\"{}\" y=\"{}\">DRAM, {:.4g} "
      "GB/s</text>\n",
      kPlotLeft + 5, key_y - 4, kPlotLeft + 16, key_y, dram / 1e9);
  if (network > 0) {
    svg += fmt::format(
        "<rect class=\"network\" x=\"{}\" y=\"{}\" width=\"9\" height=\"9\"/><text x=\"{}\" "
        "y=\"{}\">network, {:.4g} GB/s of messages</text>\n",
        kPlotLeft + 190, key_y - 9, kPlotLeft + 206, key_y, network / 1e9);
  }
  return svg + "</svg>\n";
}

}  // namespace braid
