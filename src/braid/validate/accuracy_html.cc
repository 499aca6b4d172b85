#include "braid/validate/accuracy_html.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantity.h"
#include "braid/report/html_chart.h"
#include "braid/report/html_parts.h"
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

/// A group's mark, which the page's script draws.
std::string key(std::size_t group) {
  return fmt::format(R"(<i class="key" data-group="{}"></i>)", group);
}

std::string group_name(const AccuracyGroup& group) {
  return fmt::format("{}", fmt::join(group.values, ", "));
}

Json group_names(const std::vector<AccuracyGroup>& groups) {
  Json names = Json::array();
  for (const AccuracyGroup& group : groups) names.push_back(group_name(group));
  return names;
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
    text += group_row(key(g) + escaped(group_name(groups[g])), groups[g].accuracy);
  }
  if (groups.size() > 1) text += group_row("<b>all</b>", all);
  return text + "</table>\n</div>\n<p class=\"note\">" + escaped(accuracy_legend()) + "</p>\n";
}

std::string run_label(const MeasuredRun& run, const Prediction& prediction) {
  return fmt::format("line {}: {}, {} × {}, predicted {}, measured {} ({})", run.line, run.model,
                     run.devices, run.hardware, seconds_text(prediction.metrics.iteration_time_s),
                     seconds_text(prediction.measured_s), signed_percent(prediction.ratio() - 1));
}

std::string scatter_section(const std::vector<MeasuredRun>& runs,
                            const std::vector<Prediction>& predictions,
                            const std::vector<AccuracyGroup>& groups) {
  Json points = Json::array();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::size_t i : groups[g].runs) {
      const Prediction& prediction = predictions[i];
      if (!prediction.predicted()) continue;
      points.push_back({{"x", {prediction.measured_s}},
                        {"y", prediction.metrics.iteration_time_s},
                        {"group", g},
                        {"text", run_label(runs[i], prediction)}});
    }
  }
  if (points.empty()) return "";
  const std::string title = "Predicted against measured";
  Json data = Json::object();
  data["title"] = title;
  data["x"] = Json::array({{{"name", "measured iteration"}, {"unit", "s"}}});
  data["y"] = {{"name", "predicted iteration"}, {"unit", "s"}};
  data["log"] = data["square"] = true;
  data["groups"] = group_names(groups);
  data["points"] = std::move(points);
  return section(
      title,
      "<p class=\"note\">One mark a run, as in the table; on the line where the "
      "prediction is right, a fifth off at the dashed lines. A group below the plot, when "
      "pressed, is shown alone. Below, errors by what runs differ in: bars are "
      "the median and the range of the middle nine tenths.</p>\n" +
          chart("scatter", data));
}

/// What errors are shown by: the runs that are predicted, each with its group.
struct ErrorPlots {
  const std::vector<MeasuredRun>& runs;
  const std::vector<Prediction>& predictions;
  const std::vector<AccuracyGroup>& groups;
};

/// Errors by a number or a name of each run; 0 and "" are left out.
template <typename Value, typename Of>
std::string errors_by(const char* heading, const ErrorPlots& plots, Of of) {
  std::map<Value, Json> by_value;
  for (std::size_t g = 0; g < plots.groups.size(); ++g) {
    for (const std::size_t i : plots.groups[g].runs) {
      const Prediction& prediction = plots.predictions[i];
      const Value value = prediction.predicted() ? of(i) : Value{};
      if (value == Value{}) continue;
      by_value[value].push_back(
          Json::array({prediction.ratio() - 1, g, run_label(plots.runs[i], prediction)}));
    }
  }
  std::vector<std::size_t> sizes;
  sizes.reserve(by_value.size());
  for (const auto& [value, errors] : by_value) sizes.push_back(errors.size());
  if (sizes.empty()) return "";
  std::sort(sizes.rbegin(), sizes.rend());
  const std::size_t least = sizes[std::min(kMostValues, sizes.size()) - 1];
  std::size_t spare = kMostValues;
  std::size_t left_out = 0;
  Json columns = Json::array();
  for (auto& [value, errors] : by_value) {
    if (errors.size() < least || spare == 0) {
      left_out += errors.size();
      continue;
    }
    --spare;
    columns.push_back({{"name", fmt::format("{}", value)}, {"errors", std::move(errors)}});
  }
  const std::string title = std::string("Error by ") + heading;
  std::string text = chart("strip", {{"title", title}, {"columns", std::move(columns)}});
  if (left_out > 0) {
    text +=
        fmt::format("<p class=\"note\">{} runs with rarer values are not shown.</p>\n", left_out);
  }
  return section(title, text);
}

std::string split_text(const Parallelism& p) {
  std::string text = fmt::format("tp {} pp {} dp {}", p.tp, p.pp, p.dp);
  if (p.cp > 1) text += fmt::format(" cp {}", p.cp);
  if (p.ep > 1) text += fmt::format(" ep {}{}", p.ep, p.whole_experts ? " whole" : "");
  if (p.vp > 1) text += fmt::format(" vp {}", p.vp);
  return text + fmt::format("<br>micro-batches {} × {}", p.num_micro_batches, p.micro_batch);
}

std::string worst_section(const std::vector<MeasuredRun>& runs,
                          const std::vector<Prediction>& predictions) {
  const std::vector<std::size_t> order = furthest_off(predictions, kWorst);
  if (order.empty()) return "";
  std::string text =
      "<h2>The worst runs</h2>\n"
      "<div class=\"scroll\">\n<table "
      "class=\"wide\"><tr><th>line</th><th>run</th><th>parallelism</th><th>measured</th>"
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
        split_text(prediction.parallel), seconds_text(prediction.measured_s),
        seconds_text(metrics.iteration_time_s), seconds_text(prediction.bound_s),
        signed_percent(prediction.ratio() - 1),
        bar(time_shares(metrics), metrics.iteration_time_s));
    text += legend(time_shares(metrics), seconds_text);
    text += "</td></tr>\n";
  }
  text += "</table>\n</div>\n<h2>Memory of the worst runs</h2>\n";
  text +=
      "<div class=\"scroll\">\n<table class=\"wide\"><tr><th>line</th><th>fullest "
      "stage</th><th>predicted</th>"
      "<th>measured</th><th style=\"width:55%\">made of</th></tr>\n";
  for (const std::size_t i : order) {
    const Prediction& prediction = predictions[i];
    const std::vector<Share> shares = memory_shares(prediction.metrics.tightest_memory);
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{}</td></tr>\n", runs[i].line,
        prediction.metrics.tightest_stage + 1, gib_text(prediction.metrics.peak_memory_bytes),
        prediction.measured_memory_bytes > 0 ? gib_text(prediction.measured_memory_bytes) : "",
        bar(shares, prediction.metrics.tightest_memory.device_total()), legend(shares, gib_text));
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
  const ErrorPlots plots{runs, predictions, groups};
  const auto parallel = [&](std::size_t i) -> const Parallelism& {
    return predictions[i].parallel;
  };
  text +=
      errors_by<std::string>("hardware", plots, [&](std::size_t i) { return predictions[i].chip; });
  text +=
      errors_by<int>("tensor parallelism", plots, [&](std::size_t i) { return parallel(i).tp; });
  text += errors_by<int>("pipeline stages", plots, [&](std::size_t i) { return parallel(i).pp; });
  text +=
      errors_by<int>("micro-batch", plots, [&](std::size_t i) { return parallel(i).micro_batch; });
  text += errors_by<std::int64_t>("sequence length", plots,
                                  [&](std::size_t i) { return runs[i].seq_len; });
  text += worst_section(runs, predictions) + unpredicted_section(runs, predictions);
  return text + page_end();
}

}  // namespace braid
