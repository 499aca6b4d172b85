#include "braid/cli/plan_profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/plan_phaze.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verbs.h"
#include "braid/planners/phaze_problem.h"
#include "braid/planners/piper_from_profile.h"
#include "braid/planners/piper_table.h"
#include "braid/planners/piper_variants.h"
#include "braid/profile/piper_profile.h"
#include "braid/profile/profile_json.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"

namespace braid {

void add_profile_options(CLI::App& app, ProfileOptions& o) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->check_lname("json") && !option->check_lname("budget")) {
      o.options_of_models.push_back(option);
    }
  }
  add_texts(app, "--profile", o.profiles,
            "Plan from this profile (braid's, Piper's or Phaze's format) instead of a model; one "
            "for each micro-batch size in Phaze's");
  const std::size_t before = app.get_options().size();
  add_count(app, "--devices", o.devices, 1, kMostPiperDevices,
            "With --profile: devices (default: the file's)");
  add_count(app, "--max-microbatches", o.micro_batches, 1, kMostPiperDevices,
            "With --profile: micro-batches in a batch (default: the file's)");
  add_texts(app, "--memory", o.memory,
            "With --profile: of a device (default: the file's); phaze takes several")
      ->delimiter(',');
  add_text(app, "--bandwidth", o.bandwidth, "With --profile: of a device (default: the file's)");
  app.add_option("--time-unit", o.time_unit,
                 "With --profile: what its times are in, s, ms or us (default: s; Phaze's are ms)")
      ->check(CLI::IsMember({"s", "ms", "us"}));
  app.add_option("--rules", o.rules,
                 "With --profile: costs as the published program has them (piper's default), as "
                 "Piper's paper does, or with Phaze's program put right (phaze's default)")
      ->check(CLI::IsMember({"program", "paper", "corrected"}));
  app.add_option("--knapsack", o.knapsack, "With --profile: choice of options within memory")
      ->check(CLI::IsMember({"exact", "heuristic"}));
  app.add_option("--tensors", o.tensors,
                 "With --profile: charge tensors that cross stages per reader or once a stage")
      ->check(CLI::IsMember({"once", "per-edge"}));
  app.add_option("--sum-of-dp", o.sum,
                 "With --profile: whether data-parallel degrees sum to at most the micro-batches")
      ->check(CLI::IsMember({"at-most", "exact"}));
  app.add_flag("--uneven-microbatches", o.uneven,
               "With --profile: data-parallel degrees need not divide the micro-batches");
  app.add_option("--objective", o.objective,
                 "With --profile, phaze: least time of a batch by its formula or by simulation")
      ->check(CLI::IsMember({"flush", "simulated"}));
  app.add_option("--activations", o.activations,
                 "With --profile, phaze: stash, recompute or both (default: the file's)")
      ->delimiter(',')
      ->check(CLI::IsMember({"stash", "recompute"}));
  add_output_file(app, "--table", o.table,
                  "With --profile: write the best time for every number of devices as CSV");
  const std::vector<CLI::Option*> all = app.get_options();
  o.own_options.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
}

void check_profile_options(const ProfileOptions& o) {
  const bool from_profile = !o.profiles.empty();
  for (const CLI::Option* option : from_profile ? o.options_of_models : o.own_options) {
    if (option->count() == 0) continue;
    throw Error(Where{"", 0, option->get_name()},
                from_profile ? "does not go with --profile" : "goes with --profile only",
                "see braid plan --help");
  }
}

void refuse_options(const ProfileOptions& o, std::initializer_list<const char*> names,
                    const char* planner) {
  for (const CLI::Option* option : o.own_options) {
    if (option->count() == 0) continue;
    for (const char* name : names) {
      if (option->check_lname(name)) {
        throw Error(Where{"", 0, option->get_name()}, std::string("is for the planner ") + planner,
                    "leave it out");
      }
    }
  }
}

double quantity_of(const char* option, const std::string& text, Unit unit, double otherwise) {
  if (text.empty()) {
    if (otherwise > 0) return otherwise;
    throw Error(Where{"", 0, option}, "is not given, and the profile does not say",
                "add " + std::string(option) + " '" + std::string(quantity_example(unit)) + "'");
  }
  const auto value = parse_quantity(text, unit);
  if (value && *value > 0) return *value;
  throw Error(Where{"", 0, option}, "\"" + text + "\" is not understood",
              "write it like '" + std::string(quantity_example(unit)) + "'");
}

double time_unit_s(const std::string& name) { return name == "s" ? 1 : name == "ms" ? 1e-3 : 1e-6; }

namespace {

std::int64_t count_of(const char* option, std::int64_t given, std::int64_t otherwise) {
  if (given > 0) return given;
  if (otherwise > 0) return otherwise;
  throw Error(Where{"", 0, option}, "is not given, and the profile does not say");
}

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

/// A problem and what it takes for granted; empty for nothing.
struct ReadProblem {
  PiperProblem problem;
  std::string assumption;
};

ReadProblem read_problem(const ProfileOptions& o, const Document& document) {
  const std::string& file = o.profiles.front();
  PiperProfile read;
  if (is_piper_profile(document.root())) {
    read = piper_profile_from_json(document.root());
  } else {
    read.profile = read_profile(file);
  }
  check_profile(read.profile, file);
  PiperProblem problem = piper_from_profile(read.profile, 1);
  problem.devices = count_of("--devices", o.devices, read.devices);
  problem.micro_batches = count_of("--max-microbatches", o.micro_batches, read.micro_batches);
  problem.memory_bytes = quantity_of("--memory", o.memory.empty() ? "" : o.memory.front(),
                                     Unit::bytes, read.memory_bytes);
  problem.bandwidth_bytes =
      time_unit_s(o.time_unit) *
      quantity_of("--bandwidth", o.bandwidth, Unit::bytes_per_s, read.bandwidth_bytes);
  problem.rules = rules_of(o);
  check_piper_problem(problem, file);
  if (states_memory(read.profile)) return {std::move(problem), ""};
  return {std::move(problem),
          "the profile does not state all memory: weights, gradients and Adam's state of mixed "
          "precision, not sharded, are 18 bytes a parameter"};
}

/// With Piper's defaults filled in. Throws Error for what only Phaze takes.
ProfileOptions piper_options(ProfileOptions o) {
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
  if (o.time_unit.empty()) o.time_unit = "s";
  return o;
}

std::string rules_text(const ProfileOptions& o) {
  return fmt::format(
      "costs as Piper's {} has them, {} knapsack, tensors paid {}, data-parallel degrees {}{}",
      o.rules, o.knapsack, o.tensors == "once" ? "once a stage" : "per reader",
      o.uneven             ? "any (the busiest replica counts)"
      : o.rules == "paper" ? "any (as if micro-batches could be cut)"
                           : "divide the micro-batches",
      o.sum == "exact" ? " and sum to exactly as many" : "");
}

const PiperOption& option_at(const PiperProblem& problem, const PiperStage& stage, std::size_t i) {
  const PiperNode& node = problem.nodes[static_cast<std::size_t>(stage.nodes[i])];
  for (const PiperDegree& degree : node.degrees) {
    if (degree.tp == stage.tp) return degree.options[static_cast<std::size_t>(stage.options[i])];
  }
  throw std::logic_error("a stage's degree is not its layers'");
}

/// How many layers of a stage run with each option, in order of first use.
std::vector<std::pair<std::string, int>> options_used(const PiperProblem& problem,
                                                      const PiperStage& stage) {
  std::vector<std::pair<std::string, int>> used;
  for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
    const std::string& name = option_at(problem, stage, i).name;
    auto found = used.begin();
    while (found != used.end() && found->first != name) ++found;
    if (found == used.end()) found = used.insert(found, {name, 0});
    ++found->second;
  }
  return used;
}

Json to_json(const PiperProblem& problem, const PiperSolution& solution, const ProfileOptions& o,
             const std::string& planner, double wall_s) {
  Json json = Json::object();
  json["status"] = name_of(solution.status);
  json["planner"] = planner;
  json["objective"] = {{"name", "time per sample"}, {"value", nullptr}};
  json["time_unit"] = o.time_unit;
  json["rules"] = {
      {"costs", o.rules},   {"knapsack", o.knapsack},          {"tensors", o.tensors},
      {"sum_of_dp", o.sum}, {"uneven_microbatches", o.uneven}, {"text", rules_text(o)}};
  json["profile"] = o.profiles.front();
  json["devices"] = problem.devices;
  json["max_microbatches"] = problem.micro_batches;
  json["memory_bytes"] = problem.memory_bytes;
  if (solution.stages.empty()) {
    json["reason"] = solution.reason;
    json["needed_bytes"] = solution.needed_bytes;
  } else {
    json["objective"]["value"] = solution.time;
    json["lower_bound"] = solution.bound;
    json["gap"] = solution.time > 0 ? 1 - solution.bound / solution.time : 0;
    json["devices_used"] = solution.devices_used();
    json["sum_of_dp"] = solution.stages.front().suffix;
  }
  json["stages"] = Json::array();
  std::int64_t first_device = 0;
  for (const PiperStage& stage : solution.stages) {
    Json part = Json::object();
    part["layers"] = ranges_text(stage.nodes);
    part["names"] = Json::array();
    part["options"] = Json::array();
    for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
      part["names"].push_back(problem.nodes[static_cast<std::size_t>(stage.nodes[i])].name);
      part["options"].push_back(option_at(problem, stage, i).name);
    }
    part["devices"] = Json::array({first_device, first_device + stage.dp * stage.tp - 1});
    first_device += stage.dp * stage.tp;
    part["dp"] = stage.dp;
    part["tp"] = stage.tp;
    part["suffix_dp"] = stage.suffix;
    part["time"] = stage.time;
    part["memory_bytes"] = stage.memory_bytes;
    json["stages"].push_back(std::move(part));
  }
  json["search"] = {{"wall_s", wall_s}, {"work", solution.work}, {"downsets", solution.downsets}};
  return json;
}

std::string solution_text(const PiperProblem& problem, const PiperSolution& solution,
                          const ProfileOptions& o, const std::string& planner, double wall_s) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "layers", "dp", "tp", "time", "memory", "options"}};
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    const PiperStage& stage = solution.stages[s];
    std::string used;
    for (const auto& [name, count] : options_used(problem, stage)) {
      used += fmt::format("{}{}x {}", used.empty() ? "" : ", ", count, name);
    }
    rows.push_back({std::to_string(s), ranges_text(stage.nodes), std::to_string(stage.dp),
                    std::to_string(stage.tp), fmt::format("{:.6g} {}", stage.time, o.time_unit),
                    format_bytes(stage.memory_bytes), used});
  }
  std::string text = fmt::format(
      "{}: time per sample {:.9g} {} on {} of {} devices, {} micro-batches in flight of {}\n",
      planner, solution.time, o.time_unit, solution.devices_used(), problem.devices,
      solution.stages.front().suffix, problem.micro_batches);
  text += fmt::format("{}\n\n{}\n", rules_text(o), text_table(rows));
  text +=
      solution.status == Status::optimal
          ? fmt::format("Proven: the best of the planner's space ({} stages examined, {:.3g} s)\n",
                        solution.work, wall_s)
          : fmt::format("Not proven: nothing in the planner's space is below {:.9g} {}\n",
                        solution.bound, o.time_unit);
  return text;
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

}  // namespace

namespace {

/// Throws for what cannot have the degrees sum to exactly the micro-batches.
void check_exact_sum(const ProfileOptions& o, const PiperVariant& variant) {
  if (o.sum != "exact") return;
  const bool own_way = variant.name.starts_with("equi") || variant.name == "pipedream";
  if (!own_way && o.knapsack == "exact" && o.table.empty()) return;
  throw Error(Where{"", 0, "--sum-of-dp"},
              "exact does not go with --table, --knapsack heuristic, equi and pipedream",
              "leave one of them out");
}

}  // namespace

int plan_profile(const ProfileOptions& given, const std::string& asked, std::int64_t budget,
                 bool json) {
  const Document document = Document::parse_file(given.profiles.front());
  const bool of_phaze = is_phaze_input(document.root());
  const std::string planner = !asked.empty() ? asked : of_phaze ? "phaze" : "piper";
  if (planner == "phaze") return plan_phaze_profile(given, json);
  const PiperVariant& variant = find_piper_variant(planner);
  if (of_phaze) {
    throw Error(Where{given.profiles.front(), 0, ""}, "is an input of Phaze",
                "use --planner phaze");
  }
  const ProfileOptions options = piper_options(given);
  check_exact_sum(options, variant);
  const auto [problem, assumption] = read_problem(options, document);
  const PiperSearchLimits limits{.work = budget};
  if (!options.table.empty()) {
    if (variant.name != "piper") {
      throw Error(Where{"", 0, "--table"}, "is for the planner piper");
    }
    write_table(piper_table(problem, limits), options.table);
    if (options.table == "-") return kFound;
  }
  const auto start = std::chrono::steady_clock::now();
  PiperSolution solution = variant.solve(problem, limits);
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (solution.status == Status::infeasible && solution.reason.empty()) {
    explain_infeasible(problem, limits, solution);
  }
  const int status = !solution.stages.empty()                      ? kFound
                     : solution.status == Status::budget_exhausted ? kExhausted
                                                                   : kInfeasible;
  if (json) {
    Json out = to_json(problem, solution, options, planner, wall_s);
    out["assumptions"] = Json::array();
    if (!assumption.empty()) out["assumptions"].push_back(assumption);
    fmt::print("{}", to_text(out));
  } else if (status == kFound) {
    fmt::print("{}", solution_text(problem, solution, options, planner, wall_s));
    if (!assumption.empty()) fmt::print("Assumed: {}\n", assumption);
  } else {
    fmt::print(stderr, "braid: no plan: {}\n",
               status == kExhausted ? "the budget is used up" : solution.reason);
  }
  return status;
}

}  // namespace braid
