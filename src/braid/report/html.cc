#include "braid/report/html.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/plan/names.h"
#include "braid/report/plan_text.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::size_t kMostStages = 64;    ///< Rows of the memory bars and the timeline.
constexpr std::size_t kMostEvents = 6000;  ///< Boxes in the timeline.

constexpr const char* kStyle = R"(<style>
body{font:15px/1.5 system-ui,sans-serif;color:#1c2733;max-width:1100px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.15em;margin-top:2em}
table{border-collapse:collapse}table.wide{width:100%}td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #dde3ea}
td:first-child,th:first-child{text-align:left}
.bar{display:flex;height:26px;border-radius:4px;overflow:hidden;background:#eef1f5}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .4em 0 1em}
.note{color:#5a6b7d}svg{width:100%;background:#f7f9fb;border-radius:4px}svg text{font:11px sans-serif}
</style>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string layers_text(const Stage& stage) {
  std::string text;
  for (const Chunk& chunk : stage.chunks) {
    text += (text.empty() ? "" : " | ") + ranges_text(chunk.layers);
  }
  return text;
}

struct Share {
  const char* name;
  const char* colour;
  double value;
};

std::string legend(const std::vector<Share>& shares, std::string (*format)(double)) {
  std::string text = "<p>";
  for (const Share& share : shares) {
    if (share.value <= 0) continue;
    text += fmt::format(R"(<span class="key" style="background:{}"></span>{} {})", share.colour,
                        share.name, format(share.value));
  }
  return text + "</p>\n";
}

std::string bar(const std::vector<Share>& shares, double whole) {
  std::string text = R"(<div class="bar">)";
  for (const Share& share : shares) {
    if (share.value <= 0 || whole <= 0) continue;
    text += fmt::format(R"(<div style="width:{:.3f}%;background:{}" title="{}"></div>)",
                        100 * share.value / whole, share.colour, share.name);
  }
  return text + "</div>\n";
}

std::vector<Share> time_shares(const Metrics& metrics) {
  return {
      {"compute", "#3572b0", metrics.compute_s}, {"recomputation", "#7fb0d8", metrics.recompute_s},
      {"TP", "#e08e3c", metrics.tp_comm_s},      {"CP", "#c9b037", metrics.cp_comm_s},
      {"EP", "#a0522d", metrics.ep_comm_s},      {"PP", "#8c6bb1", metrics.pp_comm_s},
      {"DP", "#c2528b", metrics.dp_comm_s},      {"host memory", "#777777", metrics.offload_s},
      {"bubble", "#cfd6de", metrics.bubble_s},   {"optimizer", "#4f9d69", metrics.optimizer_s}};
}

std::vector<Share> memory_shares(const MemoryBreakdown& memory) {
  return {{"weights", "#3572b0", memory.weights},
          {"gradients", "#7fb0d8", memory.gradients},
          {"optimizer state", "#4f9d69", memory.optimizer},
          {"activations", "#e08e3c", memory.activations},
          {"working space", "#c9b037", memory.working}};
}

std::string stages_section(const Plan& plan) {
  std::string text = "<h2>Stages</h2>\n";
  const double usable = usable_bytes(plan.system.groups.front().chip);
  text += legend(memory_shares(memory_of_stage(plan, 0)), [](double) { return std::string(); });
  text +=
      "<table class=\"wide\"><tr><th>stage</th><th>layers</th><th>devices</th><th>memory</th><th "
      "style=\"width:40%\">of " +
      format_bytes(usable) + " usable</th></tr>\n";
  for (std::size_t s = 0; s < plan.stages.size() && s < kMostStages; ++s) {
    const Stage& stage = plan.stages[s];
    const MemoryBreakdown memory = memory_of_stage(plan, s);
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}–{} ({})</td><td>{}</td><td>{}</td></tr>\n", s + 1,
        layers_text(stage), stage.devices.front(), stage.devices.back(), stage.devices.size(),
        format_bytes(memory.device_total()), bar(memory_shares(memory), usable));
  }
  text += "</table>\n";
  if (plan.stages.size() > kMostStages) {
    text += fmt::format("<p class=\"note\">The first {} of {} stages are shown.</p>\n", kMostStages,
                        plan.stages.size());
  }
  return text;
}

const char* colour_of(const Event& event) {
  switch (event.kind) {
    case EventKind::forward:
      return event.chunk % 2 == 0 ? "#3572b0" : "#7fb0d8";
    case EventKind::backward:
      return event.chunk % 2 == 0 ? "#e08e3c" : "#f0bd86";
    case EventKind::gradient_sync:
    case EventKind::parameter_sync:
      return "#c2528b";
    case EventKind::optimizer:
      return "#4f9d69";
    case EventKind::send:
      break;
  }
  return "#8c6bb1";
}

std::string timeline_section(const Plan& plan) {
  const Timeline timeline = simulate(plan);
  std::vector<const Event*> shown;
  bool cut = false;
  for (const Event& event : timeline.events) {
    if (event.kind == EventKind::send || static_cast<std::size_t>(event.stage) >= kMostStages)
      continue;
    if (event.kind == EventKind::gradient_sync || event.kind == EventKind::parameter_sync) continue;
    if (shown.size() == kMostEvents) {
      cut = true;
      break;
    }
    shown.push_back(&event);
  }
  double end_s = 0;
  for (const Event* event : shown) end_s = std::max(end_s, event->end_s);
  if (end_s <= 0) return "";
  const std::size_t rows = std::min(plan.stages.size(), kMostStages);
  constexpr double kWidth = 1040;
  constexpr double kRow = 16;
  std::string text = "<h2>Timeline</h2>\n";
  text += fmt::format(
      "<p class=\"note\">Forward blue, backward orange, optimizer green; one device per stage, the "
      "{} {} of {}.</p>\n",
      cut ? "first" : "whole", format_seconds(end_s), format_seconds(timeline.iteration_time_s));
  text +=
      fmt::format(R"(<svg viewBox="0 0 {} {}">)", kWidth + 40, kRow * static_cast<double>(rows));
  text += "\n";
  for (std::size_t s = 0; s < rows; ++s) {
    text += fmt::format("<text x=\"2\" y=\"{}\">{}</text>\n", kRow * static_cast<double>(s) + 12,
                        s + 1);
  }
  for (const Event* event : shown) {
    text += fmt::format(R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="13" fill="{}"/>)",
                        30 + kWidth * event->start_s / end_s, kRow * event->stage + 1,
                        std::max(0.3, kWidth * (event->end_s - event->start_s) / end_s - 0.2),
                        colour_of(*event));
    text += "\n";
  }
  return text + "</svg>\n";
}

std::string provenance_section(const Plan& plan) {
  std::string text = "<h2>What the figures rest on</h2>\n<ul>\n";
  text += fmt::format("<li>times: {} for {}, not measured on this cluster</li>\n",
                      escaped(plan.profile.provenance), escaped(plan.profile.chip));
  const auto add = [&text](const std::vector<Provenance>& entries) {
    for (const Provenance& entry : entries) {
      text += fmt::format("<li>{}{}: {}</li>\n", entry.assumed ? "<b>assumed</b> " : "",
                          escaped(entry.key), escaped(entry.source));
    }
  };
  add(plan.system.provenance);
  for (const DeviceGroup& group : plan.system.groups) add(group.chip.provenance);
  return text + "</ul>\n";
}

std::string row(const std::string& name, const std::string& value) {
  return "<tr><td>" + name + "</td><td>" + escaped(value) + "</td></tr>\n";
}

}  // namespace

std::string html_report(const Plan& plan) {
  const Metrics metrics = measure(plan);
  const Parallelism& p = plan.parallel;
  std::string text = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" +
                     escaped(plan.model) + " on " + escaped(plan.system.name) + "</title>\n" +
                     kStyle + "</head><body>\n";
  text += fmt::format(
      "<h1>{} on {}</h1>\n<p class=\"note\">{} parameters, {} devices, planner {}</p>\n",
      escaped(plan.model), escaped(plan.system.name), format_count(plan.model_parameters),
      p.devices(), escaped(plan.planner));
  text += "<table>\n";
  text += row("iteration", format_seconds(metrics.iteration_time_s));
  text += row(plan.seq_len > 0 ? "tokens per second and GPU" : "samples per second and GPU",
              fmt::format("{:.1f}", metrics.tokens_per_s / static_cast<double>(p.devices())));
  text +=
      row("TFLOP/s per GPU", fmt::format("{:.1f}", metrics.model_flops_per_s_per_device / 1e12));
  text += row("MFU", fmt::format("{:.1f} %", 100 * metrics.mfu));
  text += row("peak memory", format_bytes(metrics.peak_memory_bytes));
  text +=
      row("split", fmt::format("tp {}{} pp {} cp {} ep {} dp {} vp {}", p.tp,
                               p.sequence_parallel ? " (sp)" : "", p.pp, p.cp, p.ep, p.dp, p.vp));
  text += row("micro-batches", fmt::format("{} x {} samples", p.num_micro_batches, p.micro_batch));
  text += row("recomputation, ZeRO", fmt::format("{}, {}", name_of(p.recompute), name_of(p.zero)));
  text += row("schedule", std::string(name_of(p.schedule)));
  const std::string batch = plan.seq_len > 0
                                ? fmt::format("{} x {}", plan.global_batch, plan.seq_len)
                                : fmt::format("{}", plan.global_batch);
  text += row(plan.seq_len > 0 ? "batch, sequence, precision" : "batch, precision",
              fmt::format("{}, {}", batch, name_of(plan.precision)));
  text += "</table>\n<h2>Where the time goes</h2>\n";
  text += bar(time_shares(metrics), metrics.iteration_time_s);
  text += legend(time_shares(metrics), format_seconds);
  text += stages_section(plan) + timeline_section(plan) + provenance_section(plan);
  return text + "</body></html>\n";
}

}  // namespace braid
