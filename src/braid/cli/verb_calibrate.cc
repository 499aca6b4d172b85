#include <algorithm>
#include <cstdio>
#include <memory>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/cli/verbs.h"
#include "braid/validate/calibrate.h"

namespace braid {
namespace {

struct CalibrateOptions {
  std::string runs, chip;
  bool json = false;
};

Json to_json(const Fitted& fitted) {
  Json json = Json::object();
  json["matmul"] = fitted.matmul;
  json["attention"] = fitted.attention;
  json["memory"] = fitted.memory;
  json["kernel_launch_s"] = fitted.kernel_launch_s;
  json["host_operator_s"] = fitted.host_operator_s;
  json["intra_node"] = fitted.intra_node;
  if (fitted.inter_node > 0) json["inter_node"] = fitted.inter_node;
  return json;
}

void print(const ChipCalibration& fit, const std::vector<LeftOut>& left_out) {
  const Fitted& f = fit.after;
  fmt::print("{}: {} runs, mean error {:.1f}% before, {:.1f}% after\n", fit.chip, fit.runs,
             100 * fit.mape_before, 100 * fit.mape_after);
  fmt::print(
      "  in the chip's file     efficiency: {{matmul: {:.3f}, attention: {:.3f}, memory: {:.3f}, "
      "kernel_launch: {:.2f} us, host_operator: {:.1f} us}}\n",
      f.matmul, f.attention, f.memory, 1e6 * f.kernel_launch_s, 1e6 * f.host_operator_s);
  fmt::print("  in the cluster's file  intra_node: efficiency: {:.3f}", f.intra_node);
  if (f.inter_node > 0) fmt::print("; first level: efficiency: {:.3f}", f.inter_node);
  fmt::print("\n");
  for (const LeftOut& left : left_out) {
    fmt::print("  fitted without {}: mean error on it {:.1f}% ({} runs)\n", left.dataset,
               100 * left.mape, left.runs);
  }
}

int run(const CalibrateOptions& options) {
  const MeasuredRuns input = read_measured_runs(options.runs);
  const std::vector<CalibrationRuns> chips = runs_by_chip(input.runs);
  Json json = Json::array();
  for (const CalibrationRuns& runs : chips) {
    if (!options.chip.empty() && runs.chip != options.chip) continue;
    const ChipCalibration fit = calibrate_chip(runs);
    const std::vector<LeftOut> left_out = cross_validate(runs);
    if (!options.json) {
      print(fit, left_out);
      continue;
    }
    Json entry = Json::object();
    entry["chip"] = fit.chip;
    entry["runs"] = fit.runs;
    entry["mape_before"] = fit.mape_before;
    entry["mape_after"] = fit.mape_after;
    entry["figures"] = to_json(fit.after);
    entry["left_out"] = Json::array();
    for (const LeftOut& left : left_out) {
      entry["left_out"].push_back(
          {{"dataset", left.dataset}, {"runs", left.runs}, {"mape", left.mape}});
    }
    json.push_back(std::move(entry));
  }
  if (options.json) {
    Json whole = Json::object();
    whole["chips"] = std::move(json);
    fmt::print("{}", to_text(whole));
  }
  const bool any = std::any_of(chips.begin(), chips.end(), [&](const CalibrationRuns& runs) {
    return options.chip.empty() || runs.chip == options.chip;
  });
  if (!any) {
    throw Error(Where{options.runs, 0, ""},
                options.chip.empty() ? "no run can be predicted"
                                     : "no run on " + options.chip + " can be predicted",
                "braid validate says why");
  }
  return kFound;
}

}  // namespace

Run add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* verb =
      app.add_subcommand("calibrate", "Fit chips' and networks' efficiencies to measured runs");
  verb->footer(
      "Example:\n  braid calibrate runs.csv --chip h100-sxm\n\nPrints what to put into the chip's "
      "and the cluster's file, and how far off runs of each\ndataset are when it is left out of "
      "the fit.");
  verb->add_option("RUNS", options->runs, "CSV of measured runs")->required();
  verb->add_option("--chip", options->chip, "Only this chip");
  verb->add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
