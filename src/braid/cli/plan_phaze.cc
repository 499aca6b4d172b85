#include "braid/cli/plan_phaze.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/cli/phaze_report.h"
#include "braid/cli/profile_job.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/planners/phaze/from_profile.h"
#include "braid/planners/phaze/placement.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/plain_system.h"
#include "braid/profile/piper_profile.h"
#include "braid/profile/profile_json.h"

namespace braid {
namespace {

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

PhazeAnswer answer_of(const ProfileOptions& o, const Progress& progress) {
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

PhazeReference reference_of(const PhazeProblem& problem, PhazePlacement placement, double own_s) {
  PhazeReference reference;
  reference.simulated_s = phaze_simulated_s(problem, placement);
  reference.fits = placement.fits(problem);
  reference.own_s = own_s;
  reference.placement = std::move(placement);
  return reference;
}

/// What the published program answers for a run, costed by the rules of the run.
std::optional<PhazeReference> program_reference(const ProfileOptions& o, const PhazeRun& run) {
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
  return reference_of(run.problem, phaze_placement(run.problem, *width, found->dp, found->stages),
                      found->program_s);
}

std::optional<PhazeReference> expert_reference(const PhazeRun& run) {
  auto placement = phaze_expert_placement(run.problem);
  if (!placement.has_value()) return std::nullopt;
  return reference_of(run.problem, std::move(*placement), 0);
}

PhazeReferences references_of(const ProfileOptions& o, const PhazeRun& best) {
  if (!best.placement.has_value()) return {};
  return {expert_reference(best), program_reference(o, best)};
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

CheckedOutcome phaze_outcome(const ProfileOptions& options, const Progress& progress) {
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

int plan_phaze_profile(const ProfileOptions& options, const AnswerOutput& to,
                       const Progress& progress) {
  check_options(options);
  PhazeAnswer answer = answer_of(options, progress);
  const PhazeRun& best = answer.runs[answer.best];
  explain(answer, to.json);
  ProfileOutcome made = plan_of_best(options, answer);
  finish_plan(made, "phaze", to.file);
  if (to.file == "-" && best.placement.has_value()) return kFound;
  if (to.json) {
    Json out = phaze_json(options, answer, references_of(options, best));
    add_plan(made, out);
    fmt::print("{}", to_text(out));
  } else if (best.placement.has_value()) {
    fmt::print("{}{}", phaze_text(options, answer, references_of(options, best)), plan_line(made));
    say_written_below({{"Plan", to.file}});
  } else {
    fmt::print(stderr, "braid: no plan{}: {}\n", best.shortfall->proven ? "" : " found",
               best.shortfall->reason);
  }
  if (best.placement.has_value()) return kFound;
  return best.shortfall->proven ? kInfeasible : kExhausted;
}

}  // namespace braid
