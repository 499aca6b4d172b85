#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/cli/calibrate_kernels.h"
#include "braid/cli/served_rows_command.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/report/table.h"
#include "braid/serve/served_rows.h"
#include "braid/validate/accuracy_text.h"
#include "braid/validate/calibrate.h"
#include "braid/validate/coverage.h"
#include "braid/validate/cross_validate.h"
#include "braid/validate/run_errors.h"

namespace braid {
namespace {

struct CalibrateOptions {
  std::string runs, chip, out;
  std::string kernels, source, evidence;
  bool json = false, cross_validate = false;
};

Json to_json(const Achieved& fitted) {
  Json json = Json::object();
  json["matmul"] = fitted.matmul;
  json["attention"] = fitted.attention;
  json["memory"] = fitted.memory;
  json["kernel_launch_s"] = fitted.kernel_launch_s;
  json["host_operator_s"] = fitted.host_operator_s;
  if (fitted.overlap_loss > 0) json["overlap_loss"] = fitted.overlap_loss;
  json["intra_node"] = fitted.intra_node;
  if (fitted.inter_node > 0) json["inter_node"] = fitted.inter_node;
  return json;
}

void print(const ChipCalibration& fit) {
  fmt::print("{}: {} run{}, mean error {:.1f} % before, {:.1f} % after\n", fit.chip, fit.runs,
             fit.runs == 1 ? "" : "s", 100 * fit.mape_before, 100 * fit.mape_after);
}

void print(const std::vector<LeftOut>& left_out) {
  std::vector<std::vector<std::string>> table = {{"left out", "runs", "by analogy", "mean",
                                                  "median", "bias", "worst", "a dozen", "fitted",
                                                  "alone"}};
  for (const LeftOut& left : left_out) {
    table.push_back({left.dataset, std::to_string(left.runs), std::to_string(left.by_analogy),
                     percent(left.mape), percent(left.median_ape), signed_percent(left.bias),
                     signed_percent(left.worst),
                     left.mape_dozen < 0 ? "-" : percent(left.mape_dozen),
                     percent(left.mape_fitted), percent(left.mape_alone)});
  }
  fmt::print("\n{}", text_table(table));
  fmt::print(
      "\nErrors of each dataset's iteration times with figures fitted to all others. by analogy: "
      "runs on\nchips that no other dataset has, predicted with the mean of the other chips' "
      "figures. Mean errors\nwith figures fitted to the others and: a dozen: twelve of its runs "
      "(of the rest); fitted: all of its\nruns. alone: fitted to its runs and no others.\n");
}

void print(const std::vector<SourceCoverage>& sources) {
  std::vector<std::vector<std::string>> table = {
      {"80 % intervals", "runs", "within", "width", "left out: within", "width"}};
  for (const SourceCoverage& source : sources) {
    table.push_back({source.source.empty() ? "all" : source.source, std::to_string(source.runs),
                     percent(source.covered), percent(source.width),
                     percent(source.covered_left_out), percent(source.width_left_out)});
  }
  fmt::print("\n{}", text_table(table));
  fmt::print(
      "\nOf how many runs the measured time lies in the interval that all other runs give, and of "
      "how\nmany in the one that the other datasets alone give, whose figures are fitted to these. "
      "Widths are\nmeans, of the predicted time.\n");
}

Json to_json(const LeftOut& left) {
  return {{"dataset", left.dataset},
          {"runs", left.runs},
          {"by_analogy", left.by_analogy},
          {"mape", left.mape},
          {"bias", left.bias},
          {"median_ape", left.median_ape},
          {"worst", left.worst},
          {"mape_dozen", left.mape_dozen < 0 ? Json() : Json(left.mape_dozen)},
          {"mape_fitted", left.mape_fitted},
          {"mape_alone", left.mape_alone}};
}

Json to_json(const std::vector<SourceCoverage>& sources) {
  Json json = Json::array();
  for (const SourceCoverage& source : sources) {
    json.push_back({{"dataset", source.source},
                    {"runs", source.runs},
                    {"covered", source.covered},
                    {"width", source.width},
                    {"covered_left_out", source.covered_left_out},
                    {"width_left_out", source.width_left_out}});
  }
  return json;
}

Json to_json(const ChipCalibration& fit) {
  Json entry = Json::object();
  entry["chip"] = fit.chip;
  entry["runs"] = fit.runs;
  entry["mape_before"] = fit.mape_before;
  entry["mape_after"] = fit.mape_after;
  entry["figures"] = to_json(fit.after);
  return entry;
}

/// Throws Error unless runs or tables of kernels are given, and what goes with them.
void check_inputs(const CalibrateOptions& options) {
  const bool kernels = !options.kernels.empty();
  if (kernels == !options.runs.empty()) {
    throw Error(
        kernels ? "runs and tables of kernels are fitted one after the other" : "nothing to fit",
        kernels ? "give RUNS or --kernels" : "give RUNS, or --kernels and a folder");
  }
  if (kernels && (!options.chip.empty() || options.cross_validate)) {
    throw Error(options.chip.empty() ? "--cross-validate is of runs" : "--chip is of runs",
                "leave it out with --kernels");
  }
  if (kernels && !options.out.empty() && options.source.empty()) {
    throw Error("figures need a source", "say with --source whose measurements these are");
  }
  if (!kernels && !options.source.empty()) {
    throw Error("--source is of tables of kernels", "leave it out with RUNS");
  }
}

int run(const CalibrateOptions& options) {
  check_inputs(options);
  if (!options.kernels.empty()) {
    return calibrate_kernels({options.kernels, options.source, options.out, options.json});
  }
  const std::string table = read_file(options.runs);
  if (is_served_rows(table)) {
    return calibrate_serving(table, options.runs,
                             {options.out, options.evidence, options.cross_validate});
  }
  const MeasuredRuns input = parse_measured_runs(table, options.runs);
  std::vector<CalibrationRuns> chips = runs_by_chip(input.runs);
  std::erase_if(chips, [&](const CalibrationRuns& runs) {
    return !options.chip.empty() && runs.chip != options.chip;
  });
  if (chips.empty()) {
    throw Error(Where{options.runs, 0, ""},
                options.chip.empty() ? "no run can be predicted"
                                     : "no run on " + options.chip + " can be predicted",
                "braid validate says why");
  }
  std::vector<ChipCalibration> fits;
  std::vector<CalibratedChip> figures;
  fits.reserve(chips.size());
  figures.reserve(chips.size());
  for (const CalibrationRuns& runs : chips) {
    fits.push_back(calibrate_chip(runs));
    figures.push_back({runs.chip, runs.runs.size(), fits.back().after});
  }
  std::vector<LeftOut> left_out;
  Evidence evidence;
  if (options.cross_validate || !options.evidence.empty()) left_out = cross_validate(chips);
  if (!options.evidence.empty()) {
    evidence = evidence_of(input.runs, left_out);
    write_file(options.evidence, evidence_text(evidence));
  }
  const std::string text = calibration_text(figures);
  if (!options.out.empty()) write_file(options.out, text);
  if (options.json) {
    Json json = Json::object();
    json["chips"] = Json::array();
    for (const ChipCalibration& fit : fits) json["chips"].push_back(to_json(fit));
    json["left_out"] = Json::array();
    for (const LeftOut& left : left_out) json["left_out"].push_back(to_json(left));
    if (!evidence.empty()) json["coverage"] = to_json(coverage_of(evidence));
    fmt::print("{}", to_text(json));
    return kFound;
  }
  for (const ChipCalibration& fit : fits) print(fit);
  if (options.out.empty()) fmt::print("\n{}", text);
  if (options.cross_validate) print(left_out);
  if (!evidence.empty()) print(coverage_of(evidence));
  say_written_below({{"Calibration", options.out, "plan with it by --calibration " + options.out},
                     {"Errors of the runs", options.evidence}});
  return kFound;
}

}  // namespace

Run add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  Verb verb(app, "calibrate", "Fit what chips and networks achieve to measured runs");
  verb.footer(
      "Example:\n  braid calibrate runs.csv --out ours.yaml\n  braid plan MODEL --cluster C "
      "--global-batch N --calibration ours.yaml\n\nThe file has shares of the peak that GEMMs, "
      "attention, memory and networks reach, chip by chip. A dozen runs of different sizes and "
      "splits are enough. Runs of serving engines fit the engines' figures instead, and --kernels "
      "single kernels' times. docs/file-formats.md has the columns (\"Measured runs\") and the "
      "result (\"Calibration\"), docs/serving.md and docs/kernels.md the others.");
  verb.add_option("RUNS", options->runs,
                  "CSV of measured runs, of training or of a serving engine");
  add_text(verb, "--kernels", options->kernels,
           "Fit kernels to the tables of this folder instead of runs; --out is then a folder too");
  add_text(verb, "--source", options->source,
           "With --kernels: whose measurements they are, to be named in the files");
  verb.add_option("--chip", options->chip, "Fit this chip alone (default: each that has runs)");
  add_output_file(
      verb, "-o,--out", options->out,
      "Write the figures here (default: they are printed); of serving engines a folder");
  verb.add_flag("--cross-validate", options->cross_validate,
                "Also say how far off the runs of each dataset are with figures that are fitted to "
                "all others");
  add_output_file(verb, "--evidence", options->evidence,
                  "Write how far off each run is (CSV), which the 80 % intervals come from");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
