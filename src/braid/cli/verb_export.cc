#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/cli/change_of_trainer.h"
#include "braid/cli/run_cost_options.h"
#include "braid/cli/text_option.h"
#include "braid/cli/valid_plan.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/plan/plan_json.h"
#include "braid/report/alternatives.h"
#include "braid/report/html.h"
#include "braid/schedule/timeline.h"
#include "braid/trainers/registry.h"

namespace braid {
namespace {

struct ExportOptions {
  std::string plan, target, output;
  RunCostOptions run;  ///< Of report.
};

/// Throws Error where the output would take the plan's place.
void check_output(const ExportOptions& options) {
  std::error_code failed;
  if (options.output == "-" || !std::filesystem::equivalent(options.plan, options.output, failed)) {
    return;
  }
  throw Error(Where{"", 0, "--out"}, "it is the plan's own file", "name another file");
}

int run_export(const ExportOptions& options) {
  check_output(options);
  const ValidPlan valid = read_valid_plan(options.plan);
  const Export result =
      export_plan(valid.plan, options.target, options.output == "-" ? "" : options.output);
  const std::vector<std::string> trainers = exported_trainers();
  const bool is_trainer =
      std::find(trainers.begin(), trainers.end(), options.target) != trainers.end();
  const std::string change = is_trainer ? change_of_trainer(valid.plan, options.target) : "";
  write_file(options.output, result.text);
  say_written({"The plan for " + options.target, options.output});
  print_warnings(valid.warnings);
  if (!change.empty()) fmt::print(stderr, "braid: note: {}\n", change);
  print_warnings(result.warnings);
  if (!result.launch.empty()) fmt::print(stderr, "braid: start it with: {}\n", result.launch);
  return kFound;
}

int run_report(const ExportOptions& options) {
  if (!options.output.empty()) check_output(options);
  const std::optional<RunQuestion> question = run_question(options.run);
  const Document document = Document::parse_file(options.plan);
  Plan plan = plan_from_json(document.root());
  Alternatives alternatives = alternatives_from_json(document.root());
  ValidPlan valid = valid_plan(std::move(plan), options.plan);
  alternatives.notes.insert(alternatives.notes.begin(), valid.warnings.begin(),
                            valid.warnings.end());
  set_price(options.run, valid.plan.system);
  std::optional<RunCosts> run;
  if (question) run = costs_of_run({valid.plan, measure(valid.plan)}, *question);
  const bool named = !options.output.empty();
  const std::string file = named ? options.output : "report.html";
  write_file(file, html_report(valid.plan, alternatives, run));
  say_written({"Page", file, std::string(kOpenPage) + (named ? "" : " (-o names another file)")});
  print_warnings(valid.warnings);
  return kFound;
}

}  // namespace

Run add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  options->output = "-";
  Verb verb(app, "export", "Write a plan as a trainer takes it");
  verb.footer(
      "Example:\n  braid export plan.json --to megatron -o train.sh\n  braid export plan.json --to "
      "pytorch -o train.py\n\npytorch is a program that runs the plan by torch.distributed alone. "
      "docs/exporting.md says more.");
  verb.add_option("PLAN", options->plan, "Plan JSON, as braid plan -o writes it").required();
  verb.add_option("--to", options->target, "The trainer, or pytorch")
      .required()
      .one_of(export_targets());
  add_output_file(verb, "-o,--out", options->output, "Where to write (default: standard output)");
  return [options] { return run_export(*options); };
}

Run add_report(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  Verb verb(app, "report", "Write a plan as a page for a browser");
  verb.footer("Example:\n  braid report plan.json -o report.html");
  verb.add_option("PLAN", options->plan, "Plan JSON, as braid plan -o writes it").required();
  add_output_file(verb, "-o,--out", options->output, "Where to write (default: report.html)");
  add_run_cost_options(verb, options->run);
  return [options] { return run_report(*options); };
}

}  // namespace braid
