#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/and_list.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/folder.h"
#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/checked_plan.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/plan_profile.h"
#include "braid/cli/profile_job.h"
#include "braid/cli/run_cost_options.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/plan/names.h"
#include "braid/plan/plan_json.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/outcomes.h"
#include "braid/report/bound_text.h"
#include "braid/report/devices_text.h"
#include "braid/report/form_text.h"
#include "braid/report/heading.h"
#include "braid/report/plan_assumptions.h"
#include "braid/report/plan_text.h"
#include "braid/report/plans_table.h"
#include "braid/report/recommendation_text.h"
#include "braid/report/run_costs_text.h"
#include "braid/report/table.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

struct CompareOptions {
  JobOptions job;
  ProfileOptions profile;
  RunCostOptions run;
  std::vector<std::string> planners;
  std::vector<std::string> plans;  ///< Files of plans to put beside.
  std::string save_all;
};

/// A planner's outcome, or why it does not take the job; or a plan that was saved.
struct Compared {
  std::string name;  ///< The planner, or the plan's file.
  std::optional<CheckedOutcome> checked;
  std::optional<Error> refusal;
  std::optional<RunCosts> run;  ///< Of the best, where a run was asked for.
};

/// Which planners are run.
struct Chosen {
  std::vector<const PlannerEntry*> planners;
  std::vector<std::string> left_out;  ///< That the named trainer cannot run.
};

/// Those asked for, or where none are named all that are compared and that the trainer, if one is
/// named, can run.
Chosen chosen_planners(const CompareOptions& options) {
  Chosen chosen;
  for (const std::string& name : options.planners) {
    const PlannerEntry* entry = &find_planner(name, "--planners");
    if (std::find(chosen.planners.begin(), chosen.planners.end(), entry) != chosen.planners.end()) {
      throw Error(Where{"", 0, "--planners"}, in_quotes(name) + " is named twice",
                  "name each once");
    }
    chosen.planners.push_back(entry);
  }
  if (!chosen.planners.empty()) return chosen;
  const std::string& trainer = options.job.trainer;
  const bool any_stages = trainer.empty() || load_trainer(trainer).can.heterogeneous_stages;
  for (const PlannerEntry& entry : planners()) {
    if (!entry.compared) continue;
    if (any_stages || !entry.heterogeneous_stages) {
      chosen.planners.push_back(&entry);
    } else {
      chosen.left_out.emplace_back(entry.name);
    }
  }
  return chosen;
}

/// Those left out, as a line; empty where there are none.
std::string left_out_text(const std::vector<std::string>& names, const std::string& trainer) {
  if (names.empty()) return "";
  return fmt::format(
      "Left out, as {} has the same degrees for all stages and they give each its own: {}\n",
      trainer, fmt::join(names, ", "));
}

const std::string& model_of(const LoadedJob& loaded) {
  return loaded.job.graph != nullptr ? loaded.graph.name : loaded.job.layers->layers().model;
}

std::int64_t seq_len_of(const LoadedJob& loaded) {
  return loaded.job.graph != nullptr ? loaded.graph.seq_len : loaded.job.layers->layers().seq_len;
}

/// Throws Error where the plan in this file is for something else than the job.
void check_same_job(const Plan& plan, const LoadedJob& loaded, const std::string& file) {
  std::string remedy = "compare plans of one job, or leave this one out";
  const auto same = [&](const char* what, const auto& planned, const auto& asked) {
    if (planned == asked) return;
    throw Error(Where{file, 0, what},
                fmt::format("the plan is for {}, the others for {}", planned, asked), remedy);
  };
  same("model", plan.model, model_of(loaded));
  same("system", plan.system.name, loaded.system.name);
  same("devices", plan.system.device_count, loaded.system.device_count);
  same("global_batch", plan.global_batch, loaded.job.global_batch);
  same("seq_len", plan.seq_len, seq_len_of(loaded));
  same("precision", name_of(plan.precision), name_of(loaded.job.precision));
  remedy = fmt::format("name it (--for {}), and planners that it can run (--planners braid)",
                       plan.trainer.name);
  same("trainer", plan.trainer.name, loaded.job.trainer.name);
}

/// A saved plan as if a planner had found it: timed and checked like the others.
Compared saved_plan(const std::string& file, const LoadedJob& loaded) {
  Candidate candidate;
  candidate.plan = read_plan(file);
  check_same_job(candidate.plan, loaded, file);
  candidate.metrics = measure(candidate.plan);
  CheckedOutcome checked;
  Outcome& outcome = checked.outcome;
  outcome.status = Status::feasible;
  outcome.physical_bound = lower_bound(loaded.job, loaded.system);
  outcome.objective_name = kSimulatedObjective;
  outcome.objective = candidate.metrics.iteration_time_s;
  outcome.assumptions = plan_assumptions(loaded.job.graph, candidate.plan);
  outcome.assumptions.insert(outcome.assumptions.end(), loaded.assumptions.begin(),
                             loaded.assumptions.end());
  checked.failure = fault_of(candidate, outcome.physical_bound, file);
  outcome.candidates.push_back(std::move(candidate));
  return {file, std::move(checked), std::nullopt, std::nullopt};
}

/// Each planner on the job. One that does not take it is no reason not to show the others; when
/// none does, throws the first one's Error.
std::vector<Compared> compare(const CompareOptions& options,
                              const std::vector<const PlannerEntry*>& planners,
                              const LoadedJob& loaded) {
  const bool from_profile = !options.profile.profiles.empty();
  std::vector<Compared> all;
  bool any = false;
  for (const std::string& file : options.plans) {
    all.push_back(saved_plan(file, loaded));
    any = true;
  }
  for (const PlannerEntry* entry : planners) {
    Compared compared{std::string(entry->name), std::nullopt, std::nullopt, std::nullopt};
    try {
      const std::string name(entry->name);
      const Progress progress = progress_line(options.job, name);
      compared.checked =
          from_profile && plans_by_own_rules(options.profile, name)
              ? outcome_by_own_rules(options.profile, name, options.job.budget, progress)
              : plan_and_check(loaded, *entry, progress);
      any = true;
    } catch (const Error& error) {
      compared.refusal = error;
    }
    all.push_back(std::move(compared));
  }
  if (!any) throw Error(*all.front().refusal);
  return all;
}

const Candidate* best_of(const Compared& compared) {
  if (!compared.checked.has_value() || compared.checked->outcome.candidates.empty()) return nullptr;
  return &compared.checked->outcome.candidates.front();
}

bool has_plan(std::span<const Compared> all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Compared& each) { return best_of(each) != nullptr; });
}

/// Iteration time of the fastest plan.
double least_s(const std::vector<Compared>& all) {
  double least = kInfinity;
  for (const Compared& compared : all) {
    if (const Candidate* best = best_of(compared)) {
      least = std::min(least, best->metrics.iteration_time_s);
    }
  }
  return least;
}

struct Column {
  std::string title, value;
};

/// The cells of a row; those of a planner without a plan are "-".
std::vector<Column> columns_of(const Compared& compared, double least_s, bool runs) {
  const Candidate* best = best_of(compared);
  std::vector<Column> columns = {{"planner", compared.name}};
  const Outcome* outcome = compared.checked.has_value() ? &compared.checked->outcome : nullptr;
  columns.push_back(
      {"status", outcome != nullptr ? std::string(name_of(outcome->status)) : "refused"});
  const FormText form = best != nullptr ? form_text(best->plan) : FormText{};
  const auto add = [&](const char* title, const auto& value) {
    columns.push_back({title, best != nullptr ? value() : std::string("-")});
  };
  add("devices", [&] { return fmt::format("{}", devices_used(best->plan)); });
  add("TP", [&] { return form.tp; });
  add("PP", [&] { return fmt::format("{}", best->plan.parallel.pp); });
  add("CP", [&] { return form.cp; });
  add("VP", [&] { return fmt::format("{}", best->plan.parallel.vp); });
  add("EP", [&] { return form.ep; });
  add("DP", [&] { return form.dp; });
  add("MBS", [&] { return form.micro_batch; });
  add("ZeRO", [&] { return form.zero; });
  add("recompute", [&] {
    return form.offload.empty() ? form.recompute : form.recompute + " off" + form.offload;
  });
  add("s/iter", [&] { return four_figures(best->metrics.iteration_time_s); });
  add("of best", [&] { return fmt::format("{:.2f}", best->metrics.iteration_time_s / least_s); });
  add("MFU", [&] {
    return knows_arithmetic(best->plan.system) ? fmt::format("{:.1f} %", 100 * best->metrics.mfu)
                                               : std::string("-");
  });
  add("peak GiB", [&] { return fmt::format("{:.1f}", best->metrics.peak_memory_bytes / kGiB); });
  if (compared.run) {
    for (const auto& [name, value] : run_figures(*compared.run)) columns.push_back({name, value});
  } else if (runs) {
    for (const auto& [name, value] : run_figures({})) columns.push_back({name, "-"});
  }
  add("verified", [&] { return compared.checked->failure.empty() ? "yes" : "no"; });
  columns.push_back(
      {"bound s", outcome != nullptr ? bound_figures(outcome->physical_bound.time_s) : "-"});
  columns.push_back(
      {"search s", outcome != nullptr ? fmt::format("{:.3f}", compared.checked->wall_s) : "-"});
  add("own", [&] { return four_figures(outcome->objective); });
  add("objective", [&] { return outcome->objective_name; });
  return columns;
}

/// Ways to split that no plan uses need no column, nor does ZeRO where all have one stage, nor what
/// is not known of any.
bool is_left_out(const std::string& title, const std::vector<std::vector<Column>>& rows,
                 std::size_t column) {
  const bool splits = title == "CP" || title == "VP" || title == "EP";
  if (title == "ZeRO") {
    std::set<std::string> values{"-"};
    for (const std::vector<Column>& row : rows) values.insert(row[column].value);
    return values.size() <= 2;
  }
  if (!splits && title != "MFU") return false;
  return std::all_of(rows.begin(), rows.end(), [&](const std::vector<Column>& row) {
    return (splits && row[column].value == "1") || row[column].value == "-";
  });
}

std::string compare_table(const std::vector<Compared>& all) {
  std::vector<std::vector<Column>> rows;
  rows.reserve(all.size());
  const bool runs = std::any_of(all.begin(), all.end(), [](const Compared& c) { return c.run; });
  for (const Compared& compared : all) rows.push_back(columns_of(compared, least_s(all), runs));
  std::vector<std::vector<std::string>> table(rows.size() + 1);
  for (std::size_t c = 0; c < rows.front().size(); ++c) {
    const std::string& title = rows.front()[c].title;
    if (is_left_out(title, rows, c)) continue;
    table.front().push_back(title);
    for (std::size_t r = 0; r < rows.size(); ++r) table[r + 1].push_back(rows[r][c].value);
  }
  return text_table(table);
}

/// What the words of the table stand for.
std::string compare_legend(const std::vector<Compared>& all) {
  std::vector<PlanRow> rows;
  for (const Compared& compared : all) {
    if (best_of(compared) != nullptr) rows.push_back({.candidate = best_of(compared)});
  }
  return "optimal: proven best of the plans that this planner looks at, by its own objective "
         "(own), so another planner's may be faster; bound s: no plan at all takes less\n" +
         marks_legend(rows, /*schedules=*/false);
}

/// Whose plans keep something in host memory, as a line; empty where none do.
std::string offload_note(std::span<const Compared> planned) {
  std::vector<std::string> keep;
  for (const Compared& compared : planned) {
    const Candidate* best = best_of(compared);
    if (best != nullptr && !offload_text(best->plan).empty()) keep.push_back(compared.name);
  }
  if (keep.empty()) return "";
  return fmt::format("{} {} something in host memory: --no-offload plans without.\n",
                     and_list(keep), keep.size() == 1 ? "keeps" : "keep");
}

std::string heading(const LoadedJob& loaded) {
  std::string text =
      fmt::format("{} on {}: {}; global batch {}", model_of(loaded), loaded.system.name,
                  devices_text(loaded.system), loaded.job.global_batch);
  const std::int64_t tokens = seq_len_of(loaded);
  if (tokens > 0) text += fmt::format(", {} tokens each", tokens);
  if (knows_arithmetic(loaded.system)) text += ", " + name_of(loaded.job.precision);
  return text + ", run by " + loaded.job.trainer.name + "\n" + notes_text(loaded.trainer_notes);
}

/// Why a planner has no plan, or one that does not hold; empty otherwise.
std::string complaint(const Compared& compared) {
  if (compared.refusal.has_value()) return compared.refusal->what();
  if (best_of(compared) == nullptr) return infeasibility_text(compared.checked->outcome);
  return compared.checked->failure;
}

/// Assumptions, each line once, with whose figures when they are not everyone's.
std::string assumptions_text(const std::vector<Compared>& all) {
  std::vector<std::pair<std::string, std::string>> lines;  // With the planners.
  std::vector<std::size_t> counts;
  std::size_t planned = 0;
  for (const Compared& compared : all) {
    if (best_of(compared) == nullptr) continue;
    ++planned;
    for (const std::string& assumption : compared.checked->outcome.assumptions) {
      auto line = std::find_if(lines.begin(), lines.end(),
                               [&](const auto& other) { return other.first == assumption; });
      if (line == lines.end()) {
        line = lines.insert(lines.end(), {assumption, ""});
        counts.push_back(0);
      }
      line->second += (line->second.empty() ? "" : ", ") + compared.name;
      ++counts[static_cast<std::size_t>(line - lines.begin())];
    }
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [assumption, whose] = lines[i];
    text += "  " + assumption + (counts[i] < planned ? " (" + whose + ")" : "") + "\n";
  }
  return text.empty() ? "" : "Assumed:\n" + text;
}

/// What the runs depend on, as the first of them says it: others differ in their figures alone.
std::string run_assumptions(const std::vector<Compared>& all) {
  for (const Compared& compared : all) {
    if (!compared.run) continue;
    std::string text =
        fmt::format("The run of {} {}, with the plan of {}:\n", format_count(compared.run->tokens),
                    compared.run->unit, compared.name);
    for (const std::string& line : compared.run->assumptions) text += "  " + line + "\n";
    return text;
  }
  return "";
}

Json to_json(const LoadedJob& loaded, const std::vector<Compared>& all,
             const std::vector<std::string>& left_out) {
  Json json = Json::object();
  json["model"] = model_of(loaded);
  json["system"] = loaded.system.name;
  json["devices"] = loaded.system.device_count;
  json["global_batch"] = loaded.job.global_batch;
  json["seq_len"] = seq_len_of(loaded);
  json["precision"] = name_of(loaded.job.precision);
  json["trainer"] = loaded.job.trainer.name;
  json["trainer_notes"] = loaded.trainer_notes;
  if (!left_out.empty()) json["left_out"] = left_out;
  json["rows"] = Json::array();
  for (const Compared& compared : all) {
    const std::string& name = compared.name;
    json["rows"].push_back(compared.checked.has_value()
                               ? compare_row(*compared.checked, name, least_s(all))
                               : refused_row(name, compared.refusal->what()));
    if (compared.run) json["rows"].back()["run"] = to_json(*compared.run);
  }
  return json;
}

/// Writes the plan of each planner that has one as DIR/PLANNER.json.
void save_plans(const std::string& folder, std::span<const Compared> planners) {
  make_folder(folder, "name another folder with --save-all");
  for (const Compared& compared : planners) {
    const Candidate* best = best_of(compared);
    if (best == nullptr) continue;
    write_file(folder + "/" + compared.name + ".json", to_text(to_json(best->plan)));
  }
}

int run(CompareOptions options) {
  check_profile_options(options.profile);
  // A saved plan is for a trainer, which the others are then for, too, where none are named.
  if (options.job.trainer.empty() && options.planners.empty() && !options.plans.empty()) {
    options.job.trainer = read_plan(options.plans.front()).trainer.name;
  }
  const bool from_profile = !options.profile.profiles.empty();
  if (options.job.model.empty() && !from_profile) {
    throw Error("MODEL is required", "name one, or give --profile; see braid compare --help");
  }
  const Chosen chosen = chosen_planners(options);
  check_planner_options(options.job, chosen.planners);
  const std::optional<RunQuestion> question = run_question(options.run);
  ProfileJob job;
  load_job_or_profile(options.profile, options.job, chosen.planners, job);
  set_price(options.run, job.loaded.system);
  const LoadedJob& loaded = job.loaded;
  std::vector<Compared> all = compare(options, chosen.planners, loaded);
  for (Compared& compared : all) {
    const Candidate* best = question ? best_of(compared) : nullptr;
    if (best != nullptr) compared.run = costs_of_run(*best, *question);
  }
  const bool any = has_plan(all);
  // Plans put beside come first, and have their files.
  const std::span<const Compared> planned = std::span(all).subspan(options.plans.size());
  const bool saves = !options.save_all.empty() && has_plan(planned);
  if (saves) save_plans(options.save_all, planned);
  if (options.job.json) {
    fmt::print("{}", to_text(to_json(loaded, all, chosen.left_out)));
    return any ? kFound : kInfeasible;
  }
  fmt::print("{}{}{}{}\n", heading(loaded), compare_table(all), compare_legend(all),
             offload_note(planned));
  std::string reasons;
  for (const Compared& compared : all) {
    const std::string reason = complaint(compared);
    if (!reason.empty()) reasons += fmt::format("  {}: {}\n", compared.name, reason);
  }
  if (!reasons.empty()) fmt::print("Without a plan:\n{}", reasons);
  fmt::print("{}", left_out_text(chosen.left_out, loaded.job.trainer.name));
  fmt::print("{}{}", assumptions_text(all), run_assumptions(all));
  if (saves) {
    say_written_below({{"Plans", options.save_all, "each in a file named by its planner"}});
  }
  return any ? kFound : kInfeasible;
}

}  // namespace

Run add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  Verb verb(app, "compare", "Several planners on one job, under the same simulator");
  verb.footer(
      "Example:\n  braid compare llama-3-70b --cluster dgx-h100:64 --global-batch 1024 "
      "--planners braid,megatron\n\nOptions of single planners: braid compare --planners P,Q "
      "--help. Profiles: braid compare --profile F --help.\nAll options: braid compare "
      "--help-all.");
  add_job_options(verb, options->job);
  add_planner_options(verb, options->job);
  add_run_cost_options(verb, options->run);
  verb.option("MODEL").required(false);
  add_profile_options(verb, options->profile);
  verb.add_option("--planners", options->planners,
                  "Names, separated by commas (default: all but exhaustive and megatron-rule)")
      .delimiter(',')
      .group("Search");
  verb.add_option("--plans", options->plans,
                  "Plans to put beside them, files separated by commas (braid plan -o)")
      .delimiter(',')
      .group("Search");
  add_output_file(verb, "--save-all", options->save_all,
                  "Write each planner's plan into this folder: PLANNER.json …")
      .group("Output");
  verb.show_group_if([options](const std::string& heading) {
    return is_shown(heading, options->planners, !options->profile.profiles.empty());
  });
  return [options] { return run(*options); };
}

}  // namespace braid
