#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/folder.h"
#include "braid/cli/checked_plan.h"
#include "braid/cli/count_option.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/plan_profile.h"
#include "braid/cli/profile_job.h"
#include "braid/cli/run_cost_options.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/plan/plan_json.h"
#include "braid/report/alternatives.h"
#include "braid/report/plan_text.h"
#include "braid/report/run_costs_text.h"
#include "braid/trainers/registry.h"

namespace braid {
namespace {

struct PlanOptions {
  JobOptions job;
  ProfileOptions profile;
  RunCostOptions run;
  std::string planner;
  std::string output;
  std::string save_all;
  bool fastest = false;
};

/// Writes all plans as DIR/plan-1.json …, best first.
void save_plans(const std::string& folder, const Outcome& outcome) {
  make_folder(folder, "name another folder with --save-all");
  for (std::size_t i = 0; i < outcome.candidates.size(); ++i) {
    write_file(fmt::format("{}/plan-{}.json", folder, i + 1),
               to_text(to_json(outcome.candidates[i].plan)));
  }
}

/// Of the options, whether that of one planner is given to another.
void check_preference(const PlanOptions& options) {
  if (!options.fastest || options.planner.empty()) return;
  if (find_planner(options.planner).recommends) return;
  throw Error(Where{"", 0, "--fastest"}, "is for " + planners_text([](const PlannerEntry& each) {
                                           return each.recommends;
                                         }) + "; others recommend no other plan",
              "leave it out");
}

int run(const PlanOptions& options) {
  check_profile_options(options.profile);
  check_preference(options);
  const bool from_profile = !options.profile.profiles.empty();
  if (from_profile && plans_by_own_rules(options.profile, options.planner)) {
    if (!options.save_all.empty()) {
      throw Error(Where{"", 0, "--save-all"}, "planning by a profile's own rules finds one plan",
                  "write it with -o");
    }
    if (options.fastest) {
      throw Error(Where{"", 0, "--fastest"},
                  "planning by a profile's own rules recommends no other", "leave it out");
    }
    ProfileOptions profile = options.profile;
    profile.objective = word_of(options.job.own, "objective");
    return plan_profile(profile, options.planner, options.job.budget,
                        {options.job.json, options.output}, progress_line(options.job));
  }
  if (options.job.model.empty() && !from_profile) {
    throw Error("MODEL is required", "name one, or give --profile; see braid plan --help");
  }
  const PlannerEntry& planner =
      options.planner.empty() ? find_planner(kDefaultPlanner) : find_planner(options.planner);
  check_planner_options(options.job, {&planner});
  ProfileJob job;
  const std::optional<RunQuestion> question = run_question(options.run);
  load_job_or_profile(options.profile, options.job, {&planner}, job);
  set_price(options.run, job.loaded.system);
  job.loaded.space.preference = options.fastest ? Preference::fastest : Preference::easiest;
  const LoadedJob& loaded = job.loaded;
  CheckedOutcome checked = plan_checked(loaded, planner, progress_line(options.job));
  say_what_is_to_blame(loaded, planner, checked.outcome);
  const Outcome& outcome = checked.outcome;
  if (!options.output.empty() && !outcome.candidates.empty()) {
    Json plan = to_json(outcome.candidates.front().plan);
    const Alternatives found = alternatives_of(outcome);
    plan["alternatives"] = {{"titles", found.titles}, {"rows", found.rows},
                            {"marks", found.marks},   {"why", found.why},
                            {"proof", found.proof},   {"notes", found.notes}};
    write_file(options.output, to_text(plan));
  }
  if (!options.save_all.empty() && !outcome.candidates.empty()) {
    save_plans(options.save_all, outcome);
  }
  std::optional<RunCosts> run;
  if (question && !outcome.candidates.empty()) {
    run = costs_of_run(outcome.candidates.front(), *question);
  }
  // What goes to standard output is one thing: the plan itself, or what is said about it.
  if (options.output == "-" && !outcome.candidates.empty()) return status_of(outcome);
  if (options.job.json) {
    Json json = outcome_to_json(outcome, std::string(planner.name), checked.wall_s);
    if (run) json["run"] = to_json(*run);
    fmt::print("{}", to_text(json));
    return status_of(outcome);
  }
  if (outcome.candidates.empty()) {
    fmt::print(stderr, "braid: no plan: {}\n", infeasibility_text(outcome));
    return status_of(outcome);
  }
  fmt::print("{}", plan_text(outcome));
  if (run) fmt::print("\n{}", run_costs_text(*run));
  say_written_below({{"Plan", options.output},
                     {"Plans", options.save_all, "plan-1.json is the first of the table"}});
  const std::string file = options.output.empty() ? "plan.json" : options.output;
  fmt::print("\nNext{}\n  braid report {} -o report.html\n",
             options.output.empty() ? " (after adding -o plan.json)" : "", file);
  const std::string target = export_target_of(outcome.candidates.front().plan);
  if (!target.empty()) fmt::print("  braid export {} --to {}\n", file, target);
  fmt::print("  braid simulate {} --trace trace.json\n", file);
  return status_of(outcome);
}

}  // namespace

Run add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  Verb verb(app, "plan", "Find the best way to run a model on a cluster");
  verb.footer(
      "Example:\n  braid plan llama-3-70b --cluster dgx-h100:64 --global-batch 1024 --seq-len 8192 "
      "--top 5\n\nOptions of one planner: braid plan --planner P --help. Planning from a "
      "profile: "
      "braid plan --profile F --help.\nLimits of degrees (--max-tp), run costs and all others: "
      "braid "
      "plan --help-all.");
  add_job_options(verb, options->job);
  add_planner_options(verb, options->job);
  add_count(verb, "--top", options->job.top, 1, 1000,
            "How many plans to show, that differ in degrees, recomputation, offload or sharding "
            "(default: 1)")
      .group("Output");
  verb.add_flag("--fastest", options->fastest,
                "Print the fastest plan instead of the recommended one")
      .group("Search");
  add_output_file(verb, "-o,--out", options->output,
                  "Write the plan as JSON, with the table of all (--top)")
      .group("Output");
  add_output_file(verb, "--save-all", options->save_all,
                  "Write all plans that are shown into this folder: plan-1.json …")
      .group(kSeldom);
  add_run_cost_options(verb, options->run);
  verb.option("MODEL").required(false);
  add_profile_options(verb, options->profile);
  verb.add_option("--planner", options->planner,
                  "Which planner, of braid list planners (default: " +
                      std::string(kDefaultPlanner) + "; from a profile alone, that of its format)")
      .group("Search");
  verb.show_group_if([options](const std::string& heading) {
    return is_shown(heading, {options->planner}, !options->profile.profiles.empty());
  });
  return [options] { return run(*options); };
}

}  // namespace braid
