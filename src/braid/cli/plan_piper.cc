#include "braid/cli/plan_piper.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/piper_report.h"
#include "braid/cli/profile_job.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/planners/phaze/problem.h"
#include "braid/planners/phaze_as_piper.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/table.h"
#include "braid/planners/piper/variants.h"
#include "braid/profile/piper_profile.h"
#include "braid/profile/profile_json.h"

namespace braid {
namespace {

PiperRules rules_of(const ProfileOptions& o) {
  PiperRules rules;
  if (o.rules == "paper") {
    rules.split = PiperSplit::ideal;
    rules.sync = PiperSync::per_round;
  }
  if (o.uneven) rules.split = PiperSplit::uneven;
  if (o.knapsack == "heuristic") rules.knapsack = PiperKnapsack::heuristic;
  if (o.tensors == "once") rules.tensors = PiperTensors::once;
  if (o.sum == "exact") rules.sum = PiperSum::exact;
  return rules;
}

/// Fills in the devices and how they are connected.
void read_network(const ProfileOptions& o, const PiperProfile& file, PiperProblem& problem) {
  const double unit_s = time_unit_s(o.time_unit);
  if (o.levels.empty()) {
    problem.devices = count_of("--devices", o.devices, file.devices);
    problem.bandwidth_bytes =
        unit_s * quantity_of("--bandwidth", o.bandwidth, Unit::bytes_per_s, file.bandwidth_bytes);
    return;
  }
  problem.levels = parse_levels(o.levels);
  problem.devices = 1;
  for (PiperLevel& level : problem.levels) {
    level.bandwidth_bytes *= unit_s;
    if (level.devices > kMostPiperDevices / problem.devices) {
      throw Error(Where{"", 0, "--levels"}, "has too many devices",
                  "use at most " + std::to_string(kMostPiperDevices) + " in all");
    }
    problem.devices *= level.devices;
  }
  problem.bandwidth_bytes = problem.levels.front().bandwidth_bytes;
}

/// A problem and what it takes for granted; empty for nothing.
struct ReadPiper {
  PiperProblem problem;
  std::string assumption;
};

/// An input of Phaze's program, whose times become seconds.
ReadPiper read_input_of_phaze(const ProfileOptions& o, const Document& document) {
  PhazeReading reading;
  if (!o.time_unit_of_phaze.empty()) reading.latency_unit_s = time_unit_s(o.time_unit_of_phaze);
  const PhazeProblem input = read_phaze(document.root(), reading);
  PiperProblem problem = piper_from_phaze(input);
  PiperProfile file;
  file.devices = input.devices;
  file.bandwidth_bytes = input.bytes_per_s;
  read_network(o, file, problem);
  problem.micro_batches = count_of("--max-microbatches", o.micro_batches, input.micro_batches);
  problem.memory_bytes = quantity_of("--memory", o.memory.empty() ? "" : o.memory.front(),
                                     Unit::bytes, input.memory_bytes);
  problem.rules = rules_of(o);
  check_piper_problem(problem, o.profiles.front());
  return {std::move(problem),
          fmt::format("Phaze's latencies are in units of {} s; a layer that is recomputed repeats "
                      "its forward pass and keeps its inputs",
                      reading.latency_unit_s)};
}

ReadPiper read_problem(const ProfileOptions& o, const Document& document) {
  const std::string& file = o.profiles.front();
  if (is_phaze_input(document.root())) return read_input_of_phaze(o, document);
  PiperProfile read;
  if (is_piper_profile(document.root())) {
    read = piper_profile_from_json(document.root());
  } else {
    read.profile = profile_from_json(document.root());
  }
  check_profile(read.profile, file);
  PiperProblem problem =
      piper_from_profile(read.profile, std::max(1, only_micro_batch(read.profile)));
  read_network(o, read, problem);
  problem.micro_batches = count_of("--max-microbatches", o.micro_batches, read.micro_batches);
  problem.memory_bytes = quantity_of("--memory", o.memory.empty() ? "" : o.memory.front(),
                                     Unit::bytes, read.memory_bytes);
  problem.rules = rules_of(o);
  check_piper_problem(problem, file);
  if (states_memory(read.profile)) return {std::move(problem), ""};
  return {std::move(problem),
          "the profile does not state all memory: weights, gradients and Adam's state of mixed "
          "precision, not sharded, are 18 bytes a parameter"};
}

/// The unit of a profile's times where the file says it; empty where its form cannot.
std::string unit_stated_by(const Value& profile) {
  if (is_phaze_input(profile) || is_piper_profile(profile)) return "";
  const Value unit = profile["time_unit_s"];
  if (!unit.exists()) return "";
  for (const char* name : {"s", "ms", "us"}) {
    if (unit.as_double_in(0, 1) == time_unit_s(name)) return name;
  }
  unit.fail("is no second, millisecond or microsecond", "write 1, 1e-3 or 1e-6");
}

/// With Piper's defaults filled in. Throws Error for what only Phaze takes.
ProfileOptions piper_options(ProfileOptions o, bool of_phaze, const std::string& stated_unit) {
  refuse_options(o, {"objective", "activations"}, "phaze");
  if (o.profiles.size() > 1 || o.memory.size() > 1) {
    throw Error(Where{"", 0, o.memory.size() > 1 ? "--memory" : "--profile"},
                "is given more than once", "only the planner phaze takes several");
  }
  if (o.rules == "corrected") {
    throw Error(Where{"", 0, "--rules"}, "corrected rules are for the planner phaze",
                "use program or paper");
  }
  if (o.rules.empty()) o.rules = "program";
  if (of_phaze) std::swap(o.time_unit, o.time_unit_of_phaze);
  if (o.time_unit.empty()) o.time_unit = stated_unit;
  o.unit_is_given = of_phaze || !o.time_unit.empty();
  if (o.time_unit.empty()) o.time_unit = "s";
  return o;
}

/// Lines `devices,sum_of_dp,time` for at most so many of each, where anything fits.
void write_table(const PiperTable& table, const std::string& file) {
  std::string text = "devices,sum_of_dp,time\n";
  for (std::int64_t k = 1; k <= table.devices; ++k) {
    for (std::int64_t s = 1; s <= std::min(k, table.suffixes); ++s) {
      const double time = table.at(k, s);
      if (std::isfinite(time)) fmt::format_to(std::back_inserter(text), "{},{},{}\n", k, s, time);
    }
  }
  write_file(file, text);
}

/// Throws for what does not go with levels of the network.
void check_levels(const ProfileOptions& o, const PiperVariant& variant) {
  if (o.levels.empty()) return;
  if (!variant.is_piper) {
    throw Error(Where{"", 0, "--levels"}, std::string(variant.name) + " takes the network as flat",
                "use --bandwidth");
  }
  refuse_given(o, {"devices", "bandwidth", "table"}, "does not go with --levels");
  if (o.knapsack == "heuristic" || o.sum == "exact") {
    throw Error(Where{"", 0, "--levels"},
                "does not go with --knapsack heuristic and --sum-of-dp exact",
                "leave one of them out");
  }
}

/// Throws for what cannot have the degrees sum to exactly the micro-batches.
void check_exact_sum(const ProfileOptions& o, const PiperVariant& variant) {
  if (o.sum != "exact") return;
  if (variant.is_piper && o.knapsack == "exact" && o.table.empty()) return;
  throw Error(Where{"", 0, "--sum-of-dp"},
              "exact does not go with --table, --knapsack heuristic, equi and pipedream",
              "leave one of them out");
}

/// An answer of Piper's planner or one of its relatives.
struct PiperAnswer {
  ProfileOptions options;  ///< With its defaults.
  PiperProblem problem;
  std::string assumption;
  PiperSolution solution;
  double wall_s = 0;
  ProfileOutcome made;
};

/// `given` is what the command line says; --table is written on the way.
PiperAnswer answer_of(const ProfileOptions& given, const Document& document,
                      const PiperVariant& variant, std::int64_t budget, const Progress& progress) {
  PiperAnswer answer;
  answer.options =
      piper_options(given, is_phaze_input(document.root()), unit_stated_by(document.root()));
  const ProfileOptions& options = answer.options;
  check_exact_sum(options, variant);
  check_levels(options, variant);
  auto [problem, assumption] = read_problem(options, document);
  answer.problem = std::move(problem);
  answer.assumption = std::move(assumption);
  const double unit_s = time_unit_s(options.time_unit);
  PiperSearchLimits limits{.work = budget};
  if (progress) {
    limits.progress = [&progress, unit_s](double best, double bound, std::int64_t work) {
      progress(best * unit_s, bound * unit_s, work);
    };
  }
  if (!options.table.empty()) {
    if (variant.name != "piper") {
      throw Error(Where{"", 0, "--table"}, "is for the planner piper");
    }
    write_table(piper_table(answer.problem, limits), options.table);
    if (options.table == "-") return answer;
  }
  const auto start = std::chrono::steady_clock::now();
  answer.solution = variant.solve(answer.problem, limits);
  answer.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (answer.solution.status == Status::infeasible && answer.solution.reason.empty()) {
    explain_infeasible(variant.restrict(answer.problem), variant.search, limits, answer.solution);
  }
  const std::string& file = given.profiles.front();
  const ReadProfile read = read_profile_document(given, document, file);
  const System system = plain_system_of(given, read);
  const ProfileTarget target{&read.profile,
                             std::max(1, only_micro_batch(read.profile)),
                             {},
                             &system,
                             std::string(variant.name),
                             file};
  limits.progress = {};
  answer.made =
      outcome_of_solution(target, variant, answer.problem, answer.solution, unit_s, limits);
  add_assumptions(read, answer.made.outcome);
  return answer;
}

}  // namespace

CheckedOutcome piper_outcome(const ProfileOptions& given, const Document& document,
                             const std::string& planner, std::int64_t budget,
                             const Progress& progress) {
  PiperAnswer answer = answer_of(given, document, find_piper_variant(planner), budget, progress);
  CheckedOutcome checked;
  checked.outcome = std::move(answer.made.outcome);
  checked.wall_s = answer.wall_s;
  if (!answer.assumption.empty()) checked.outcome.assumptions.push_back(answer.assumption);
  return checked;
}

int plan_piper_profile(const ProfileOptions& given, const Document& document,
                       const std::string& planner, std::int64_t budget, const AnswerOutput& to,
                       const Progress& progress) {
  PiperAnswer answer = answer_of(given, document, find_piper_variant(planner), budget, progress);
  const auto& [options, problem, assumption, solution, wall_s, made] = answer;
  if (options.table == "-") return kFound;
  finish_plan(answer.made, planner, to.file);
  const int status = !solution.stages.empty()                      ? kFound
                     : solution.status == Status::budget_exhausted ? kExhausted
                                                                   : kInfeasible;
  if (to.file == "-" && status == kFound) return status;
  if (to.json) {
    Json out = piper_json(problem, solution, options, planner, wall_s);
    out["assumptions"] = Json::array();
    if (!assumption.empty()) out["assumptions"].push_back(assumption);
    add_plan(made, out);
    fmt::print("{}", to_text(out));
  } else if (status == kFound) {
    fmt::print("{}{}", piper_text(problem, solution, options, planner), plan_line(made));
    if (!assumption.empty()) fmt::print("Assumed: {}\n", assumption);
    say_written_below({{"Plan", to.file}, {"Table", options.table}});
  } else {
    fmt::print(stderr, "braid: no plan: {}\n",
               status == kExhausted ? "the budget is used up" : solution.reason);
  }
  return status;
}

}  // namespace braid
