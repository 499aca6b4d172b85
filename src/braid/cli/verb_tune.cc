#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braid/base/csv.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/folder.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/checked_plan.h"
#include "braid/cli/count_option.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/plan/names.h"
#include "braid/plan/plan_json.h"
#include "braid/report/confidence_text.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"
#include "braid/trainers/registry.h"
#include "braid/trust/job_traits.h"
#include "braid/tune/error_structure.h"

namespace braid {
namespace {

struct VerbTuneOptions {
  JobOptions job;
  std::string out, results;
  std::int64_t next = 3;
};

/// Two measurements of one plan differ by about a hundredth.
constexpr double kNoiseVariance = 1e-4;
/// A measurement is worth its while when it is expected to gain more than this share of the time.
constexpr double kLeastGain = 0.002;
constexpr std::int64_t kPlansByDefault = 24;

/// A plan that may be run, what it is called, and what has come of it.
struct TunedPlan {
  const Candidate* candidate = nullptr;
  std::string name;  ///< "tp2-pp4-dp2-mb1-full": its file's.
  std::vector<double> measured_s;
};

struct Tuning {
  std::vector<TunedPlan> plans;
  Belief belief;
  std::size_t chosen = 0;
  double expected_loss = 0;
  std::vector<std::size_t> next;
};

/// By what people tell plans apart; the same for the same plan.
std::string name_of(const Plan& plan) {
  const Parallelism p = form_of(plan, 0);
  std::string name = fmt::format("tp{}-pp{}-dp{}", p.tp, plan.parallel.pp, p.dp);
  if (p.cp > 1) name += fmt::format("-cp{}", p.cp);
  if (p.ep > 1) name += fmt::format("-ep{}", p.ep);
  if (plan.parallel.vp > 1) name += fmt::format("-vp{}", plan.parallel.vp);
  name += fmt::format("-mb{}", p.micro_batch);
  if (p.recompute != Recompute::none) name += fmt::format("-{}", name_of(p.recompute));
  if (p.zero != Zero::none) name += fmt::format("-zero{}", static_cast<int>(p.zero));
  if (p.offload_optimizer || p.offload_weights || p.offload_activations) name += "-offload";
  return name;
}

std::vector<TunedPlan> named_plans(const Outcome& outcome) {
  std::vector<TunedPlan> plans;
  std::map<std::string, int> known;
  for (const Candidate& each : outcome.candidates) {
    std::string name = name_of(each.plan);
    const int number = ++known[name];
    if (number > 1) name += fmt::format("-{}", number);
    plans.push_back({&each, std::move(name), {}});
  }
  return plans;
}

/// Adds the times of a file with columns `plan` and `iteration_time_s`; rows without a time wait
/// for theirs. Throws Error naming file and line.
void read_results(const std::string& file, std::vector<TunedPlan>& plans) {
  const CsvTable table = parse_csv(read_file(file), file);
  const auto plan = table.column("plan");
  const auto time = table.column("iteration_time_s");
  if (!plan || !time) {
    throw Error(Where{file, 1, ""}, "needs the columns plan and iteration_time_s",
                "as braid tune writes them to to-measure.csv");
  }
  for (const CsvRow& row : table.rows) {
    const std::string& name = row.fields[*plan];
    if (row.fields[*time].empty()) continue;
    const auto time_s = finite_double(row.fields[*time]);
    if (!time_s || *time_s <= 0) {
      throw Error(Where{file, row.line, "iteration_time_s"},
                  in_quotes(row.fields[*time]) + " is no time", "write seconds");
    }
    const auto found = std::find_if(plans.begin(), plans.end(),
                                    [&](const TunedPlan& each) { return each.name == name; });
    if (found == plans.end()) {
      throw Error(Where{file, row.line, "plan"}, "there is no plan " + in_quotes(name) + " here",
                  "give the options with which it was proposed");
    }
    found->measured_s.push_back(*time_s);
  }
}

Tuning tuning_of(std::vector<TunedPlan> plans, std::int64_t next) {
  std::vector<JobTraits> traits;
  std::vector<double> predicted_s;
  std::vector<ErrorInterval> intervals;
  for (const TunedPlan& each : plans) {
    traits.push_back(traits_of(each.candidate->plan, each.candidate->metrics));
    predicted_s.push_back(each.candidate->metrics.iteration_time_s);
    // That of the plan as braid plan prints it.
    if (const auto interval = time_interval(traits.back(), evidence())) {
      intervals.push_back(*interval);
    }
  }
  Tuning tuning{std::move(plans),
                belief_of(traits, predicted_s, error_structure(evidence()), intervals),
                0,
                0,
                {}};
  for (std::size_t i = 0; i < tuning.plans.size(); ++i) {
    for (const double time_s : tuning.plans[i].measured_s) {
      observe(tuning.belief, i, std::log(time_s), kNoiseVariance);
    }
  }
  tuning.chosen = least_expected(tuning.belief);
  tuning.expected_loss = expected_loss(tuning.belief, tuning.chosen);
  tuning.next =
      worth_measuring(tuning.belief, kNoiseVariance, kLeastGain, static_cast<std::size_t>(next));
  return tuning;
}

/// Writes the plans to measure, their launch scripts where their trainer has one, and the table to
/// fill in.
void write_next(const std::string& folder, const Tuning& tuning) {
  make_folder(folder, "name another folder with --out");
  std::string table = "plan,iteration_time_s\n";
  for (const std::size_t i : tuning.next) {
    const TunedPlan& each = tuning.plans[i];
    const Plan& plan = each.candidate->plan;
    write_file(fmt::format("{}/{}.json", folder, each.name), to_text(to_json(plan)));
    table += each.name + ",\n";
    const std::string target = export_target_of(plan);
    if (target.empty()) continue;
    const Export script = export_plan(plan, target);
    const std::string ending = std::filesystem::path(script.suggested_file).extension().string();
    write_file(
        fmt::format("{}/{}{}", folder, each.name, ending == ".json" ? ".config.json" : ending),
        script.text);
  }
  write_file(folder + "/to-measure.csv", table);
}

double expected_s(const Tuning& tuning, std::size_t i) { return std::exp(tuning.belief.mean[i]); }

/// Between what the time lies with a probability of kIntervalLevel, as factors of expected_s().
ErrorInterval interval_of(const Tuning& tuning, std::size_t i) {
  const double most =
      std::exp(kIntervalDeviations * std::sqrt(std::max(0.0, tuning.belief.variance(i))));
  return {1 / most, most};
}

std::string mark_of(const Tuning& tuning, std::size_t i) {
  const bool is_next = std::find(tuning.next.begin(), tuning.next.end(), i) != tuning.next.end();
  if (i != tuning.chosen) return is_next ? "measure" : "";
  return is_next ? "run, and measure" : "run";
}

void print(const Tuning& tuning, const VerbTuneOptions& options) {
  std::vector<std::vector<std::string>> table = {
      {"plan", "predicted", "measured", "now expected", "80 % interval", "advice"}};
  for (std::size_t i = 0; i < tuning.plans.size(); ++i) {
    const TunedPlan& each = tuning.plans[i];
    std::string measured;
    for (const double time_s : each.measured_s) {
      measured += (measured.empty() ? "" : ", ") + four_figures(time_s);
    }
    table.push_back({each.name, four_figures(each.candidate->metrics.iteration_time_s), measured,
                     four_figures(expected_s(tuning, i)),
                     time_range_text(expected_s(tuning, i) * interval_of(tuning, i).low,
                                     expected_s(tuning, i) * interval_of(tuning, i).high),
                     mark_of(tuning, i)});
  }
  fmt::print("Times of an iteration in seconds.\n\n{}\n", text_table(table));
  const TunedPlan& chosen = tuning.plans[tuning.chosen];
  fmt::print(
      "80 % interval: four of five times lie within.\n"
      "Run {}: it is expected to be the fastest. With errors like those of measured runs another "
      "may turn out faster: on average {} takes {:.1f} % longer than the one of these {} plans "
      "that then is the fastest.\n",
      chosen.name, chosen.name, 100 * std::expm1(tuning.expected_loss), tuning.plans.size());
  if (tuning.next.empty()) {
    fmt::print("Measuring another is not expected to gain more than {:.1f} %.\n", 100 * kLeastGain);
    return;
  }
  std::string names;
  for (const std::size_t i : tuning.next)
    names += (names.empty() ? "" : ", ") + tuning.plans[i].name;
  fmt::print("Measure next: {}\n", names);
  if (options.out.empty()) {
    fmt::print("With --out DIR their files are written.\n");
  } else {
    say_written({"Their files", options.out,
                 fmt::format("fill in {}/to-measure.csv with what they take, append that to your "
                             "results, and go on with --results",
                             options.out)});
  }
}

Json to_json(const Tuning& tuning) {
  Json json = Json::object();
  json["plans"] = Json::array();
  for (std::size_t i = 0; i < tuning.plans.size(); ++i) {
    const TunedPlan& each = tuning.plans[i];
    json["plans"].push_back({{"name", each.name},
                             {"predicted_s", each.candidate->metrics.iteration_time_s},
                             {"measured_s", each.measured_s},
                             {"expected_s", expected_s(tuning, i)},
                             {"interval_s",
                              {expected_s(tuning, i) * interval_of(tuning, i).low,
                               expected_s(tuning, i) * interval_of(tuning, i).high}}});
  }
  json["chosen"] = tuning.plans[tuning.chosen].name;
  json["expected_loss"] = tuning.expected_loss;
  json["next"] = Json::array();
  for (const std::size_t i : tuning.next) json["next"].push_back(tuning.plans[i].name);
  return json;
}

int run(const VerbTuneOptions& options) {
  if (options.job.model.empty()) {
    throw Error("MODEL is required", "name one; see braid tune --help");
  }
  const PlannerEntry& planner = find_planner(kDefaultPlanner);
  LoadedJob loaded;
  load_job(options.job, loaded);
  set_job_trainer(options.job, {&planner}, loaded);
  loaded.space.preference = Preference::fastest;
  CheckedOutcome checked = plan_checked(loaded, planner, progress_line(options.job));
  if (checked.outcome.candidates.empty()) {
    say_what_is_to_blame(loaded, planner, checked.outcome);
    fmt::print(stderr, "braid: no plan: {}\n", infeasibility_text(checked.outcome));
    return status_of(checked.outcome);
  }
  std::vector<TunedPlan> plans = named_plans(checked.outcome);
  if (!options.results.empty()) read_results(options.results, plans);
  const Tuning tuning = tuning_of(std::move(plans), options.next);
  if (!options.out.empty()) write_next(options.out, tuning);
  if (options.job.json) {
    fmt::print("{}", to_text(to_json(tuning)));
  } else {
    print(tuning, options);
  }
  return kFound;
}

}  // namespace

Run add_tune(CLI::App& app) {
  auto options = std::make_shared<VerbTuneOptions>();
  options->job.top = kPlansByDefault;
  Verb verb(app, "tune", "Say which plans to measure, and which one to run by what they took");
  verb.footer(
      "Example:\n  braid tune llama-3-8b --cluster dgx-h100:16 --global-batch 128 --seq-len 8192 "
      "--out tune\n  braid tune llama-3-8b --cluster dgx-h100:16 --global-batch 128 --seq-len 8192 "
      "--out tune --results results.csv\n\nThe first command lists the best plans by their "
      "predicted times and writes the few that are worth measuring, with their launch scripts and "
      "a table to fill in, into the folder of --out. The second takes what was measured: "
      "predictions are off alike where plans are alike, so each measured plan tells of the others, "
      "and the list says which plan to run, and which to measure next. docs/tuning.md says more.");
  add_job_options(verb, options->job);
  add_count(verb, "--top", options->job.top, 2, 200, "How many plans to choose among (default: 24)")
      .group("Output");
  add_output_file(verb, "-o,--out", options->out, "Folder to write the plans to measure next into")
      .group("Output");
  add_text(
      verb, "--results", options->results,
      "CSV of what was measured so far: columns plan, a name of the list, and iteration_time_s")
      .group("Output");
  add_count(verb, "--next", options->next, 1, 20,
            "How many plans to measure next at most (default: 3)")
      .group("Output");
  verb.option("MODEL").required(false);
  return [options] { return run(*options); };
}

}  // namespace braid
