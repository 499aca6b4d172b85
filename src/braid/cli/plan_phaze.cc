#include "braid/cli/plan_phaze.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/cli/profile_job.h"
#include "braid/cli/verbs.h"
#include "braid/planners/phaze/from_profile.h"
#include "braid/planners/phaze/placement.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/plain_system.h"
#include "braid/profile/piper_profile.h"
#include "braid/profile/profile_json.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"

namespace braid {
namespace {

/// One profile, memory size and way to keep activations.
struct PhazeRun {
  std::string profile;
  PhazeProblem problem;
  std::optional<PhazePlacement> placement;
  std::optional<PhazeShortfall> shortfall;  ///< Where there is no placement and it is asked for.
  double time_s = 0;                        ///< By the objective.
  double simulated_s = 0;
  double time_unit_s = 1;  ///< Of the profile.
  bool of_phaze = true;
  std::string assumption;
};

/// Bound and time are rounded in different orders.
bool proven(const PhazeRun& run) { return is_proven(run.placement->bound_s, run.time_s); }

struct PhazeAnswer {
  PhazeOptions options;
  std::vector<PhazeRun> runs;
  std::size_t best = 0;
  double wall_s = 0;
};

double time_of(const PhazePlacement& placement, PhazeObjective objective, double simulated_s) {
  switch (objective) {
    case PhazeObjective::program:
      return placement.program_s;
    case PhazeObjective::simulated:
      return simulated_s;
    case PhazeObjective::flush:
      break;
  }
  return placement.flush_s;
}

bool by_program(const ProfileOptions& o) { return o.rules == "program"; }

void check_options(const ProfileOptions& o) {
  refuse_options(o, {"levels", "knapsack", "tensors", "sum-of-dp", "uneven-microbatches", "table"},
                 "piper");
  if (o.rules == "paper") {
    throw Error(Where{"", 0, "--rules"}, "the paper's rules are for the planner piper",
                "use program or corrected");
  }
  if (by_program(o) && o.objective != "program") {
    refuse_options(o, {"objective"}, "phaze --rules corrected");
  }
  if (o.profiles.size() > 1 && o.micro_batches > 0) {
    throw Error(Where{"", 0, "--max-microbatches"}, "cannot be the same for several profiles",
                "leave it out: each profile has its own");
  }
}

/// How Phaze's own inputs are read.
PhazeReading reading_of(const ProfileOptions& o) {
  PhazeReading reading;
  reading.last_tensor_only = by_program(o);
  if (by_program(o)) reading.latency_unit_s = 1;
  if (!o.time_unit.empty()) reading.latency_unit_s = time_unit_s(o.time_unit);
  return reading;
}

/// A problem, what its times are in, and what it takes for granted; empty for nothing.
struct ReadPhaze {
  PhazeProblem problem;
  double time_unit_s = 1;
  bool of_phaze = true;  ///< In the format of its program.
  std::string assumption;
};

/// A profile in braid's or Piper's format.
ReadPhaze read_other_format(const ProfileOptions& o, const std::string& file, const Value& root) {
  PiperProfile of_file;
  if (is_piper_profile(root)) {
    of_file = piper_profile_from_json(root);
  } else {
    of_file.profile = read_profile(file);
  }
  const Profile& profile = of_file.profile;
  check_profile(profile, file);
  ReadPhaze read;
  read.of_phaze = false;
  read.time_unit_s = o.time_unit.empty() ? profile.time_unit_s : time_unit_s(o.time_unit);
  read.problem = phaze_from_profile(profile, read.time_unit_s);
  read.problem.devices = count_of("--devices", o.devices, of_file.devices);
  read.problem.micro_batches =
      count_of("--max-microbatches", o.micro_batches, of_file.micro_batches);
  read.problem.bytes_per_s = of_file.bandwidth_bytes / read.time_unit_s;
  read.problem.memory_bytes =
      o.memory.empty() ? quantity_of("--memory", "", Unit::bytes, of_file.memory_bytes) : 0;
  read.assumption = states_memory(profile)
                        ? "passes that the profile has in one figure are told apart by what "
                          "recomputation adds, or as one to two"
                        : "the profile does not state all memory: weights, gradients and Adam's "
                          "state of mixed precision, not sharded, are 18 bytes a parameter";
  return read;
}

ReadPhaze read_problem(const ProfileOptions& o, const std::string& file,
                       const PhazeReading& reading) {
  const Document document = Document::parse_file(file);
  ReadPhaze read;
  if (is_phaze_input(document.root())) {
    read.problem = read_phaze(document.root(), reading);
    read.time_unit_s = reading.latency_unit_s;
  } else {
    read = read_other_format(o, file, document.root());
  }
  if (o.devices > 0) read.problem.devices = o.devices;
  if (o.micro_batches > 0) read.problem.micro_batches = o.micro_batches;
  read.problem.bytes_per_s =
      quantity_of("--bandwidth", o.bandwidth, Unit::bytes_per_s, read.problem.bytes_per_s);
  return read;
}

/// Every combination that the options name.
std::vector<PhazeRun> runs_of(const ProfileOptions& o, const PhazeReading& reading) {
  std::vector<PhazeRun> runs;
  for (const std::string& file : o.profiles) {
    const ReadPhaze read = read_problem(o, file, reading);
    const PhazeProblem& problem = read.problem;
    std::vector<double> memories;
    for (const std::string& memory : o.memory) {
      memories.push_back(quantity_of("--memory", memory, Unit::bytes, 0));
    }
    if (memories.empty()) memories.push_back(problem.memory_bytes);
    std::vector<bool> recomputes;
    for (const std::string& kept : o.activations) recomputes.push_back(kept == "recompute");
    if (recomputes.empty()) recomputes.push_back(problem.recompute);
    for (const double memory_bytes : memories) {
      for (const bool recompute : recomputes) {
        runs.push_back(
            {file, problem, {}, {}, 0, 0, read.time_unit_s, read.of_phaze, read.assumption});
        runs.back().problem.memory_bytes = memory_bytes;
        runs.back().problem.recompute = recompute;
      }
    }
  }
  return runs;
}

PhazeAnswer answer_of(const ProfileOptions& o, const SearchProgress& progress) {
  PhazeAnswer answer;
  if (!o.objective.empty()) answer.options.objective = parse_phaze_objective(o.objective);
  if (by_program(o)) answer.options = {.objective = PhazeObjective::program, .branches = false};
  answer.options.progress = progress;
  answer.runs = runs_of(o, reading_of(o));
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < answer.runs.size(); ++i) {
    PhazeRun& run = answer.runs[i];
    run.placement = place_phaze(run.problem, answer.options);
    if (!run.placement.has_value()) continue;
    run.simulated_s = phaze_simulated_s(run.problem, *run.placement);
    run.time_s = time_of(*run.placement, answer.options.objective, run.simulated_s);
    const PhazeRun& best = answer.runs[answer.best];
    if (!best.placement.has_value() || run.time_s < best.time_s) answer.best = i;
  }
  answer.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answer;
}

/// Another plan for the problem of a run: the expert's, or that of the program.
struct OtherPlan {
  PhazePlacement placement;
  double own_s = 0;  ///< What the program says that it takes; 0: nothing.
  double simulated_s = 0;
  bool fits = false;
};

OtherPlan other_plan(const PhazeProblem& problem, PhazePlacement placement, double own_s) {
  OtherPlan other;
  other.simulated_s = phaze_simulated_s(problem, placement);
  other.fits = placement.fits(problem);
  other.own_s = own_s;
  other.placement = std::move(placement);
  return other;
}

/// What the published program answers for a run, costed by the rules of the run.
std::optional<OtherPlan> plan_of_program(const ProfileOptions& o, const PhazeRun& run) {
  if (!run.of_phaze || by_program(o)) return std::nullopt;
  PhazeReading reading;
  reading.latency_unit_s = 1;
  reading.last_tensor_only = true;
  PhazeProblem problem = read_problem(o, run.profile, reading).problem;
  problem.memory_bytes = run.problem.memory_bytes;
  problem.recompute = run.problem.recompute;
  const auto found =
      place_phaze(problem, {.objective = PhazeObjective::program, .branches = false});
  if (!found.has_value()) return std::nullopt;
  const auto width = std::find_if(run.problem.widths.begin(), run.problem.widths.end(),
                                  [&](const PhazeWidth& w) { return w.tp == found->tp; });
  return other_plan(run.problem, phaze_placement(run.problem, *width, found->dp, found->stages),
                    found->program_s);
}

std::optional<OtherPlan> plan_of_expert(const PhazeRun& run) {
  auto placement = phaze_expert_placement(run.problem);
  if (!placement.has_value()) return std::nullopt;
  return other_plan(run.problem, std::move(*placement), 0);
}

std::string shape_text(const PhazePlacement& placement) {
  const std::size_t stages = placement.stages.size();
  return fmt::format("{} stage{}, {} replica{}, tensor width {}", stages, stages == 1 ? "" : "s",
                     placement.dp, placement.dp == 1 ? "" : "s", placement.tp);
}

std::string kept_text(const PhazeProblem& problem) {
  return problem.recompute ? "recompute" : "stash";
}

std::string rules_text(const ProfileOptions& o, const PhazeAnswer& answer) {
  std::string text =
      fmt::format("{}, latencies taken for {} s, ",
                  by_program(o) ? "costs as Phaze's program has them" : "Phaze's costs put right",
                  answer.runs[answer.best].time_unit_s);
  if (answer.options.objective == PhazeObjective::program) {
    return text +
           "unequal stages charged as the longest, only the first stage's gradients (the "
           "program's formula)";
  }
  text += "stages charged for what they take, every stage's gradients";
  if (answer.options.objective == PhazeObjective::simulated)
    text += "; the simulated time is least";
  return text;
}

std::int64_t devices_used(const PhazePlacement& placement) {
  std::int64_t devices = 0;
  for (const PhazeStage& stage : placement.stages) devices += stage.devices;
  return devices * placement.dp;
}

double formula_s(const PhazeAnswer& answer, const PhazePlacement& placement) {
  return answer.options.objective == PhazeObjective::program ? placement.program_s
                                                             : placement.flush_s;
}

Json times_to_json(const PhazePlacement& placement, double simulated_s) {
  return {{"program_s", placement.program_s},
          {"flush_s", placement.flush_s},
          {"simulated_s", simulated_s}};
}

Json other_to_json(const std::optional<OtherPlan>& other) {
  if (!other.has_value()) return nullptr;
  Json json = times_to_json(other->placement, other->simulated_s);
  if (other->own_s > 0) json["own_s"] = other->own_s;
  json["pp"] = other->placement.stages.size();
  json["dp"] = other->placement.dp;
  json["tp"] = other->placement.tp;
  json["fits"] = other->fits;
  return json;
}

Json run_to_json(const PhazeRun& run) {
  Json json = Json::object();
  json["profile"] = run.profile;
  json["memory_bytes"] = run.problem.memory_bytes;
  json["activations"] = kept_text(run.problem);
  if (!run.placement.has_value()) {
    json["status"] = name_of(run.shortfall->proven ? Status::infeasible : Status::budget_exhausted);
    json["reason"] = run.shortfall->reason;
    return json;
  }
  json["status"] = name_of(proven(run) ? Status::optimal : Status::feasible);
  json["time_s"] = run.time_s;
  json["lower_bound"] = std::min(run.placement->bound_s, run.time_s);
  json["all_cuts"] = run.placement->all_cuts;
  json["times"] = times_to_json(*run.placement, run.simulated_s);
  json["pp"] = run.placement->stages.size();
  json["dp"] = run.placement->dp;
  json["tp"] = run.placement->tp;
  return json;
}

Json stages_to_json(const PhazeProblem& problem, const PhazePlacement& placement) {
  Json json = Json::array();
  std::int64_t first_device = 0;
  for (const PhazeStage& stage : placement.stages) {
    Json part = Json::object();
    part["layers"] = ranges_text(stage.layers);
    part["names"] = Json::array();
    for (const std::int32_t layer : stage.layers) {
      part["names"].push_back(problem.names[static_cast<std::size_t>(layer)]);
    }
    part["branches"] = stage.branches;
    part["devices"] = Json::array({first_device, first_device + stage.devices - 1});
    first_device += stage.devices;
    part["forward_s"] = stage.forward_s;
    part["backward_s"] = stage.backward_s;
    part["memory_bytes"] = stage.peak_bytes;
    json.push_back(std::move(part));
  }
  return json;
}

Json to_json(const ProfileOptions& o, const PhazeAnswer& answer) {
  const PhazeRun& best = answer.runs[answer.best];
  Json json = Json::object();
  json["status"] = nullptr;
  json["planner"] = "phaze";
  json["objective"] = {{"name", "time per batch (s)"}, {"value", nullptr}};
  json["rules"] = {{"costs", by_program(o) ? "program" : "corrected"},
                   {"objective", name_of(answer.options.objective)},
                   {"latency_unit_s", best.time_unit_s},
                   {"text", rules_text(o, answer)}};
  json["devices"] = best.problem.devices;
  json["max_microbatches"] = best.problem.micro_batches;
  json["bandwidth_bytes_per_s"] = best.problem.bytes_per_s;
  json.update(run_to_json(best));
  if (best.placement.has_value()) {
    json["objective"]["value"] = best.time_s;
    json["gap"] =
        best.time_s > 0 ? 1 - std::min(best.placement->bound_s, best.time_s) / best.time_s : 0;
    json["devices_used"] = devices_used(*best.placement);
    json["micro_batches"] = best.placement->micro_batches;
    json["stages"] = stages_to_json(best.problem, *best.placement);
    json["expert"] = other_to_json(plan_of_expert(best));
    if (!by_program(o)) json["program"] = other_to_json(plan_of_program(o, best));
  }
  json["runs"] = Json::array();
  for (const PhazeRun& run : answer.runs) {
    json["runs"].push_back(run_to_json(run));
  }
  json["search"] = {{"wall_s", answer.wall_s}};
  json["assumptions"] = Json::array();
  if (!best.assumption.empty()) json["assumptions"].push_back(best.assumption);
  return json;
}

std::string other_text(const char* whose, const OtherPlan& other) {
  return fmt::format("{} plan: {}: {:.6g} s, simulated {:.6g} s{}{}\n", whose,
                     shape_text(other.placement), other.placement.flush_s, other.simulated_s,
                     other.own_s > 0 ? fmt::format(" (it says {:.6g} s)", other.own_s) : "",
                     other.fits ? "" : "; it does not fit");
}

std::string stages_table(const PhazePlacement& placement) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "layers", "devices", "branches", "forward", "backward", "memory"}};
  for (std::size_t s = 0; s < placement.stages.size(); ++s) {
    const PhazeStage& stage = placement.stages[s];
    rows.push_back({std::to_string(s + 1), ranges_text(stage.layers), std::to_string(stage.devices),
                    std::to_string(stage.branches), format_seconds(stage.forward_s),
                    format_seconds(stage.backward_s), format_bytes(stage.peak_bytes)});
  }
  return text_table(rows);
}

std::string runs_table(const PhazeAnswer& answer) {
  std::vector<std::vector<std::string>> rows = {
      {"memory", "activations", "s per batch", "simulated", "plan", "profile"}};
  for (const PhazeRun& run : answer.runs) {
    std::vector<std::string> row = {format_bytes(run.problem.memory_bytes), kept_text(run.problem)};
    if (run.placement.has_value()) {
      row.push_back(fmt::format("{:.6g}", formula_s(answer, *run.placement)));
      row.push_back(fmt::format("{:.6g}", run.simulated_s));
      row.push_back(shape_text(*run.placement));
    } else {
      row.insert(row.end(), {"-", "-", "none"});
    }
    row.push_back(run.profile);
    rows.push_back(std::move(row));
  }
  return text_table(rows);
}

std::string answer_text(const ProfileOptions& o, const PhazeAnswer& answer) {
  const PhazeRun& best = answer.runs[answer.best];
  const PhazePlacement& placement = *best.placement;
  std::string text = fmt::format(
      "phaze: {:.9g} s per batch by the formula, {:.9g} s simulated, on {} of {} devices\n"
      "{}, {} micro-batches each, {}, {} a device\n{}\n\n{}\n",
      formula_s(answer, placement), best.simulated_s, devices_used(placement), best.problem.devices,
      shape_text(placement), placement.micro_batches,
      best.problem.recompute ? "forward passes repeated" : "activations kept",
      format_bytes(best.problem.memory_bytes), rules_text(o, answer), stages_table(placement));
  if (answer.runs.size() > 1) text += runs_table(answer) + "\n";
  if (const auto expert = plan_of_expert(best)) text += other_text("expert's", *expert);
  if (const auto program = plan_of_program(o, best)) text += other_text("program's", *program);
  if (proven(best)) {
    text += fmt::format("Proven: the best of the planner's space ({:.3g} s)\n", answer.wall_s);
  } else {
    text += fmt::format("Not proven: nothing in the planner's space is below {:.9g} s\n",
                        placement.bound_s);
  }
  if (!placement.all_cuts) {
    text += "The graph has too many cuts: those along four topological orders were looked at\n";
  }
  if (!best.assumption.empty()) text += fmt::format("Assumed: {}\n", best.assumption);
  return text;
}

/// The plan that the best placement stands for.
ProfileOutcome plan_of_best(const ProfileOptions& o, const PhazeAnswer& answer) {
  const PhazeRun& best = answer.runs[answer.best];
  ProfileOutcome made;
  if (!best.placement.has_value()) {
    made.outcome.status = best.shortfall->proven ? Status::infeasible : Status::budget_exhausted;
    made.no_plan = best.shortfall->reason;
    made.outcome.infeasibility = Infeasibility{made.no_plan, -1, 0, 0, {}};
    return made;
  }
  const ReadProfile read = read_profile_file(o, best.profile);
  const System system =
      plain_system(best.problem.devices, best.problem.memory_bytes, best.problem.bytes_per_s);
  const ProfileTarget target{
      &read.profile, std::max(1, only_micro_batch(read.profile)), {}, &system, "phaze",
      best.profile};
  PhazeOptions options = answer.options;
  options.progress = {};
  made = outcome_of_placement(target, best.problem, *best.placement, best.time_s, options);
  add_assumptions(read, made.outcome);
  return made;
}

/// Says why there is none for the runs without a placement; for the best alone unless `all`.
void explain(PhazeAnswer& answer, bool all) {
  for (PhazeRun& run : answer.runs) {
    if (run.placement.has_value() || !(all || &run == &answer.runs[answer.best])) continue;
    run.shortfall = phaze_shortfall(run.problem, answer.options);
  }
}

}  // namespace

CheckedOutcome phaze_outcome(const ProfileOptions& options, const SearchProgress& progress) {
  check_options(options);
  PhazeAnswer answer = answer_of(options, progress);
  explain(answer, false);
  CheckedOutcome checked;
  checked.outcome = plan_of_best(options, answer).outcome;
  checked.wall_s = answer.wall_s;
  const std::string& assumption = answer.runs[answer.best].assumption;
  if (!assumption.empty()) checked.outcome.assumptions.push_back(assumption);
  return checked;
}

int plan_phaze_profile(const ProfileOptions& options, bool json, const std::string& output,
                       const SearchProgress& progress) {
  check_options(options);
  PhazeAnswer answer = answer_of(options, progress);
  const PhazeRun& best = answer.runs[answer.best];
  explain(answer, json);
  ProfileOutcome made = plan_of_best(options, answer);
  finish_plan(made, "phaze", output);
  if (output == "-" && best.placement.has_value()) return kFound;
  if (json) {
    Json out = to_json(options, answer);
    add_plan(made, out);
    fmt::print("{}", to_text(out));
  } else if (best.placement.has_value()) {
    fmt::print("{}{}", answer_text(options, answer), plan_line(made));
  } else {
    fmt::print(stderr, "braid: no plan{}: {}\n", best.shortfall->proven ? "" : " found",
               best.shortfall->reason);
  }
  if (best.placement.has_value()) return kFound;
  return best.shortfall->proven ? kInfeasible : kExhausted;
}

}  // namespace braid
