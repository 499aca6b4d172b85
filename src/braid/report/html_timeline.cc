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
constexpr double kMostEmpty = 4;  ///< Times the peak, up to which a memory's limit is drawn.

/// Stages that are drawn, in order: all, or the first and last.
std::vector<std::size_t> drawn_stages(std::size_t stages) {
  std::vector<std::size_t> drawn;
  for (std::size_t s = 0; s < stages; ++s) {
    if (stages <= kMostRows || s < kMostRows / 2 || s >= stages - kMostRows / 2) drawn.push_back(s);
  }
  return drawn;
}

/// Every second chunk, or round of several, is lighter.
bool is_light(const Event& event) { return (event.chunk + event.round) % 2 == 1; }

const char* colour_of(const Event& event) {
  const bool light = is_light(event);
  switch (event.kind) {
    case EventKind::forward:
      return light ? "#7fb0d8" : "#3572b0";
    case EventKind::backward:
    case EventKind::input_gradient:
      return light ? "#f0bd86" : "#e08e3c";
    case EventKind::weight_gradient:
      return light ? "#e3d48a" : "#c9b037";
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
         event.kind == EventKind::input_gradient || event.kind == EventKind::weight_gradient ||
         event.kind == EventKind::optimizer;
}

const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::forward:
      return "forward";
    case EventKind::backward:
      return "backward";
    case EventKind::input_gradient:
      return "input gradient";
    case EventKind::weight_gradient:
      return "weight gradient";
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

/// What is said of an event when the pointer rests on it.
std::string title_of(const Event& event, bool chunked, bool rounds) {
  std::string text = name_of(event.kind);
  switch (event.kind) {
    case EventKind::forward:
    case EventKind::backward:
    case EventKind::input_gradient:
    case EventKind::weight_gradient:
      text += fmt::format(" {}", event.micro_batch);
      if (chunked) text += fmt::format(" of chunk {}", event.chunk);
      break;
    case EventKind::send:
      text += fmt::format(" {} {} to stage {}", event.gradients ? "gradients" : "activations",
                          event.micro_batch, event.peer_stage + 1);
      break;
    case EventKind::gradient_sync:
      text += fmt::format(" {}", event.micro_batch);
      break;
    case EventKind::shared_gradient_sync:
    case EventKind::parameter_sync:
    case EventKind::optimizer:
      break;
  }
  if (rounds) text += fmt::format(", round {}", event.round + 1);
  return text + ", " + format_seconds(event.end_s - event.start_s);
}

/// The number of a pass's micro-batch on its box, where that has room for it.
std::string label_of(const Event& event, double left, double width, double top) {
  if (!is_pass(event) || event.kind == EventKind::optimizer) return "";
  const std::string number = fmt::format("{}", event.micro_batch);
  if (width < 4 + 5.6 * static_cast<double>(number.size())) return "";
  return fmt::format(R"(<text class="{}" x="{:.1f}" y="{:.0f}">{}</text>)",
                     is_light(event) ? "number dark" : "number", left + width / 2, top + 13,
                     number);
}

/// Which colour is what, of those that the timeline has.
std::string keys_of(const Timeline& timeline, bool chunked) {
  const auto has = [&](EventKind kind) {
    return std::any_of(timeline.events.begin(), timeline.events.end(),
                       [kind](const Event& event) { return event.kind == kind; });
  };
  std::string text = "<div class=\"keys\">" + key("#3572b0", "forward");
  if (has(EventKind::backward)) text += key("#e08e3c", "backward");
  if (has(EventKind::input_gradient)) {
    text += key("#e08e3c", "input gradients") + key("#c9b037", "weight gradients");
  }
  text += key("#4f9d69", "optimizer") + key("#8c6bb1", "sending") +
          key("#c2528b", "gradients and parameters");
  if (chunked) text += "<span>lighter: every second chunk</span>";
  if (timeline.rounds > 1) text += "<span>lighter: every second round</span>";
  return text + "</div>\n";
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
  const double whole_s = timeline.end_s;
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
  const bool chunked = std::any_of(timeline.events.begin(), timeline.events.end(),
                                   [](const Event& event) { return event.chunk > 0; });
  const double height = kRow * static_cast<double>(drawn.size());
  std::string body = graph.body + axis(height, window);
  for (std::size_t r = 0; r < drawn.size(); ++r) {
    body += stage_number(kRow * static_cast<double>(r) + 15, drawn[r]);
  }
  for (const Event* event : shown) {
    const double top = kRow * static_cast<double>(row_of[static_cast<std::size_t>(event->stage)]);
    const bool pass = is_pass(*event);
    const double left = window.x(event->start_s);
    const double width = std::max(0.3, window.x(event->end_s) - left - 0.2);
    body += fmt::format(
        R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="{:.0f}" fill="{}"><title>{}</title></rect>)",
        left, pass ? top + 2 : top + 3 + kPasses, width, pass ? kPasses : kTransfers,
        colour_of(*event), title_of(*event, chunked, timeline.rounds > 1));
    body += label_of(*event, left, width, top);
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
  for (const auto& samples : timeline.memory) {
    for (const MemorySample& sample : samples) most = std::max(most, sample.bytes);
  }
  // Little memory is drawn by its own measure, without the line that would flatten it.
  double room = 0;
  for (const std::size_t stage : drawn) {
    room = std::max(room, usable_bytes_of_stage(plan, stage));
  }
  const bool limits = room < kMostEmpty * most;
  most = limits ? std::max(most, room) : 1.4 * most;  // The figures stand above.
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
    if (limits) {
      body += fmt::format(
          "<line x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#c0392b\" "
          "stroke-dasharray=\"4 3\"/>",
          kLeft, kLeft + kWidth, limit_y);
    }
    body += fmt::format(
        "<text class=\"figure\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">at most {} of "
        "{}</text>\n",
        kLeft + kWidth - 4, (limits ? limit_y : top + 1) + 15, format_bytes(peak),
        format_bytes(usable));
  }
  return svg(left, height + kAxis, body);
}

/// Timeline, memory and what to know of it.
std::string charts(const Plan& plan, const Timeline& timeline, const char* note) {
  const std::vector<std::size_t> drawn = drawn_stages(plan.stages.size());
  std::vector<std::size_t> row_of(plan.stages.size(), plan.stages.size());
  for (std::size_t r = 0; r < drawn.size(); ++r) row_of[drawn[r]] = r;
  const double whole_s = timeline.end_s;
  if (!(whole_s > 0)) return "";
  const std::vector<TimeWindow> windows = windows_of(timeline, row_of, drawn.size());
  std::string text = "<h2>Timeline</h2>\n";
  const std::string whole = format_seconds(whole_s);
  const std::string all =
      timeline.rounds > 1 ? fmt::format(
                                "{} rounds that follow each other without a flush, {} in "
                                "all, of which each takes {} in the long run",
                                timeline.rounds, whole, format_seconds(timeline.iteration_time_s))
                          : "the whole iteration of " + whole;
  text += "<p class=\"note\">One device per stage, ";
  text += windows.size() == 1 ? all
                              : fmt::format("the first {} and the last {} of {}",
                                            format_seconds(windows.front().end_s),
                                            format_seconds(whole_s - windows.back().begin_s),
                                            timeline.rounds > 1 ? all : whole);
  if (drawn.size() < plan.stages.size()) {
    text += fmt::format("; the first and last {} of {} stages", kMostRows / 2, plan.stages.size());
  }
  const StageGraphDrawing graph = stage_graph_drawing(plan, drawn, kRow);
  text += graph.width > 0 ? ". On the left, which stage hands over to which.</p>\n" : ".</p>\n";
  text += keys_of(timeline, plan.parallel.vp > 1);
  for (const TimeWindow& window : windows) {
    text += passes_chart(timeline, row_of, drawn, window, graph);
  }
  text += "<h2>Memory over time</h2>\n";
  text += fmt::format(
      "<p class=\"note\">Of each stage's device, beside what a plan may use: the dashed line, "
      "where that is not far above.{}</p>\n",
      note);
  for (const TimeWindow& window : windows) {
    text += memory_chart(plan, timeline, window, drawn, graph.width);
  }
  return text;
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
  return charts(plan, timeline,
                plan.parallel.vp == 1 ? ""
                                      : " Where a stage's chunks differ, it is less than in the "
                                        "table above, which counts each as the largest.");
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

std::string timeline_page(const DrawnOrder& drawn, const std::string& schedule) {
  const Plan& plan = drawn.plan;
  const PlanOrder& order = drawn.order;
  return page_head(plan.model + ", " + schedule) +
         fmt::format(
             "<h1>{} on {}</h1>\n<p class=\"note\">{} an iteration by {} in place of the plan's "
             "own "
             "schedule, of which the busiest device idles {}; at most {} in stage {}; {} devices "
             "in "
             "{} stages, planner {}</p>\n",
             escaped(plan.model), escaped(plan.system.name), format_seconds(order.iteration_time_s),
             schedule, format_seconds(order.idle_s), format_bytes(order.peak_memory_bytes),
             order.tightest_stage + 1, devices_used(plan), plan.stages.size(),
             escaped(plan.planner)) +
         charts(plan, drawn.timeline, "") + "</body></html>\n";
}

}  // namespace braid
