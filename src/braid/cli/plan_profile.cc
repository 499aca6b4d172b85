#include "braid/cli/plan_profile.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/piper_report.h"
#include "braid/cli/plan_phaze.h"
#include "braid/cli/profile_job.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verbs.h"
#include "braid/plan/plan_json.h"
#include "braid/planners/phaze/problem.h"
#include "braid/planners/piper/from_phaze.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/table.h"
#include "braid/planners/piper/variants.h"
#include "braid/profile/piper_profile.h"
#include "braid/profile/profile_json.h"

namespace braid {

void add_profile_options(Verb& app, ProfileOptions& o) {
  for (const VerbOption& option : app.options()) {
    const bool shared =
        option.is("json") || option.is("budget") || option.is("objective") || option.is("progress");
    (shared ? o.shared_options : o.options_of_models).push_back(option);
  }
  add_texts(app, "--profile", o.profiles,
            "Plan from this profile (braid's, Piper's or Phaze's format) instead of a model; one "
            "for each micro-batch size in Phaze's");
  const std::size_t before = app.options().size();
  add_count(app, "--devices", o.devices, 1, kMostPiperDevices, "Devices (default: the file's)");
  add_count(app, "--max-microbatches", o.micro_batches, 1, kMostPiperDevices,
            "Micro-batches in a batch (default: the file's)");
  add_texts(app, "--memory", o.memory,
            "Memory of a device (default: the file's); phaze takes several")
      .delimiter(',');
  add_text(app, "--bandwidth", o.bandwidth, "Of a device's link (default: the file's)");
  add_text(app, "--levels", o.levels,
           "A hierarchical network instead of --devices and --bandwidth, lowest "
           "level first: 8@300GB/s,64@25GB/s is 64 nodes of 8 devices");
  app.add_option("--time-unit", o.time_unit,
                 "What its times are in, s, ms or us (default: s; Phaze's are ms)")
      .one_of({"s", "ms", "us"});
  app.add_option("--rules", o.rules,
                 "Costs as the published program has them (piper's default), as "
                 "Piper's paper does, or with Phaze's program put right (phaze's default)")
      .one_of({"program", "paper", "corrected"});
  app.add_option("--knapsack", o.knapsack, "Choice of options within memory")
      .one_of({"exact", "heuristic"});
  app.add_option("--tensors", o.tensors,
                 "Charge tensors that cross stages per reader or once a stage")
      .one_of({"once", "per-edge"});
  app.add_option("--sum-of-dp", o.sum,
                 "Whether data-parallel degrees sum to at most the micro-batches")
      .one_of({"at-most", "exact"});
  app.add_flag("--uneven-microbatches", o.uneven,
               "Data-parallel degrees need not divide the micro-batches");
  app.add_option("--activations", o.activations,
                 "Of phaze: stash, recompute or both (default: the file's)")
      .delimiter(',')
      .one_of({"stash", "recompute"});
  add_output_file(app, "--table", o.table,
                  "Write the best time for every number of devices as CSV");
  const std::vector<VerbOption> all = app.options();
  o.own_options.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  for (const VerbOption& option : o.own_options) option.group("With --profile");
}

namespace {

/// What only a model can be asked for.
bool is_of_models_alone(const VerbOption& option) {
  const std::string name = option.name();
  return name == "MODEL" || option.is("seq-len") || option.is("dim") || option.is("sharding") ||
         option.is("calibration");
}

}  // namespace

void check_profile_options(const ProfileOptions& o) {
  const bool from_profile = !o.profiles.empty();
  for (const VerbOption& option : from_profile ? o.options_of_models : o.own_options) {
    if (!option.given()) continue;
    if (from_profile && !is_of_models_alone(option)) continue;
    throw Error(Where{"", 0, option.name()},
                from_profile ? "does not go with --profile" : "goes with --profile only",
                "see braid plan --help");
  }
}

void refuse_given(const ProfileOptions& o, std::initializer_list<const char*> names,
                  const std::string& message) {
  for (const auto* options : {&o.own_options, &o.shared_options}) {
    for (const VerbOption& option : *options) {
      if (!option.given()) continue;
      for (const char* name : names) {
        if (!option.is(name)) continue;
        throw Error(Where{"", 0, option.name()}, message, "leave it out");
      }
    }
  }
}

void refuse_options(const ProfileOptions& o, std::initializer_list<const char*> names,
                    const char* planner) {
  refuse_given(o, names, std::string("is for the planner ") + planner);
}

double quantity_of(const char* option, const std::string& text, Unit unit, double otherwise) {
  if (text.empty()) {
    if (otherwise > 0) return otherwise;
    throw Error(Where{"", 0, option}, "is not given, and the profile does not say",
                "add " + std::string(option) + " '" + std::string(quantity_example(unit)) + "'");
  }
  const auto value = parse_quantity(text, unit);
  if (value && *value > 0) {
    if (const auto fault = implausible(*value, unit)) {
      throw Error(Where{"", 0, option}, fault->message, fault->remedy);
    }
    return *value;
  }
  throw Error(Where{"", 0, option}, "\"" + text + "\" is not understood",
              "write it like '" + std::string(quantity_example(unit)) + "'");
}

double time_unit_s(const std::string& name) { return name == "s" ? 1 : name == "ms" ? 1e-3 : 1e-6; }

std::int64_t count_of(const char* option, std::int64_t given, std::int64_t otherwise) {
  if (given > 0) return given;
  if (otherwise > 0) return otherwise;
  throw Error(Where{"", 0, option}, "is not given, and the profile does not say",
              "add " + std::string(option) + " N");
}

std::vector<PiperLevel> parse_levels(const std::string& text) {
  std::vector<PiperLevel> levels;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t sign = part.find('@');
    const std::string_view rate =
        sign == std::string::npos ? "" : std::string_view(part).substr(sign + 1);
    const double bytes_per_s = parse_quantity(rate, Unit::bytes_per_s).value_or(0);
    std::int64_t devices = 0;
    const char* const count_end = part.data() + std::min(sign, part.size());
    const auto [read_to, fault] = std::from_chars(part.data(), count_end, devices);
    if (bytes_per_s <= 0 || fault != std::errc() || read_to != count_end || devices < 1) {
      throw Error(Where{"", 0, "--levels"}, "\"" + part + "\" is not understood",
                  "write each level like 8@300GB/s, the lowest first");
    }
    if (const auto out = implausible(bytes_per_s, Unit::bytes_per_s)) {
      throw Error(Where{"", 0, "--levels"}, out->message, out->remedy);
    }
    levels.push_back({devices, bytes_per_s});
    at = end + 1;
  }
  return levels;
}

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
  if (!variant.is_piper()) {
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
  if (variant.is_piper() && o.knapsack == "exact" && o.table.empty()) return;
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
                      const PiperVariant& variant, std::int64_t budget,
                      const SearchProgress& progress) {
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

/// The planner asked for, or the profile's own.
std::string own_planner(const std::string& asked, const Value& profile) {
  return !asked.empty() ? asked : is_phaze_input(profile) ? "phaze" : "piper";
}

}  // namespace

bool plans_by_own_rules(const ProfileOptions& o, const std::string& planner) {
  const bool asks_as_of_models =
      std::any_of(o.options_of_models.begin(), o.options_of_models.end(),
                  [](const VerbOption& option) { return option.given() && !option.is("output"); });
  if (asks_as_of_models) return false;
  if (planner.empty() || planner == "phaze") return true;
  return std::any_of(kPiperVariants.begin(), kPiperVariants.end(),
                     [&](const PiperVariant& variant) { return variant.name == planner; });
}

std::string plan_line(const ProfileOutcome& made) {
  if (made.outcome.candidates.empty()) {
    return fmt::format("No plan to simulate: {}\n", made.no_plan);
  }
  const Candidate& best = made.outcome.candidates.front();
  std::string text = fmt::format(
      "Simulated: {:.9g} s for {} samples on {} devices, {} on the fullest; no plan of these "
      "options takes less than {:.6g} s\n",
      best.metrics.iteration_time_s, best.plan.global_batch, devices_used(best.plan),
      format_bytes(best.metrics.peak_memory_bytes), made.outcome.physical_bound.time_s);
  for (const std::string& assumption : made.outcome.assumptions) {
    text += fmt::format("Assumed: {}\n", assumption);
  }
  return text;
}

void add_plan(const ProfileOutcome& made, Json& json) {
  json["lower_bound_s"] = made.outcome.physical_bound.time_s;
  if (made.outcome.candidates.empty()) {
    json["iteration_time_s"] = json["peak_memory_bytes"] = json["plan"] = nullptr;
    json["no_plan"] = made.no_plan;
    return;
  }
  const Candidate& best = made.outcome.candidates.front();
  json["iteration_time_s"] = best.metrics.iteration_time_s;
  json["peak_memory_bytes"] = best.metrics.peak_memory_bytes;
  json["plan"] = candidate_to_json(best, made.outcome.physical_bound);
  json["plan"]["assumptions"] = made.outcome.assumptions;
}

void finish_plan(ProfileOutcome& made, const std::string& planner, const std::string& output) {
  if (made.outcome.candidates.empty()) {
    if (output.empty() || made.outcome.status == Status::infeasible) return;
    throw Error(Where{output, 0, ""}, "there is no plan to write: " + made.no_plan,
                "leave out -o, or plan with --planner braid");
  }
  Candidate& best = made.outcome.candidates.front();
  const std::string fault = fault_of(best, made.outcome.physical_bound, planner);
  if (!fault.empty()) throw std::logic_error(fault);
  if (!output.empty()) write_file(output, to_text(to_json(best.plan)));
}

CheckedOutcome outcome_by_own_rules(const ProfileOptions& given, const std::string& asked,
                                    std::int64_t budget, const SearchProgress& progress) {
  const Document document = Document::parse_file(given.profiles.front());
  const std::string planner = own_planner(asked, document.root());
  CheckedOutcome checked;
  if (planner == "phaze") {
    checked = phaze_outcome(given, progress);
  } else {
    PiperAnswer answer = answer_of(given, document, find_piper_variant(planner), budget, progress);
    checked.outcome = std::move(answer.made.outcome);
    checked.wall_s = answer.wall_s;
    if (!answer.assumption.empty()) checked.outcome.assumptions.push_back(answer.assumption);
  }
  for (Candidate& candidate : checked.outcome.candidates) {
    checked.failure = fault_of(candidate, checked.outcome.physical_bound, planner);
  }
  return checked;
}

int plan_profile(const ProfileOptions& given, const std::string& asked, std::int64_t budget,
                 bool json, const std::string& output, const SearchProgress& progress) {
  const Document document = Document::parse_file(given.profiles.front());
  const std::string planner = own_planner(asked, document.root());
  if (planner == "phaze") return plan_phaze_profile(given, json, output, progress);
  PiperAnswer answer = answer_of(given, document, find_piper_variant(planner), budget, progress);
  const auto& [options, problem, assumption, solution, wall_s, made] = answer;
  if (options.table == "-") return kFound;
  finish_plan(answer.made, planner, output);
  const int status = !solution.stages.empty()                      ? kFound
                     : solution.status == Status::budget_exhausted ? kExhausted
                                                                   : kInfeasible;
  if (output == "-" && status == kFound) return status;
  if (json) {
    Json out = piper_json(problem, solution, options, planner, wall_s);
    out["assumptions"] = Json::array();
    if (!assumption.empty()) out["assumptions"].push_back(assumption);
    add_plan(made, out);
    fmt::print("{}", to_text(out));
  } else if (status == kFound) {
    fmt::print("{}{}", piper_text(problem, solution, options, planner, wall_s), plan_line(made));
    if (!assumption.empty()) fmt::print("Assumed: {}\n", assumption);
  } else {
    fmt::print(stderr, "braid: no plan: {}\n",
               status == kExhausted ? "the budget is used up" : solution.reason);
  }
  return status;
}

}  // namespace braid
