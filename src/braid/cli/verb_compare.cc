#include <memory>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/cli/checked_plan.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/verbs.h"
#include "braid/report/form_text.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"

namespace braid {
namespace {

struct CompareOptions {
  JobOptions job;
  std::vector<std::string> planners;
};

int run(const CompareOptions& options) {
  std::vector<const PlannerEntry*> entries;
  for (const std::string& name : options.planners) entries.push_back(&find_planner(name));
  if (entries.empty()) {
    for (const PlannerEntry& entry : planners()) entries.push_back(&entry);
  }
  LoadedJob loaded;
  load_job(options.job, loaded);
  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {{"planner", "status", "TP", "PP", "CP", "VP", "EP",
                                                  "DP", "MBS", "recompute", "s/iter", "MFU",
                                                  "peak GiB", "bound s", "search s"}};
  bool any = false;
  for (const PlannerEntry* entry : entries) {
    const CheckedOutcome checked =
        plan_checked(loaded, *entry, progress_line(options.job, std::string(entry->name)));
    const Outcome& outcome = checked.outcome;
    const std::string name(entry->name);
    rows.push_back(compare_row(outcome, name, checked.wall_s));
    std::vector<std::string> row = {name, std::string(name_of(outcome.status))};
    if (!outcome.candidates.empty()) {
      any = true;
      const Parallelism& p = outcome.candidates.front().plan.parallel;
      const Metrics& m = outcome.candidates.front().metrics;
      const FormText form = form_text(outcome.candidates.front().plan);
      row.insert(row.end(), {form.tp, fmt::format("{}", p.pp), form.cp, fmt::format("{}", p.vp),
                             form.ep, form.dp, form.micro_batch, form.recompute});
      row.push_back(fmt::format("{:.4g}", m.iteration_time_s));
      row.push_back(fmt::format("{:.1f}%", 100 * m.mfu));
      row.push_back(fmt::format("{:.1f}", m.peak_memory_bytes / (1024.0 * 1024 * 1024)));
    } else {
      row.resize(13, "-");
    }
    row.push_back(fmt::format("{:.4g}", outcome.physical_bound.time_s));
    row.push_back(fmt::format("{:.3f}", checked.wall_s));
    table.push_back(std::move(row));
  }
  if (options.job.json) {
    Json json = Json::object();
    json["rows"] = std::move(rows);
    fmt::print("{}", to_text(json));
  } else {
    fmt::print("{}", text_table(table));
  }
  return any ? kFound : kInfeasible;
}

}  // namespace

Run add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb =
      app.add_subcommand("compare", "Several planners on one job, under the same simulator");
  verb->footer(
      "Example:\n  braid compare llama-3-70b --cluster dgx-h100:64 --global-batch 1024 "
      "--planners braid,megatron");
  add_job_options(*verb, options->job);
  verb->add_option("--planners", options->planners, "Names, separated by commas (default: all)")
      ->delimiter(',');
  return [options] { return run(*options); };
}

}  // namespace braid
