#include <cstdio>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/cli/served_rows_command.h"
#include "braid/cli/text_option.h"
#include "braid/cli/validate_kernels.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/report/table.h"
#include "braid/serve/served_rows.h"
#include "braid/validate/accuracy.h"
#include "braid/validate/accuracy_html.h"
#include "braid/validate/accuracy_json.h"
#include "braid/validate/accuracy_text.h"
#include "braid/validate/record.h"

namespace braid {
namespace {

struct ValidateOptions {
  std::string runs, html, calibration, record, against, kernels;
  std::vector<std::string> by = {"dataset"};
  bool json = false;
};

std::vector<std::string> table_row(std::vector<std::string> row, const Accuracy& accuracy) {
  row.push_back(fmt::format("{}", accuracy.runs));
  row.push_back(fmt::format("{}", accuracy.predicted));
  for (std::string& figure : accuracy_figures(accuracy)) row.push_back(std::move(figure));
  return row;
}

/// Lines of at most 100 characters, broken at spaces.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 100;
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.size();
    if (end - at > kWidth) end = text.rfind(' ', at + kWidth);
    lines += text.substr(at, end - at) + '\n';
    at = end + 1;
  }
  return lines;
}

void print_unpredicted(const std::vector<MeasuredRun>& runs,
                       const std::vector<Prediction>& predictions) {
  const auto lines = unpredicted_lines(runs, predictions);
  if (lines.empty()) return;
  fmt::print("\nNot predicted:\n");
  for (const auto& [reason, of_reason] : lines) {
    fmt::print("{:>6}  {} (line {})\n", of_reason.size(), reason, line_ranges(of_reason));
  }
}

void print_bounds(const std::vector<MeasuredRun>& runs, const Accuracy& all) {
  if (all.predicted_below_bound > 0) {
    fmt::print("\n{} predictions are below the physical bound.\n", all.predicted_below_bound);
  } else if (all.predicted > 0) {
    fmt::print("\nNo prediction is below the physical bound.\n");
  }
  if (all.measured_below_bound.empty()) return;
  std::vector<int> lines;
  for (const std::size_t i : all.measured_below_bound) lines.push_back(runs[i].line);
  fmt::print("Measured faster than the physical bound, so the row or the bound is wrong: line {}\n",
             line_ranges(lines));
}

/// Compares with a record of earlier predictions.
int check(const ValidateOptions& options, const std::vector<MeasuredRun>& runs,
          const std::vector<Prediction>& predictions) {
  const std::vector<std::string> complaints =
      worse_than_record(read_file(options.against), options.against, runs, predictions);
  for (const std::string& complaint : complaints) fmt::print("{}\n", complaint);
  if (!complaints.empty()) return kInfeasible;
  fmt::print("As accurate as recorded in {}.\n", options.against);
  return kFound;
}

int run(const ValidateOptions& options) {
  if (options.kernels.empty() == options.runs.empty()) {
    throw Error(options.runs.empty()
                    ? "nothing to validate"
                    : "runs and tables of kernels are validated one after the other",
                "give RUNS or --kernels and a folder");
  }
  if (!options.kernels.empty()) return validate_kernels(options.kernels, options.json);
  const std::string text = read_file(options.runs);
  if (is_served_rows(text)) return validate_serving(text, options.runs, options.json);
  const MeasuredRuns input = parse_measured_runs(text, options.runs);
  for (const std::string& column : input.ignored_columns) {
    fmt::print(stderr, "braid: warning: {}: column '{}' is not known and is ignored\n",
               options.runs, column);
  }
  const std::vector<MeasuredRun>& runs = input.runs;
  if (runs.empty()) throw Error(Where{options.runs, 0, ""}, "there are no runs in the file");
  static_cast<void>(accuracy_by({runs.front()}, {{}}, options.by));  // Complains before the work.
  const Calibration calibration =
      options.calibration.empty() ? Calibration{} : read_calibration(options.calibration);
  const std::vector<Prediction> predictions = predict(runs, calibration);
  const std::vector<AccuracyGroup> groups = accuracy_by(runs, predictions, options.by);
  std::vector<std::size_t> every(runs.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  const Accuracy all = accuracy_of(runs, predictions, every);
  if (!options.record.empty()) write_file(options.record, accuracy_record(runs, predictions));
  if (!options.against.empty()) return check(options, runs, predictions);
  const int status = all.predicted_below_bound == 0 ? kFound : kInfeasible;
  if (!options.html.empty()) {
    write_file(options.html, accuracy_page(runs, predictions, options.by, groups));
  }
  if (options.json) {
    fmt::print("{}", to_text(accuracy_to_json(runs, predictions, options.by, groups)));
    return status;
  }
  std::vector<std::string> head = options.by;
  for (const char* column : {"runs", "predicted"}) head.emplace_back(column);
  for (std::string& column : accuracy_heads()) head.push_back(std::move(column));
  std::vector<std::vector<std::string>> table = {std::move(head)};
  for (const AccuracyGroup& group : groups) {
    table.push_back(table_row(group.values, group.accuracy));
  }
  if (groups.size() > 1) {
    std::vector<std::string> name(options.by.size());
    name.front() = "all";
    table.push_back(table_row(std::move(name), all));
  }
  fmt::print("{}", text_table(table));
  fmt::print("\n{}", wrapped(accuracy_legend()));
  print_bounds(runs, all);
  print_unpredicted(runs, predictions);
  say_written_below({{"Page", options.html, kOpenPage}, {"Mean errors", options.record}});
  return status;
}

}  // namespace

Run add_validate(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  Verb verb(app, "validate", "Hold predictions against measured runs");
  verb.footer(
      "Example:\n  braid validate runs.csv --by dataset,hardware\n\nThe file's columns: "
      "docs/file-formats.md, \"Measured runs\". Exit status 1 when a prediction\nis below the "
      "physical bound.");
  verb.add_option("RUNS", options->runs, "CSV of measured runs");
  add_text(verb, "--kernels", options->kernels,
           "Hold the catalogue's kernels against the tables of this folder instead");
  verb.add_option("--by", options->by, "Columns to group by, separated by commas")
      .delimiter(',')
      .show_default(fmt::format("{}", fmt::join(options->by, ",")));
  verb.add_option("--calibration", options->calibration,
                  "Predict with the efficiencies of this file, from braid calibrate --out");
  verb.add_option("--html", options->html, "Write a page with plots and the worst runs here");
  const VerbOption record =
      verb.add_option("--record", options->record, "Write the mean errors by dataset to this file");
  verb.add_option("--against", options->against,
                  "Only say where predictions are worse than such a file says (exit status 1)")
      .excludes(record);
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
