#include "braid/cli/served_rows_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/folder.h"
#include "braid/base/json.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/report/table.h"
#include "braid/serve/engine_fit.h"
#include "braid/trust/serving_interval.h"

namespace braid {
namespace {

using Groups = std::map<std::vector<std::string>, std::vector<std::size_t>>;

std::vector<std::string> error_cells(const ServedErrors& errors) {
  if (errors.predicted == 0) return {"", "", "", ""};
  return {fmt::format("{:.1f} %", 100 * errors.tpot_mean),
          fmt::format("{:.1f} %", 100 * errors.tpot_median),
          fmt::format("{:.1f} %", 100 * errors.ttft_mean),
          fmt::format("{:.1f} %", 100 * errors.ttft_median)};
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

std::vector<std::size_t> every_row(const ServedRuns& runs) {
  std::vector<std::size_t> every(runs.rows().size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  return every;
}

void print_errors(const ServedRuns& runs, const std::vector<ServedPrediction>& predictions) {
  std::vector<std::vector<std::string>> table = {{"engine", "mode", "system", "runs", "predicted",
                                                  "TPOT mean", "median", "TTFT mean", "median"}};
  for (const auto& [names, rows] : groups_of(runs.rows())) {
    table.push_back(error_row(names, served_errors(runs.rows(), predictions, rows)));
  }
  table.push_back(
      error_row({"all", "", ""}, served_errors(runs.rows(), predictions, every_row(runs))));
  fmt::print("{}\nErrors are of |predicted / measured - 1|.\n", text_table(table));
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

/// The catalogue's file of an engine with what is fitted.
std::string engine_text(const std::string& name, const FittedEngine& fitted,
                        const std::string& source) {
  const std::string text = engine_file_text(name);
  return text.substr(0, text.find("figures:\n")) + fitted_text(fitted, source);
}

ServingTraits traits_of(const ServedRuns& runs, std::size_t row) {
  const CorrectedRuns& kind = runs.kind_of(row);
  return {runs.rows()[row].engine, kind.chip, kind.model, kind.format, kind.disaggregated};
}

ServingEvidence evidence_of(const ServedRuns& runs,
                            const std::vector<ServedPrediction>& predictions) {
  ServingEvidence evidence;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!predictions[i].reason.empty()) continue;
    const ServedRow& row = runs.rows()[i];
    const ServingTimes& times = predictions[i].times;
    evidence.push_back({traits_of(runs, i),
                        static_cast<int>(configuration_fold(row, kConfigurationFolds)),
                        std::log(row.tpot_s / times.tpot_s), std::log(row.ttft_s / times.ttft_s)});
  }
  return evidence;
}

/// Of how many runs the measured times lie in their intervals.
struct IntervalCoverage {
  double runs = 0, tpot = 0, ttft = 0;
  double tpot_width = 0, ttft_width = 0;  ///< Sums of high over low.

  void add(const ServingIntervals& intervals, double tpot_error, double ttft_error) {
    const auto within = [](const ErrorInterval& interval, double error) {
      return std::exp(error) >= interval.low && std::exp(error) <= interval.high;
    };
    ++runs;
    if (within(intervals.tpot, tpot_error)) ++tpot;
    if (within(intervals.ttft, ttft_error)) ++ttft;
    tpot_width += intervals.tpot.high / intervals.tpot.low;
    ttft_width += intervals.ttft.high / intervals.ttft.low;
  }
  void print() const {
    if (runs == 0) return;
    fmt::print(
        "80 % intervals hold the TPOT of {:.1f} % and the TTFT of {:.1f} % of the runs; they "
        "end at {:.1f}\nand {:.1f} times where they begin, in the mean.\n",
        100 * tpot / runs, 100 * ttft / runs, tpot_width / runs, ttft_width / runs);
  }
};

/// The intervals of each run from evidence; `held_out`: from that of the other parts alone.
IntervalCoverage coverage_of(const ServingEvidence& runs, const ServingEvidence& evidence,
                             bool held_out) {
  std::map<std::tuple<std::string, bool, std::string, std::string, std::string, int>,
           ServingIntervals>
      known;
  IntervalCoverage coverage;
  for (const ServingError& run : runs) {
    const ServingTraits& of = run.traits;
    const int part = held_out ? run.part : -1;
    const auto counts = [part](const ServingError& other) { return other.part != part; };
    if (std::none_of(evidence.begin(), evidence.end(), counts)) continue;
    const auto [at, added] =
        known.try_emplace({of.engine, of.disaggregated, of.chip, of.model, of.format, part});
    if (added) at->second = serving_intervals(of, evidence, counts);
    coverage.add(at->second, run.tpot, run.ttft);
  }
  return coverage;
}

void print_held_out(const ServedRuns& runs, const std::vector<ServedPrediction>& predictions,
                    const ServingEvidence& evidence) {
  fmt::print(
      "\nEach row with figures fitted to {} of {} parts that have none of its "
      "configuration:\n\n",
      kConfigurationFolds - 1, kConfigurationFolds);
  print_errors(runs, predictions);
  coverage_of(evidence, evidence, true).print();
}

}  // namespace

int validate_serving(const std::string& text, const std::string& file, bool json) {
  const ServedRuns runs = runs_of(text, file);
  const std::vector<ServedPrediction> predictions = predictions_of(runs);
  if (!json) {
    print_errors(runs, predictions);
    coverage_of(evidence_of(runs, predictions), serving_evidence(), false).print();
    print_reasons(predictions);
    return kFound;
  }
  const ServedErrors all = served_errors(runs.rows(), predictions, every_row(runs));
  Json list = Json::array();
  for (const auto& [names, rows] : groups_of(runs.rows())) {
    Json entry = errors_json(served_errors(runs.rows(), predictions, rows));
    entry["engine"] = names[0];
    entry["mode"] = names[1];
    entry["system"] = names[2];
    list.push_back(std::move(entry));
  }
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

int calibrate_serving(const std::string& text, const std::string& file,
                      const ServingCalibration& options) {
  const std::string& out = options.out;
  const ServedRuns runs = runs_of(text, file);
  std::vector<ServedPrediction> held_out;
  if (options.cross_validate || !options.evidence.empty()) {
    held_out = held_out_predictions(runs, kConfigurationFolds);
  }
  const ServingEvidence evidence = evidence_of(runs, held_out);
  if (!options.evidence.empty()) write_file(options.evidence, serving_evidence_text(evidence));
  if (!out.empty()) make_folder(out, "name another folder with --out");
  std::map<int, std::vector<std::size_t>> engines;
  for (std::size_t i = 0; i < runs.rows().size(); ++i) {
    if (runs.engine_of(i) >= 0) engines[runs.engine_of(i)].push_back(i);
  }
  for (const auto& [engine, rows] : engines) {
    const std::string& name = engine_catalogue()[static_cast<std::size_t>(engine)].name;
    const std::string written =
        engine_text(name, fitted_engine(runs, rows), "fitted to measured runs (docs/serving.md)");
    if (out.empty()) {
      fmt::print("{}\n", written);
    } else {
      write_file(fmt::format("{}/{}.yaml", out, name), written);
    }
  }
  if (options.cross_validate) print_held_out(runs, held_out, evidence);
  say_written_below(
      {{"Engines", out, "a file for each"}, {"Errors of the runs", options.evidence}});
  return kFound;
}

}  // namespace braid
