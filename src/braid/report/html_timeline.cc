#include "braid/report/html_timeline.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/plan/names.h"
#include "braid/plan/stage_context.h"
#include "braid/report/html_parts.h"
#include "braid/report/html_stage_graph.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::size_t kMostRows = 32;  ///< Stages drawn.
/// Passes of a stage in one chart, such that each is some pixels wide; fewer where there are many
/// stages, to keep the page small.
constexpr std::size_t kMostPasses = 250, kFewestPasses = 60, kMostPassesOfAll = 2500;
constexpr std::size_t kMostBoxes = 8000;  ///< Of one chart; of more, transfers are left out.
constexpr double kLeft = 34;              ///< Room for a stage's number.
constexpr double kWidth = 1060;           ///< Of the time axis.
constexpr double kRow = 30, kPasses = 16, kTransfers = 8;
constexpr double kMemoryRow = 56;
constexpr double kAxis = 22;

/// Stages that are drawn, in order: all, or the first and last.
std::vector<std::size_t> drawn_stages(std::size_t stages) {
  std::vector<std::size_t> drawn;
  for (std::size_t s = 0; s < stages; ++s) {
    if (stages <= kMostRows || s < kMostRows / 2 || s >= stages - kMostRows / 2) drawn.push_back(s);
  }
  return drawn;
}

const char* colour_of(const Event& event) {
  switch (event.kind) {
    case EventKind::forward:
      return event.chunk % 2 == 0 ? "#3572b0" : "#7fb0d8";
    case EventKind::backward:
      return event.chunk % 2 == 0 ? "#e08e3c" : "#f0bd86";
    case EventKind::gradient_sync:
    case EventKind::shared_gradient_sync:
    case EventKind::parameter_sync:
      return "#c2528b";
    case EventKind::optimizer:
      return "#4f9d69";
    case EventKind::send:
      break;
  }
  return "#8c6bb1";
}

bool is_pass(const Event& event) {
  return event.kind == EventKind::forward || event.kind == EventKind::backward ||
         event.kind == EventKind::optimizer;
}

const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::forward:
      return "forward";
    case EventKind::backward:
      return "backward";
    case EventKind::send:
      return "send";
    case EventKind::gradient_sync:
      return "gradients";
    case EventKind::shared_gradient_sync:
      return "shared gradients";
    case EventKind::parameter_sync:
      return "parameters";
    case EventKind::optimizer:
      break;
  }
  return "optimizer";
}

std::string key(const char* colour, const char* name) {
  return fmt::format(R"(<span><i class="key" style="background:{}"></i>{}</span>)", colour, name);
}

/// A stretch of the iteration, drawn as one chart.
struct TimeWindow {
  double begin_s = 0, end_s = 0;
  double zero_s = 0;  ///< What the marks of the axis count from.
  double x(double time_s) const {
    return kLeft + kWidth * std::clamp((time_s - begin_s) / (end_s - begin_s), 0.0, 1.0);
  }
  bool meets(const Event& event) const {
    return event.end_s > begin_s && event.start_s < end_s && event.end_s > event.start_s;
  }
};

/// The whole iteration, or where that has too many passes to be made out, its start and its end.
std::vector<TimeWindow> windows_of(const Timeline& timeline, const std::vector<std::size_t>& row_of,
                                   std::size_t rows) {
  const std::size_t most = std::clamp(kMostPassesOfAll / rows, kFewestPasses, kMostPasses);
  const double whole_s = timeline.iteration_time_s;
  std::vector<std::vector<const Event*>> passes(rows);
  for (const Event& event : timeline.events) {
    const std::size_t row = row_of[static_cast<std::size_t>(event.stage)];
    if (row < rows && is_pass(event)) passes[row].push_back(&event);
  }
  double first_s = whole_s;
  double last_s = 0;
  for (const std::vector<const Event*>& row : passes) {
    if (row.size() <= most) continue;
    first_s = std::min(first_s, row[most]->start_s);
    last_s = std::max(last_s, row[row.size() - 1 - most]->end_s);
  }
  if (first_s >= last_s) return {{0, whole_s, 0}};
  return {{0, first_s, 0}, {last_s, whole_s, whole_s}};
}

/// Marks at fifths of the axis, below the rows.
std::string axis(double height, const TimeWindow& window) {
  std::string text;
  for (int i = 0; i <= 5; ++i) {
    const double x = kLeft + kWidth * i / 5;
    const double time_s = window.begin_s + (window.end_s - window.begin_s) * i / 5 - window.zero_s;
    text += fmt::format(
        "<line x1=\"{0:.0f}\" x2=\"{0:.0f}\" y1=\"0\" y2=\"{1:.0f}\" stroke=\"#8884\"/><text "
        "x=\"{0:.0f}\" y=\"{2:.0f}\" text-anchor=\"{3}\">{4}{5}</text>\n",
        x, height, height + 16,
        i == 0   ? "start"
        : i == 5 ? "end"
                 : "middle",
        time_s < 0 ? "−" : "", format_seconds(std::abs(time_s)));
  }
  return text;
}

std::string stage_number(double y, std::size_t stage) {
  return fmt::format("<text x=\"4\" y=\"{:.0f}\">{}</text>\n", y, stage + 1);
}

/// `left`: room for what is drawn left of 0.
std::string svg(double left, double height, const std::string& body) {
  return scrolled(fmt::format("<svg viewBox=\"{:.0f} 0 {:.0f} {:.0f}\" role=\"img\">\n", -left,
                              left + kLeft + kWidth + 6, height) +
                  body + "</svg>\n");
}

std::string passes_chart(const Timeline& timeline, const std::vector<std::size_t>& row_of,
                         const std::vector<std::size_t>& drawn, const TimeWindow& window,
                         const StageGraphDrawing& graph) {
  std::vector<const Event*> shown;
  for (const Event& event : timeline.events) {
    if (row_of[static_cast<std::size_t>(event.stage)] < drawn.size() && window.meets(event)) {
      shown.push_back(&event);
    }
  }
  if (shown.size() > kMostBoxes) {
    std::erase_if(shown, [](const Event* event) { return event->kind == EventKind::send; });
  }
  const double height = kRow * static_cast<double>(drawn.size());
  std::string body = graph.body + axis(height, window);
  for (std::size_t r = 0; r < drawn.size(); ++r) {
    body += stage_number(kRow * static_cast<double>(r) + 15, drawn[r]);
  }
  for (const Event* event : shown) {
    const double top = kRow * static_cast<double>(row_of[static_cast<std::size_t>(event->stage)]);
    const bool pass = is_pass(*event);
    const double left = window.x(event->start_s);
    body += fmt::format(
        R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="{:.0f}" fill="{}"><title>{} {}, {}</title></rect>)",
        left, pass ? top + 2 : top + 3 + kPasses,
        std::max(0.3, window.x(event->end_s) - left - 0.2), pass ? kPasses : kTransfers,
        colour_of(*event), name_of(event->kind), event->micro_batch,
        format_seconds(event->end_s - event->start_s));
    body += "\n";
  }
  return svg(graph.width, height + kAxis, body);
}

/// Steps of a stage's memory as a filled shape, at most a few points for each pixel.
std::string memory_shape(const std::vector<MemorySample>& samples, const TimeWindow& window,
                         double most_bytes, double top) {
  const double floor = top + kMemoryRow - 4;
  const double scale = (kMemoryRow - 8) / most_bytes;
  std::string path = fmt::format("M{:.0f} {:.1f}", kLeft, floor);
  double last_x = kLeft;
  double level = floor;
  double highest = floor;  // Of the samples that share a pixel: the fullest is drawn.
  for (const MemorySample& sample : samples) {
    if (sample.time_s > window.end_s) break;
    const double x = window.x(sample.time_s);
    if (x - last_x >= 0.5) {
      path += fmt::format("V{:.1f}H{:.1f}V{:.1f}", highest, x, level);
      last_x = x;
      highest = floor;
    }
    level = floor - sample.bytes * scale;
    highest = sample.time_s > window.begin_s ? std::min(highest, level) : level;
  }
  path += fmt::format("V{:.1f}H{:.0f}V{:.1f}Z", highest, kLeft + kWidth, floor);
  return "<path d=\"" + path + "\" fill=\"#3572b0\" fill-opacity=\".75\"/>\n";
}

std::string memory_chart(const Plan& plan, const Timeline& timeline, const TimeWindow& window,
                         const std::vector<std::size_t>& drawn, double left) {
  double most = 0;
  for (const std::size_t stage : drawn) {
    most = std::max(most, usable_bytes_of_stage(plan, stage));
  }
  for (const auto& samples : timeline.memory) {
    for (const MemorySample& sample : samples) most = std::max(most, sample.bytes);
  }
  if (!(most > 0)) return "";
  const double height = kMemoryRow * static_cast<double>(drawn.size());
  std::string body = axis(height, window);
  for (std::size_t r = 0; r < drawn.size(); ++r) {
    const double top = kMemoryRow * static_cast<double>(r);
    double peak = 0;
    for (const MemorySample& sample : timeline.memory[drawn[r]])
      peak = std::max(peak, sample.bytes);
    const double usable = usable_bytes_of_stage(plan, drawn[r]);
    const double limit_y = top + kMemoryRow - 4 - usable * (kMemoryRow - 8) / most;
    body += stage_number(top + kMemoryRow / 2 + 4, drawn[r]);
    body += memory_shape(timeline.memory[drawn[r]], window, most, top);
    body += fmt::format(
        "<line x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#c0392b\" "
        "stroke-dasharray=\"4 3\"/><text x=\"{3:.0f}\" y=\"{4:.0f}\" text-anchor=\"end\">at most "
        "{5}</text>\n",
        kLeft, kLeft + kWidth, limit_y, kLeft + kWidth - 4, limit_y + 15, format_bytes(peak));
  }
  return svg(left, height + kAxis, body);
}

}  // namespace

std::string timeline_section(const Plan& plan) {
  Timeline timeline;
  try {
    timeline = simulate(plan);
  } catch (const Error&) {
    return "<h2>Timeline</h2>\n<p class=\"note\">The iteration has too many passes to be "
           "drawn.</p>\n";
  }
  const std::vector<std::size_t> drawn = drawn_stages(plan.stages.size());
  std::vector<std::size_t> row_of(plan.stages.size(), plan.stages.size());
  for (std::size_t r = 0; r < drawn.size(); ++r) row_of[drawn[r]] = r;
  const double whole_s = timeline.iteration_time_s;
  if (!(whole_s > 0)) return "";
  const std::vector<TimeWindow> windows = windows_of(timeline, row_of, drawn.size());
  std::string text = "<h2>Timeline</h2>\n";
  const std::string whole = format_seconds(whole_s);
  text += "<p class=\"note\">One device per stage, ";
  text +=
      windows.size() == 1
          ? "the whole iteration of " + whole
          : fmt::format("the first {} and the last {} of {}", format_seconds(windows.front().end_s),
                        format_seconds(whole_s - windows.back().begin_s), whole);
  if (drawn.size() < plan.stages.size()) {
    text += fmt::format("; the first and last {} of {} stages", kMostRows / 2, plan.stages.size());
  }
  const StageGraphDrawing graph = stage_graph_drawing(plan, drawn, kRow);
  text += graph.width > 0 ? ". On the left, which stage hands over to which.</p>\n" : ".</p>\n";
  text += "<div class=\"keys\">" + key("#3572b0", "forward") + key("#e08e3c", "backward") +
          key("#4f9d69", "optimizer") + key("#8c6bb1", "sending") +
          key("#c2528b", "gradients and parameters") + "</div>\n";
  for (const TimeWindow& window : windows) {
    text += passes_chart(timeline, row_of, drawn, window, graph);
  }
  text += "<h2>Memory over time</h2>\n";
  const bool alike = plan.system.groups.size() == 1;
  text += fmt::format(
      "<p class=\"note\">Of each stage's device; the dashed line is {} that a plan may "
      "use.{}</p>\n",
      alike ? "the " + format_bytes(usable_bytes(plan.system.groups.front().chip))
            : "what its chip has",
      plan.parallel.vp == 1 ? ""
                            : " Where a stage's chunks are unlike, it is less than in the table "
                              "above, which counts each as the largest.");
  for (const TimeWindow& window : windows) {
    text += memory_chart(plan, timeline, window, drawn, graph.width);
  }
  return text;
}

std::string timeline_page(const Plan& plan) {
  const Metrics metrics = measure(plan);
  return page_head(plan.model + ", timeline") +
         fmt::format(
             "<h1>{} on {}</h1>\n<p class=\"note\">{} an iteration, of which {} bubble; {} devices "
             "in {} stages, planner {}, schedule {}</p>\n",
             escaped(plan.model), escaped(plan.system.name),
             format_seconds(metrics.iteration_time_s), format_seconds(metrics.bubble_s),
             devices_used(plan), plan.stages.size(), escaped(plan.planner), schedule_text(plan)) +
         timeline_section(plan) + "</body></html>\n";
}

}  // namespace braid
