#include "braid/report/html.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/plan/names.h"
#include "braid/plan/stage_context.h"
#include "braid/report/confidence_text.h"
#include "braid/report/devices_text.h"
#include "braid/report/form_text.h"
#include "braid/report/heading.h"
#include "braid/report/html_parts.h"
#include "braid/report/html_timeline.h"
#include "braid/report/plan_text.h"
#include "braid/report/plans_table.h"
#include "braid/report/run_costs_text.h"
#include "braid/report/sharding_text.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr std::size_t kMostStages = 64;  ///< Rows of memory bars.

std::string layers_text(const Stage& stage) {
  std::string text;
  for (const Chunk& chunk : stage.chunks) {
    text += (text.empty() ? "" : " | ") + ranges_text(chunk.layers);
  }
  return text;
}

/// What a row of stages has beside its memory.
std::string stage_cells(const Plan& plan, std::size_t s, bool uniform) {
  const Stage& stage = plan.stages[s];
  const Parallelism form = form_of(plan, s);
  std::string own =
      uniform ? ""
              : fmt::format("<br>DP {}, TP {}{}, CP {}, micro-batches of {}", form.dp, form.tp,
                            form.sequence_parallel ? "sp" : "", form.cp, form.micro_batch);
  const std::string order = own_order_text(stage);
  if (!order.empty()) own += ", " + order;
  std::string chips;
  if (plan.system.groups.size() > 1) {
    for (const std::string& chip : stage_chips(plan, s)) {
      chips += (chips.empty() ? " × " : ", ") + escaped(chip);
    }
  }
  return fmt::format(
      "<td data-name=\"stage\">{}</td><td class=\"layers\" data-name=\"layers\">{}{}</td>"
      "<td data-name=\"devices\">{} ({}{})</td>",
      s + 1, layers_text(stage), own,
      uniform && stage.devices.size() > 1
          ? fmt::format("{}–{}", stage.devices.front(), stage.devices.back())
          : stage_devices_text(plan, s),
      stage.devices.size(), chips);
}

/// Narrow windows show no head: cells have what they need of it.
std::string stages_section(const Plan& plan) {
  std::string text;
  std::vector<double> usable;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    usable.push_back(usable_bytes_of_stage(plan, s));
  }
  const bool alike = std::equal(usable.begin() + 1, usable.end(), usable.begin());
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  const bool uniform = is_uniform(plan);
  // Bars are as long as what is usable, or all longer where a stage does not fit.
  double longest = 1;
  for (std::size_t s = 0; s < memories.size(); ++s) {
    if (usable[s] > 0) longest = std::max(longest, memories[s].device_total() / usable[s]);
  }
  text += legend(memory_shares(memories.front()), [](double) { return std::string(); });
  if (longest > 1) {
    text +=
        "<p class=\"note\">The line in each bar is at what is usable; a stage that goes beyond "
        "it does not fit.</p>\n";
  }
  text +=
      "<div class=\"scroll\">\n<table "
      "class=\"wide stages\"><tr><th>stage</th><th>layers</th><th>devices</th><th>memory</th><th "
      "style=\"width:40%\">of " +
      (alike ? gib_text(usable.front()) + " usable" : "what its devices can use") + "</th></tr>\n";
  for (std::size_t s = 0; s < plan.stages.size() && s < kMostStages; ++s) {
    const MemoryBreakdown& memory = memories[s];
    const std::string of = " of " + gib_text(usable[s]);
    text += fmt::format(
        "<tr>{}<td class=\"number\" data-name=\"memory\" data-of=\"{}\">{}</td><td>{}</td></tr>\n",
        stage_cells(plan, s, uniform), alike ? of : "",
        gib_text(memory.device_total()) + (alike ? "" : of),
        bar(memory_shares(memory), longest * usable[s], usable[s]));
  }
  text += "</table>\n</div>\n";
  if (plan.stages.size() > kMostStages) {
    text += fmt::format("<p class=\"note\">The first {} of {} stages are shown.</p>\n", kMostStages,
                        plan.stages.size());
  }
  return text;
}

/// Empty when all layers are sharded as the model says.
std::string sharding_section(const Plan& plan) {
  const std::vector<std::string> lines = sharding_text(plan);
  if (lines.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& line : lines) text += "<li>" + escaped(line) + "</li>\n";
  return text + "</ul>\n";
}

std::string bounds_section(const Plan& plan, const Metrics& metrics) {
  if (!plan.claims) return "";
  const Claims& claims = *plan.claims;
  const double bound_s =
      std::max({claims.arithmetic_bound_s, claims.memory_bound_s, claims.network_bound_s});
  if (bound_s <= 0 || metrics.iteration_time_s <= 0) return "";
  std::string text = fmt::format(
      "<p class=\"note\">No plan at all for this job on this cluster takes less than {}, {:.1f} % "
      "of this one's time. If nothing else took time, an iteration would take at "
      "least:</p>\n<table "
      "class=\"wide\">\n",
      seconds_text(bound_s), 100 * bound_s / metrics.iteration_time_s);
  const auto line = [&](const char* name, double time_s) {
    text += fmt::format(
        "<tr><td>{}</td><td class=\"number\">{}</td><td style=\"width:60%\">{}</td></tr>\n", name,
        seconds_text(time_s), bar({{name, "#4f9d69", time_s}}, metrics.iteration_time_s));
  };
  line("arithmetic at peak", claims.arithmetic_bound_s);
  line("memory traffic", claims.memory_bound_s);
  line("network traffic", claims.network_bound_s);
  return text + "</table>\n";
}

/// Those columns whose cells are not alike in all rows below the titles; all, where none is.
std::vector<std::size_t> telling_columns(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < cells.front().size(); ++c) {
    const bool alike = std::all_of(cells.begin() + 1, cells.end(),
                                   [&](const auto& row) { return row[c] == cells[1][c]; });
    if (!alike) columns.push_back(c);
  }
  if (!columns.empty()) return columns;
  columns.resize(cells.front().size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  return columns;
}

/// Plans below the titles of their columns, the first of them this page's; what is alike in all of
/// them is said once, so that most windows are wide enough for the rest.
std::string plans_part(const std::vector<std::vector<std::string>>& cells) {
  const std::vector<std::size_t> columns = telling_columns(cells);
  std::string table = "<table class=\"wide figures\">\n";
  for (std::size_t r = 0; r < cells.size(); ++r) {
    table += r == 1 ? "<tr class=\"best\">" : "<tr>";
    for (const std::size_t c : columns) {
      const bool differs = r > 1 && cells[r][c] != cells[1][c];
      const std::string cell = escaped(cells[r][c]);
      table += fmt::format("<{0}>{1}</{0}>", r == 0 ? "th" : "td",
                           differs ? "<b>" + cell + "</b>" : cell);
    }
    table += "</tr>\n";
  }
  std::string alike;
  for (std::size_t c = 0; c < cells.front().size(); ++c) {
    if (std::binary_search(columns.begin(), columns.end(), c)) continue;
    alike += (alike.empty() ? "" : ", ") + cells[0][c] + " " + cells[1][c];
  }
  return scrolled(table + "</table>\n") +
         (alike.empty() ? "" : "<p class=\"note\">All: " + escaped(alike) + ".</p>\n");
}

/// The plan among those that were found with it, and what is known of it beside them; a cell that
/// differs from the plan's is bold. Of a plan alone the summary has all figures.
std::string alternatives_section(const Plan& plan, const Metrics& metrics,
                                 const Alternatives& alternatives) {
  const Candidate own{plan, metrics};
  const PlanRow own_row{.candidate = &own};
  const bool others = alternatives.rows.size() > 1;
  std::string text;
  if (others) {
    std::vector<std::vector<std::string>> cells = alternatives.rows;
    cells.insert(cells.begin(), alternatives.titles);
    text = plans_part(cells) +
           "<p class=\"note\">First the plan of this page, then what was found with it; "
           "bold where it differs.</p>\n";
  } else {
    text =
        "<p class=\"note\">braid plan --top 5 -o keeps other plans in the file, and a table of "
        "them is shown here.</p>\n";
  }
  const std::string said = others ? alternatives.marks : marks_legend({&own_row, 1});
  if (!said.empty()) text += "<p class=\"note\">" + escaped(said) + "</p>\n";
  for (const std::string& line : {alternatives.why, alternatives.proof}) {
    if (!line.empty()) text += "<p>" + escaped(line) + "</p>\n";
  }
  return text;
}

std::string provenance_section(const Plan& plan) {
  std::string text = "<ul>\n";
  text += fmt::format("<li>times: {} for {}, not measured on this cluster</li>\n",
                      escaped(plan.profile.provenance), escaped(plan.profile.chip));
  const auto add = [&text](const std::string& of, const std::vector<Provenance>& entries) {
    for (const Provenance& entry : entries) {
      text += fmt::format("<li>{}{}: {}: {}</li>\n", entry.assumed ? "<b>assumed</b> " : "",
                          escaped(of), escaped(entry.key), escaped(entry.source));
    }
  };
  add(plan.system.name, plan.system.provenance);
  for (const DeviceGroup& group : plan.system.groups) add(group.chip.name, group.chip.provenance);
  return text + "</ul>\n";
}

/// Empty where the times are those of a profile.
std::string confidence_section(const Plan& plan, const Metrics& metrics) {
  const std::vector<std::string> lines = confidence_lines({plan, metrics});
  if (lines.empty()) return "";
  std::string text = "<p class=\"note\">Four of five measurements lie within:</p>\n<ul>\n";
  for (const std::string& line : lines) text += "<li>" + escaped(line) + "</li>\n";
  return text + "</ul>\n";
}

std::string row(const std::string& name, const std::string& value) {
  return "<tr><td>" + name + "</td><td>" + escaped(value) + "</td></tr>\n";
}

/// Empty where no run was asked for.
std::string run_section(const std::optional<RunCosts>& run) {
  if (!run) return "";
  std::string text = "<table class=\"facts\">\n";
  for (const auto& [name, value] : known_run_figures(*run)) text += row(name, value);
  text += "</table>\n<ul>\n";
  for (const std::string& line : run->assumptions) text += "<li>" + escaped(line) + "</li>\n";
  return section("A run of " + format_count(run->tokens) + " " + run->unit, text + "</ul>\n");
}

/// The figures that people look for first, as the terminal prints them, and the form of the plan.
std::string summary(const Plan& plan, const Metrics& metrics) {
  const Parallelism& p = plan.parallel;
  const FormText form = form_text(plan);
  std::string text = "<div class=\"cards\">\n";
  const auto card = [&text](const std::string& value, const char* name) {
    text += "<div><b>" + escaped(value) + "</b><span>" + name + "</span></div>\n";
  };
  card(seconds_text(metrics.iteration_time_s), "an iteration");
  card(fmt::format("{:.0f}", metrics.tokens_per_s / static_cast<double>(devices_used(plan))),
       plan.seq_len > 0 ? "tokens a second per device" : "samples a second per device");
  if (knows_arithmetic(plan.system)) {
    card(fmt::format("{:.1f}", metrics.model_flops_per_s_per_device / 1e12), "TFLOP/s per device");
    card(fmt::format("{:.1f} %", 100 * metrics.mfu), "model FLOPs utilisation");
  }
  card(gib_text(metrics.peak_memory_bytes), "peak memory");
  text += "</div>\n<table class=\"facts\">\n";
  text += row("parallelism", fmt::format("TP {}, PP {}, CP {}, EP {}, DP {}, VP {}", form.tp, p.pp,
                                         form.cp, form.ep, form.dp, p.vp));
  text += row("micro-batches",
              fmt::format("{} × {} {}{}", form.num_micro_batches, form.micro_batch,
                          form.micro_batch == "1" ? "sample" : "samples",
                          form.dp == "1" ? "" : " in each of " + form.dp + " replicas"));
  text += row("recomputation, ZeRO stage", fmt::format("{}, {}", form.recompute, form.zero));
  if (!form.offload.empty()) {
    double most_bytes = 0;
    for (const MemoryBreakdown& memory : memory_of_stages(plan)) {
      most_bytes = std::max(most_bytes, memory.host);
    }
    text += row("kept in host memory",
                offload_words(form.offload) + ", at most " + gib_text(most_bytes) + " a device");
  }
  text += row("schedule", schedule_text(plan));
  const std::string batch = plan.seq_len > 0
                                ? fmt::format("{} × {}", plan.global_batch, plan.seq_len)
                                : fmt::format("{}", plan.global_batch);
  text += row(plan.seq_len > 0 ? "batch, sequence, precision" : "batch, precision",
              fmt::format("{}, {}", batch, name_of(plan.precision)));
  return text + "</table>\n";
}

}  // namespace

std::string html_report(const Plan& plan, const Alternatives& alternatives,
                        const std::optional<RunCosts>& run) {
  const Metrics metrics = measure(plan);
  const std::string unused = unused_text(plan);
  std::string text = page_head(plan.model + " on " + plan.system.name);
  text += fmt::format(
      "<h1>{} on {}</h1>\n<p class=\"note\">{} parameters, {} devices{}, {}{}</p>\n",
      escaped(plan.model), escaped(plan.system.name), format_count(plan.model_parameters),
      devices_used(plan), plan.trainer.name.empty() ? "" : ", run by " + escaped(plan.trainer.name),
      escaped(planner_words(plan)), unused.empty() ? "" : "; " + escaped(unused));
  text += notes_part(alternatives.notes);
  text += summary(plan, metrics);
  text += section("Plans", alternatives_section(plan, metrics, alternatives));
  text += section(time_heading(plan, metrics),
                  bar(time_shares(metrics), metrics.iteration_time_s) +
                      legend(time_shares(metrics), seconds_text, metrics.iteration_time_s));
  text += section("How sure that is", confidence_section(plan, metrics));
  text += run_section(run);
  text += section("Lower bound", bounds_section(plan, metrics));
  text += section("Stages", stages_section(plan));
  text += section("Automatic sharding", sharding_section(plan));
  text += timeline_section(plan);
  text += section("Sources and assumptions", provenance_section(plan));
  return text + page_end();
}

}  // namespace braid
