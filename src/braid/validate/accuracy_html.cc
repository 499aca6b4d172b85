#include "braid/validate/accuracy_html.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantity.h"
#include "braid/report/html_parts.h"
#include "braid/validate/accuracy_plots.h"
#include "braid/validate/accuracy_text.h"

namespace braid {
namespace {

constexpr std::size_t kWorst = 10;
/// Values of a column that are drawn; of more, those with the most runs.
constexpr std::size_t kMostValues = 14;

std::string cells(const std::vector<std::string>& texts) {
  std::string row = "<tr>";
  for (const std::string& text : texts) row += "<td>" + text + "</td>";
  return row + "</tr>\n";
}

std::string key(std::size_t group) {
  return fmt::format(R"(<i class="key" style="background:{}"></i>)", group_colour(group));
}

std::string group_row(const std::string& name, const Accuracy& accuracy) {
  std::vector<std::string> row = {name, fmt::format("{} of {}", accuracy.predicted, accuracy.runs)};
  for (std::string& figure : accuracy_figures(accuracy)) row.push_back(std::move(figure));
  return cells(row);
}

std::string groups_section(const std::vector<AccuracyGroup>& groups, const Accuracy& all) {
  std::string text =
      "<div class=\"scroll\">\n<table class=\"wide figures\"><tr><th>group</th><th>predicted</th>";
  for (const std::string& head : accuracy_heads()) text += "<th>" + head + "</th>";
  text += "</tr>\n";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    text += group_row(key(g) + escaped(fmt::format("{}", fmt::join(groups[g].values, ", "))),
                      groups[g].accuracy);
  }
  if (groups.size() > 1) text += group_row("<b>all</b>", all);
  return text + "</table>\n</div>\n<p class=\"note\">" + escaped(accuracy_legend()) + "</p>\n";
}

std::string run_label(const MeasuredRun& run, const Prediction& prediction) {
  return fmt::format("line {}: {}, {} × {}, predicted {}, measured {} ({})", run.line, run.model,
                     run.devices, run.hardware, format_seconds(prediction.metrics.iteration_time_s),
                     format_seconds(prediction.measured_s), signed_percent(prediction.ratio() - 1));
}

std::string scatter_section(const std::vector<MeasuredRun>& runs,
                            const std::vector<Prediction>& predictions,
                            const std::vector<AccuracyGroup>& groups) {
  std::vector<PlottedRun> plotted;
  plotted.reserve(runs.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::size_t i : groups[g].runs) {
      const Prediction& prediction = predictions[i];
      if (!prediction.predicted()) continue;
      plotted.push_back({prediction.metrics.iteration_time_s, prediction.measured_s, g,
                         run_label(runs[i], prediction)});
    }
  }
  if (plotted.empty()) return "";
  return "<h2>Predicted against measured</h2>\n" + scrolled(scatter_plot(plotted)) +
         "<p class=\"note\">One dot a run, coloured as in the table; a fifth off at the dashed "
         "lines.</p>\n";
}

/// Errors by a number or a name of each run; 0 and "" are left out.
template <typename Value, typename Of>
std::string errors_by(const char* heading, const std::vector<Prediction>& predictions, Of of) {
  std::map<Value, std::vector<double>> by_value;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!predictions[i].predicted()) continue;
    const Value value = of(i);
    if (value != Value{}) by_value[value].push_back(predictions[i].ratio() - 1);
  }
  std::vector<std::pair<Value, std::vector<double>>> kept(by_value.begin(), by_value.end());
  std::size_t left_out = 0;
  if (kept.size() > kMostValues) {
    std::vector<std::size_t> sizes;
    sizes.reserve(kept.size());
    for (const auto& [value, errors] : kept) sizes.push_back(errors.size());
    std::sort(sizes.rbegin(), sizes.rend());
    const std::size_t least = sizes[kMostValues - 1];
    std::size_t spare = kMostValues;
    std::vector<std::pair<Value, std::vector<double>>> fewer;
    for (auto& entry : kept) {
      if (entry.second.size() < least || spare == 0) {
        left_out += entry.second.size();
        continue;
      }
      --spare;
      fewer.push_back(std::move(entry));
    }
    kept = std::move(fewer);
  }
  if (kept.empty()) return "";
  std::vector<ErrorColumn> columns;
  columns.reserve(kept.size());
  for (auto& [value, errors] : kept) {
    columns.push_back({fmt::format("{}", value), std::move(errors)});
  }
  std::string text =
      std::string("<h2>Error by ") + heading + "</h2>\n" + scrolled(error_plot(columns));
  if (left_out > 0) {
    text +=
        fmt::format("<p class=\"note\">{} runs with rarer values are not shown.</p>\n", left_out);
  }
  return text;
}

std::string split_text(const Parallelism& p) {
  std::string text = fmt::format("tp {} pp {} dp {}", p.tp, p.pp, p.dp);
  if (p.cp > 1) text += fmt::format(" cp {}", p.cp);
  if (p.ep > 1) text += fmt::format(" ep {}{}", p.ep, p.whole_experts ? " whole" : "");
  if (p.vp > 1) text += fmt::format(" vp {}", p.vp);
  return text + fmt::format("<br>{} × {}", p.num_micro_batches, p.micro_batch);
}

std::string worst_section(const std::vector<MeasuredRun>& runs,
                          const std::vector<Prediction>& predictions) {
  const std::vector<std::size_t> order = furthest_off(predictions, kWorst);
  if (order.empty()) return "";
  std::string text = "<h2>The worst</h2>\n";
  text +=
      "<div class=\"scroll\">\n<table "
      "class=\"wide\"><tr><th>line</th><th>run</th><th>split</th><th>measured</th>"
      "<th>predicted</th><th>bound</th><th>error</th><th style=\"width:32%\">predicted time</th>"
      "</tr>\n";
  for (const std::size_t i : order) {
    const MeasuredRun& run = runs[i];
    const Prediction& prediction = predictions[i];
    const Metrics& metrics = prediction.metrics;
    text += fmt::format(
        "<tr><td>{}</td><td class=\"layers\">{}<br>{} × {}<br><span class=\"note\">{}</span></td>",
        run.line, escaped(run.model), run.devices, escaped(prediction.chip), escaped(run.dataset));
    text += fmt::format(
        "<td class=\"layers\">{}</td><td>{}</td><td>{}</td><td>{}</td><td "
        "style=\"white-space:nowrap\">{}</td><td>{}",
        split_text(prediction.parallel), format_seconds(prediction.measured_s),
        format_seconds(metrics.iteration_time_s), format_seconds(prediction.bound_s),
        signed_percent(prediction.ratio() - 1),
        bar(time_shares(metrics), metrics.iteration_time_s));
    text += legend(time_shares(metrics), format_seconds);
    text += "</td></tr>\n";
  }
  text += "</table>\n</div>\n<h2>Memory of the worst</h2>\n";
  text +=
      "<div class=\"scroll\">\n<table class=\"wide\"><tr><th>line</th><th>fullest "
      "stage</th><th>predicted</th>"
      "<th>measured</th><th style=\"width:55%\">made of</th></tr>\n";
  for (const std::size_t i : order) {
    const Prediction& prediction = predictions[i];
    const std::vector<Share> shares = memory_shares(prediction.metrics.tightest_memory);
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{}</td></tr>\n", runs[i].line,
        prediction.metrics.tightest_stage + 1, format_bytes(prediction.metrics.peak_memory_bytes),
        prediction.measured_memory_bytes > 0 ? format_bytes(prediction.measured_memory_bytes) : "",
        bar(shares, prediction.metrics.tightest_memory.device_total()),
        legend(shares, format_bytes));
  }
  return text + "</table>\n</div>\n";
}

std::string unpredicted_section(const std::vector<MeasuredRun>& runs,
                                const std::vector<Prediction>& predictions) {
  const auto reasons = unpredicted_lines(runs, predictions);
  if (reasons.empty()) return "";
  std::string text =
      "<h2>Not predicted</h2>\n<table class=\"wide\"><tr><th>runs</th><th>reason</th>"
      "<th>lines</th></tr>\n";
  for (const auto& [reason, lines] : reasons) {
    text += fmt::format("<tr><td>{}</td><td class=\"layers\">{}</td><td>{}</td></tr>\n",
                        lines.size(), escaped(reason), line_ranges(lines));
  }
  return text + "</table>\n";
}

}  // namespace

std::string accuracy_page(const std::vector<MeasuredRun>& runs,
                          const std::vector<Prediction>& predictions,
                          const std::vector<std::string>& columns,
                          const std::vector<AccuracyGroup>& groups) {
  std::vector<std::size_t> every(runs.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  const Accuracy all = accuracy_of(runs, predictions, every);
  std::string text = page_head("Predictions against measured runs");
  text += "<h1>Predictions against measured runs</h1>\n<p class=\"note\">" +
          escaped(runs.empty() ? "" : runs.front().file) + ", grouped by " +
          escaped(fmt::format("{}", fmt::join(columns, ", "))) + "</p>\n<div class=\"cards\">\n";
  const auto card = [&text](const std::string& value, const char* name) {
    text += "<div><b>" + value + "</b><span>" + name + "</span></div>\n";
  };
  card(fmt::format("{} of {}", all.predicted, all.runs), "runs predicted");
  if (all.predicted > 0) {
    card(percent(all.mape), "mean error");
    card(percent(all.median_ape), "median error");
    card(signed_percent(all.bias), "bias");
    card(percent(all.constant_efficiency_mape), "one constant, fitted");
    card(fmt::format("{}", all.predicted_below_bound), "below the physical bound");
  }
  text += "</div>\n" + groups_section(groups, all);
  text += scatter_section(runs, predictions, groups);
  text += errors_by<std::string>("hardware", predictions,
                                 [&](std::size_t i) { return predictions[i].chip; });
  text += errors_by<std::int64_t>("tensor parallelism", predictions, [&](std::size_t i) {
    return std::int64_t{predictions[i].parallel.tp};
  });
  text += errors_by<std::int64_t>("pipeline stages", predictions, [&](std::size_t i) {
    return std::int64_t{predictions[i].parallel.pp};
  });
  text += errors_by<std::int64_t>("micro-batch", predictions, [&](std::size_t i) {
    return std::int64_t{predictions[i].parallel.micro_batch};
  });
  text += errors_by<std::int64_t>("sequence length", predictions,
                                  [&](std::size_t i) { return runs[i].seq_len; });
  text += worst_section(runs, predictions) + unpredicted_section(runs, predictions);
  return text + "</body></html>\n";
}

}  // namespace braid
