#include "braid/report/html.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/plan/names.h"
#include "braid/plan/stage_context.h"
#include "braid/report/devices_text.h"
#include "braid/report/form_text.h"
#include "braid/report/html_timeline.h"
#include "braid/report/plan_text.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::size_t kMostStages = 64;  ///< Rows of memory bars.

constexpr const char* kStyle = R"(<meta name="viewport" content="width=device-width"><style>
:root{color-scheme:light dark;--text:#1c2733;--dim:#5a6b7d;--page:#fff;--box:#eef1f5;--line:#dde3ea}
@media(prefers-color-scheme:dark){:root{--text:#dfe6ee;--dim:#93a3b5;--page:#15191e;--box:#252c35;--line:#333c47}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page);max-width:1100px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.15em;margin:2em 0 .5em}
table{border-collapse:collapse}table.wide{width:100%}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid var(--line);vertical-align:top}
td:first-child,th:first-child,.wide th:nth-child(2),.wide th:last-child{text-align:left}td.layers{text-align:left;max-width:22em;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8em;margin:1.2em 0}
.cards div{background:var(--box);border-radius:6px;padding:.5em .8em}.cards b{display:block;font-size:1.25em}
.cards span{color:var(--dim);font-size:.87em}
.bar{display:flex;height:24px;border-radius:4px;overflow:hidden;background:var(--box)}
.keys{display:flex;flex-wrap:wrap;gap:.1em 1.4em;margin:.5em 0}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
.note{color:var(--dim)}svg{width:100%;background:var(--box);border-radius:4px;display:block}
svg text{font:12px sans-serif;fill:var(--text)}li{overflow-wrap:anywhere}
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
  std::string text = "<div class=\"keys\">";
  for (const Share& share : shares) {
    if (share.value <= 0) continue;
    text += fmt::format(R"(<span><i class="key" style="background:{}"></i>{} {}</span>)",
                        share.colour, share.name, format(share.value));
  }
  return text + "</div>\n";
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
  double usable = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    usable = std::max(usable, usable_bytes_of_stage(plan, s));
  }
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  const bool uniform = is_uniform(plan);
  text += legend(memory_shares(memories.front()), [](double) { return std::string(); });
  text +=
      "<table class=\"wide\"><tr><th>stage</th><th>layers</th><th>devices</th><th>memory</th><th "
      "style=\"width:40%\">of " +
      format_bytes(usable) + " usable</th></tr>\n";
  for (std::size_t s = 0; s < plan.stages.size() && s < kMostStages; ++s) {
    const Stage& stage = plan.stages[s];
    const MemoryBreakdown& memory = memories[s];
    const Parallelism form = form_of(plan, s);
    const std::string own =
        uniform ? ""
                : fmt::format("<br>dp {} tp {}{} cp {}, micro-batches of {}", form.dp, form.tp,
                              form.sequence_parallel ? " (sp)" : "", form.cp, form.micro_batch);
    std::string chips;
    if (plan.system.groups.size() > 1) {
      for (const std::string& chip : stage_chips(plan, s)) {
        chips += (chips.empty() ? " × " : ", ") + escaped(chip);
      }
    }
    text += fmt::format(
        "<tr><td>{}</td><td class=\"layers\">{}</td><td>{} "
        "({}{}){}</td><td>{}</td><td>{}</td></tr>\n",
        s + 1, layers_text(stage),
        uniform ? fmt::format("{}–{}", stage.devices.front(), stage.devices.back())
                : stage_devices_text(plan, s),
        stage.devices.size(), chips, own, format_bytes(memory.device_total()),
        bar(memory_shares(memory), usable));
  }
  text += "</table>\n";
  if (plan.stages.size() > kMostStages) {
    text += fmt::format("<p class=\"note\">The first {} of {} stages are shown.</p>\n", kMostStages,
                        plan.stages.size());
  }
  return text;
}

std::string bounds_section(const Plan& plan, const Metrics& metrics) {
  if (!plan.claims) return "";
  const Claims& claims = *plan.claims;
  const double bound_s =
      std::max({claims.arithmetic_bound_s, claims.memory_bound_s, claims.network_bound_s});
  if (bound_s <= 0 || metrics.iteration_time_s <= 0) return "";
  std::string text = fmt::format(
      "<h2>Lower bound</h2>\n<p class=\"note\">No plan at all for this job on this cluster takes "
      "less than {}; this one takes {}, a gap of {:.1f} %.</p>\n<table class=\"wide\">\n",
      format_seconds(bound_s), format_seconds(metrics.iteration_time_s),
      100 * (1 - bound_s / metrics.iteration_time_s));
  const auto line = [&](const char* name, double time_s) {
    text += fmt::format("<tr><td>{}</td><td>{}</td><td style=\"width:60%\">{}</td></tr>\n", name,
                        format_seconds(time_s),
                        bar({{name, "#4f9d69", time_s}}, metrics.iteration_time_s));
  };
  line("arithmetic at peak", claims.arithmetic_bound_s);
  line("memory bandwidth", claims.memory_bound_s);
  line("network cuts", claims.network_bound_s);
  return text + "</table>\n";
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
  const FormText form = form_text(plan);
  std::string text = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" +
                     escaped(plan.model) + " on " + escaped(plan.system.name) + "</title>\n" +
                     kStyle + "</head><body>\n";
  text += fmt::format(
      "<h1>{} on {}</h1>\n<p class=\"note\">{} parameters, {} devices, planner {}</p>\n",
      escaped(plan.model), escaped(plan.system.name), format_count(plan.model_parameters),
      devices_used(plan), escaped(plan.planner));
  text += "<div class=\"cards\">\n";
  const auto card = [&text](const std::string& value, const char* name) {
    text += "<div><b>" + escaped(value) + "</b><span>" + name + "</span></div>\n";
  };
  card(format_seconds(metrics.iteration_time_s), "an iteration");
  card(fmt::format("{:.5g}", metrics.tokens_per_s / static_cast<double>(devices_used(plan))),
       plan.seq_len > 0 ? "tokens per second and device" : "samples per second and device");
  card(fmt::format("{:.1f}", metrics.model_flops_per_s_per_device / 1e12), "TFLOP/s per device");
  card(fmt::format("{:.1f} %", 100 * metrics.mfu), "model FLOPs utilisation");
  card(format_bytes(metrics.peak_memory_bytes), "peak memory");
  text += "</div>\n<table>\n";
  text += row("split", fmt::format("tp {} pp {} cp {} ep {} dp {} vp {}", form.tp, p.pp, form.cp,
                                   form.ep, form.dp, p.vp));
  text += row("micro-batches", fmt::format("{} × {} {}", form.num_micro_batches, form.micro_batch,
                                           form.micro_batch == "1" ? "sample" : "samples"));
  text += row("recomputation, ZeRO stage", fmt::format("{}, {}", form.recompute, form.zero));
  if (!form.offload.empty()) text += row("kept in host memory", form.offload);
  text += row("schedule", std::string(name_of(p.schedule)));
  const std::string batch = plan.seq_len > 0
                                ? fmt::format("{} × {}", plan.global_batch, plan.seq_len)
                                : fmt::format("{}", plan.global_batch);
  text += row(plan.seq_len > 0 ? "batch, sequence, precision" : "batch, precision",
              fmt::format("{}, {}", batch, name_of(plan.precision)));
  text += "</table>\n<h2>Where the time goes</h2>\n";
  text += bar(time_shares(metrics), metrics.iteration_time_s);
  text += legend(time_shares(metrics), format_seconds);
  text += bounds_section(plan, metrics) + stages_section(plan) + timeline_section(plan) +
          provenance_section(plan);
  return text + "</body></html>\n";
}

}  // namespace braid
