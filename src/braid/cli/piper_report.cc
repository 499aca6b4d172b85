#include "braid/cli/piper_report.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"

namespace braid {
namespace {

std::string rules_text(const ProfileOptions& o) {
  return fmt::format(
      "costs as Piper's {} has them, {} knapsack, tensors paid {}, data-parallel degrees {}{}{}",
      o.rules, o.knapsack, o.tensors == "once" ? "once a stage" : "per reader",
      o.uneven             ? "any (the busiest replica counts)"
      : o.rules == "paper" ? "any (as if micro-batches could be cut)"
                           : "divide the micro-batches",
      o.sum == "exact" ? " and sum to exactly as many" : "",
      o.levels.empty() ? "" : ", on levels " + o.levels);
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

/// A stage's data-parallel degrees on each level of the network, outermost first, and their
/// product: "4x2=8".
std::string dp_text(const PiperSolution& solution, std::size_t stage) {
  std::string text;
  for (const PiperSuperstage& superstage : solution.superstages) {
    const auto first = static_cast<std::size_t>(superstage.first);
    if (stage < first || stage >= first + static_cast<std::size_t>(superstage.count)) continue;
    text += std::to_string(superstage.dp) + "x";
  }
  const PiperStage& at = solution.stages[stage];
  if (text.empty()) return std::to_string(at.dp);
  return fmt::format("{}{}={}", text, at.local_dp, at.dp);
}

/// Its stages, the first of all being `from`.
std::string stages_text(const PiperSuperstage& superstage, std::int32_t from) {
  const std::int32_t first = superstage.first + from;
  return superstage.count > 1 ? fmt::format("{}-{}", first, first + superstage.count - 1)
                              : std::to_string(first);
}

std::string superstages_text(const PiperSolution& solution, const std::string& time_unit) {
  if (solution.superstages.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"level", "stages", "dp", "communication"}};
  for (const PiperSuperstage& superstage : solution.superstages) {
    rows.push_back({std::to_string(superstage.level + 1), stages_text(superstage, 1),
                    std::to_string(superstage.dp),
                    fmt::format("{:.6g} {}", superstage.time, time_unit)});
  }
  return text_table(rows) + "\n";
}

void add_levels(Json& json, const PiperProblem& problem, const PiperSolution& solution) {
  json["levels"] = Json::array();
  for (const PiperLevel& level : problem.levels) {
    json["levels"].push_back({{"devices", level.devices}, {"bandwidth", level.bandwidth_bytes}});
  }
  json["superstages"] = Json::array();
  for (const PiperSuperstage& superstage : solution.superstages) {
    json["superstages"].push_back({{"level", superstage.level + 1},
                                   {"stages", stages_text(superstage, 0)},
                                   {"dp", superstage.dp},
                                   {"time", superstage.time}});
  }
}

}  // namespace

Json piper_json(const PiperProblem& problem, const PiperSolution& solution, const ProfileOptions& o,
                const std::string& planner, double wall_s) {
  Json json = Json::object();
  json["status"] = name_of(solution.status);
  json["planner"] = planner;
  json["objective"] = {{"name", "time per sample"},
                       {"value", nullptr},
                       {"unit", o.time_unit},
                       {"of", "one micro-batch of the profile"}};
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
  const bool flat = problem.levels.empty();
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
    if (flat) {
      part["devices"] = Json::array({first_device, first_device + stage.dp * stage.tp - 1});
      first_device += stage.dp * stage.tp;
    }
    part["dp"] = stage.dp;
    if (!flat) part["local_dp"] = stage.local_dp;
    part["tp"] = stage.tp;
    part["suffix_dp"] = stage.suffix;
    part["time"] = stage.time;
    part["memory_bytes"] = stage.memory_bytes;
    json["stages"].push_back(std::move(part));
  }
  if (!problem.levels.empty()) add_levels(json, problem, solution);
  json["search"] = {{"wall_s", wall_s}, {"work", solution.work}, {"downsets", solution.downsets}};
  return json;
}

std::string piper_text(const PiperProblem& problem, const PiperSolution& solution,
                       const ProfileOptions& o, const std::string& planner) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "layers", "dp", "tp", "time", "memory", "options"}};
  double most_bytes = 0;
  for (const PiperStage& stage : solution.stages) {
    most_bytes = std::max(most_bytes, stage.memory_bytes);
  }
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    const PiperStage& stage = solution.stages[s];
    std::string used;
    for (const auto& [name, count] : options_used(problem, stage)) {
      used += fmt::format("{}{}x {}", used.empty() ? "" : ", ", count, name);
    }
    rows.push_back({std::to_string(s + 1), ranges_text(stage.nodes), dp_text(solution, s),
                    std::to_string(stage.tp), fmt::format("{:.6g} {}", stage.time, o.time_unit),
                    format_bytes_as(stage.memory_bytes, most_bytes), used});
  }
  std::string text = fmt::format(
      "{}: time per sample {:.9g} {} on {} of {} devices, {} micro-batches in flight of {}\n"
      "A sample is one micro-batch of the profile{}\n",
      planner, solution.time, o.time_unit, solution.devices_used(), problem.devices,
      solution.stages.front().suffix, problem.micro_batches,
      o.unit_is_given
          ? ""
          : "; its times count as seconds, whatever they are in (no --time-unit given)");
  text += fmt::format("{}\n\n{}\n{}", rules_text(o), text_table(rows),
                      superstages_text(solution, o.time_unit));
  text += solution.status == Status::optimal
              ? fmt::format("Proven: the best of the planner's space ({} stages examined)\n",
                            solution.work)
              : fmt::format("Not proven: nothing in the planner's space is below {:.9g} {}\n",
                            solution.bound, o.time_unit);
  return text;
}

}  // namespace braid
