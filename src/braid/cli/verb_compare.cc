#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "braid/base/error.h"
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

/// A planner's outcome, or why it does not take the job.
struct Compared {
  const PlannerEntry* planner = nullptr;
  std::optional<CheckedOutcome> checked;
  std::optional<Error> refusal;
};

/// Those asked for, or all but the exhaustive one, which is a check of another and takes longest.
std::vector<const PlannerEntry*> planners_of(const CompareOptions& options) {
  std::vector<const PlannerEntry*> entries;
  for (const std::string& name : options.planners) entries.push_back(&find_planner(name));
  if (!entries.empty()) return entries;
  for (const PlannerEntry& entry : planners()) {
    if (entry.name != "exhaustive") entries.push_back(&entry);
  }
  return entries;
}

/// Each planner on the job. One that does not take it is no reason not to show the others; when
/// none does, throws the first one's Error.
std::vector<Compared> compare(const CompareOptions& options, const LoadedJob& loaded) {
  std::vector<Compared> all;
  bool any = false;
  for (const PlannerEntry* entry : planners_of(options)) {
    Compared compared{entry, std::nullopt, std::nullopt};
    try {
      compared.checked =
          plan_checked(loaded, *entry, progress_line(options.job, std::string(entry->name)));
      any = true;
    } catch (const Error& error) {
      compared.refusal = error;
    }
    all.push_back(std::move(compared));
  }
  if (!any) throw Error(*all.front().refusal);
  return all;
}

std::vector<std::string> row_of(const Compared& compared) {
  constexpr std::size_t kColumns = 17;
  std::vector<std::string> row = {std::string(compared.planner->name)};
  if (compared.refusal.has_value()) {
    row.emplace_back("refused");
    row.resize(kColumns, "-");
    return row;
  }
  const Outcome& outcome = compared.checked->outcome;
  row.emplace_back(name_of(outcome.status));
  if (outcome.candidates.empty()) {
    row.resize(kColumns - 3, "-");
  } else {
    const Parallelism& p = outcome.candidates.front().plan.parallel;
    const Metrics& m = outcome.candidates.front().metrics;
    const FormText form = form_text(outcome.candidates.front().plan);
    row.insert(row.end(), {form.tp, fmt::format("{}", p.pp), form.cp, fmt::format("{}", p.vp),
                           form.ep, form.dp, form.micro_batch, form.recompute});
    row.push_back(fmt::format("{:.4g}", m.iteration_time_s));
    row.push_back(fmt::format("{:.1f}%", 100 * m.mfu));
    row.push_back(fmt::format("{:.1f}", m.peak_memory_bytes / (1024.0 * 1024 * 1024)));
    row.emplace_back("yes");  // Plans that do not verify are never shown.
  }
  row.push_back(fmt::format("{:.4g}", outcome.physical_bound.time_s));
  row.push_back(fmt::format("{:.3f}", compared.checked->wall_s));
  row.push_back(outcome.candidates.empty()
                    ? "-"
                    : fmt::format("{:.4g} {}", outcome.objective, outcome.objective_name));
  return row;
}

Json to_json(const Compared& compared) {
  const std::string name(compared.planner->name);
  if (compared.checked.has_value()) {
    return compare_row(compared.checked->outcome, name, compared.checked->wall_s);
  }
  return {{"planner", name}, {"status", "refused"}, {"reason", compared.refusal->what()}};
}

int run(const CompareOptions& options) {
  LoadedJob loaded;
  load_job(options.job, loaded);
  const std::vector<Compared> all = compare(options, loaded);
  const bool any = std::any_of(all.begin(), all.end(), [](const Compared& compared) {
    return compared.checked.has_value() && !compared.checked->outcome.candidates.empty();
  });
  if (options.job.json) {
    Json json = Json::object();
    json["rows"] = Json::array();
    for (const Compared& compared : all) json["rows"].push_back(to_json(compared));
    fmt::print("{}", to_text(json));
    return any ? kFound : kInfeasible;
  }
  std::vector<std::vector<std::string>> table = {
      {"planner", "status", "TP", "PP", "CP", "VP", "EP", "DP", "MBS", "recompute", "s/iter", "MFU",
       "peak GiB", "verified", "bound s", "search s", "own objective"}};
  for (const Compared& compared : all) table.push_back(row_of(compared));
  fmt::print("{}", text_table(table));
  for (const Compared& compared : all) {
    if (!compared.refusal.has_value()) continue;
    fmt::print("{}: {}\n", compared.planner->name, compared.refusal->what());
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
  verb->add_option("--planners", options->planners,
                   "Names, separated by commas (default: all but exhaustive)")
      ->delimiter(',');
  return [options] { return run(*options); };
}

}  // namespace braid
