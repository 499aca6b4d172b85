#include "braid/cli/served_rows_command.h"

#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/folder.h"
#include "braid/base/json.h"
#include "braid/cli/verbs.h"
#include "braid/report/table.h"
#include "braid/serve/engine_fit.h"

namespace braid {
namespace {

using Groups = std::map<std::vector<std::string>, std::vector<std::size_t>>;

std::vector<std::string> error_cells(const ServedErrors& errors) {
  if (errors.predicted == 0) return {"", "", "", ""};
  return {fmt::format("{:.1f}%", 100 * errors.tpot_mean),
          fmt::format("{:.1f}%", 100 * errors.tpot_median),
          fmt::format("{:.1f}%", 100 * errors.ttft_mean),
          fmt::format("{:.1f}%", 100 * errors.ttft_median)};
}

std::vector<std::string> error_row(std::vector<std::string> names, const ServedErrors& errors) {
  names.push_back(std::to_string(errors.rows));
  names.push_back(std::to_string(errors.predicted));
  for (std::string& cell : error_cells(errors)) names.push_back(std::move(cell));
  return names;
}

Groups groups_of(const std::vector<ServedRow>& rows) {
  Groups groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ServedRow& row = rows[i];
    groups[{row.engine, row.disaggregated ? "disaggregated" : "aggregated", row.system}].push_back(
        i);
  }
  return groups;
}

Json errors_json(const ServedErrors& errors) {
  return {{"rows", errors.rows},           {"predicted", errors.predicted},
          {"tpot_mape", errors.tpot_mean}, {"tpot_median_ape", errors.tpot_median},
          {"ttft_mape", errors.ttft_mean}, {"ttft_median_ape", errors.ttft_median}};
}

std::vector<ServedPrediction> predictions_of(const ServedRuns& runs) {
  std::vector<ServedPrediction> predictions;
  predictions.reserve(runs.rows().size());
  for (std::size_t i = 0; i < runs.rows().size(); ++i) predictions.push_back(runs.predict(i));
  return predictions;
}

void print_reasons(const std::vector<ServedPrediction>& predictions) {
  std::map<std::string, std::size_t> reasons;
  for (const ServedPrediction& prediction : predictions) {
    if (!prediction.reason.empty()) ++reasons[prediction.reason];
  }
  if (!reasons.empty()) fmt::print("\nNot predicted:\n");
  for (const auto& [reason, count] : reasons) fmt::print("{:>6}  {}\n", count, reason);
}

ServedRuns runs_of(const std::string& text, const std::string& file) {
  std::vector<ServedRow> rows = parse_served_rows(text, file);
  if (rows.empty()) throw Error(Where{file, 0, ""}, "there are no runs in the file");
  return ServedRuns(std::move(rows));
}

/// The catalogue's file of an engine with other figures.
std::string engine_text(const std::string& name, const EngineFigures& figures,
                        const std::string& source) {
  const std::string text = engine_file_text(name);
  return text.substr(0, text.find("figures:\n")) + figures_text(figures, source);
}

void print_left_out(const ServedRuns& runs, int engine, const std::vector<std::size_t>& rows,
                    std::vector<std::vector<std::string>>& table) {
  std::map<std::string, std::vector<std::size_t>> systems;
  for (const std::size_t row : rows) systems[runs.rows()[row].system].push_back(row);
  for (const auto& [system, own] : systems) {
    std::vector<std::size_t> others;
    for (const std::size_t row : rows) {
      if (runs.rows()[row].system != system) others.push_back(row);
    }
    if (others.empty()) continue;
    const EngineFigures figures = fitted_figures(runs, others);
    std::vector<ServedPrediction> predictions(runs.rows().size());
    for (const std::size_t row : own) predictions[row] = runs.predict(row, &figures);
    table.push_back(error_row({engine_catalogue()[static_cast<std::size_t>(engine)].name, system},
                              served_errors(runs.rows(), predictions, own)));
  }
}

}  // namespace

int validate_serving(const std::string& text, const std::string& file, bool json) {
  const ServedRuns runs = runs_of(text, file);
  const std::vector<ServedPrediction> predictions = predictions_of(runs);
  std::vector<std::size_t> every(runs.rows().size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  const ServedErrors all = served_errors(runs.rows(), predictions, every);
  std::vector<std::vector<std::string>> table = {{"engine", "mode", "system", "runs", "predicted",
                                                  "TPOT mean", "median", "TTFT mean", "median"}};
  Json list = Json::array();
  for (const auto& [names, rows] : groups_of(runs.rows())) {
    const ServedErrors errors = served_errors(runs.rows(), predictions, rows);
    table.push_back(error_row(names, errors));
    Json entry = errors_json(errors);
    entry["engine"] = names[0];
    entry["mode"] = names[1];
    entry["system"] = names[2];
    list.push_back(std::move(entry));
  }
  if (json) {
    Json rows = Json::array();
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      Json row = {{"line", runs.rows()[i].line}};
      if (predictions[i].reason.empty()) {
        row["ttft_s"] = predictions[i].times.ttft_s;
        row["tpot_s"] = predictions[i].times.tpot_s;
      } else {
        row["not_predicted"] = predictions[i].reason;
      }
      rows.push_back(std::move(row));
    }
    fmt::print("{}", to_text(Json{{"all", errors_json(all)},
                                  {"groups", std::move(list)},
                                  {"rows", std::move(rows)}}));
    return kFound;
  }
  table.push_back(error_row({"all", "", ""}, all));
  fmt::print("{}\nErrors are of |predicted / measured - 1|.\n", text_table(table));
  print_reasons(predictions);
  return kFound;
}

int calibrate_serving(const std::string& text, const std::string& file, const std::string& out,
                      bool cross_validate) {
  const ServedRuns runs = runs_of(text, file);
  if (!out.empty()) make_folder(out, "name another folder with --out");
  std::map<int, std::vector<std::size_t>> engines;
  for (std::size_t i = 0; i < runs.rows().size(); ++i) {
    if (runs.engine_of(i) >= 0) engines[runs.engine_of(i)].push_back(i);
  }
  std::vector<std::vector<std::string>> table = {
      {"engine", "left out", "runs", "predicted", "TPOT mean", "median", "TTFT mean", "median"}};
  for (const auto& [engine, rows] : engines) {
    const std::string& name = engine_catalogue()[static_cast<std::size_t>(engine)].name;
    const EngineFigures figures = fitted_figures(runs, rows);
    const std::string written =
        engine_text(name, figures, "fitted to measured runs (docs/serving.md)");
    if (out.empty()) {
      fmt::print("{}\n", written);
    } else {
      write_file(fmt::format("{}/{}.yaml", out, name), written);
    }
    if (cross_validate) print_left_out(runs, engine, rows, table);
  }
  if (cross_validate) fmt::print("{}", text_table(table));
  return kFound;
}

}  // namespace braid
