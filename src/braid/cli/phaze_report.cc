#include "braid/cli/phaze_report.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/plan/outcome.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"

namespace braid {
namespace {

/// Bound and time are rounded in different orders.
bool proven(const PhazeRun& run) { return is_proven(run.placement->bound_s, run.time_s); }

std::string shape_text(const PhazePlacement& placement) {
  const std::size_t stages = placement.stages.size();
  return fmt::format("{} stage{}, {} replica{}, tensor width {}", stages, stages == 1 ? "" : "s",
                     placement.dp, placement.dp == 1 ? "" : "s", placement.tp);
}

std::string kept_text(const PhazeProblem& problem) {
  return problem.recompute ? "recompute" : "stash";
}

std::string phaze_rules_text(const ProfileOptions& o, const PhazeAnswer& answer) {
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

Json reference_to_json(const std::optional<PhazeReference>& other) {
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

std::string reference_text(const char* whose, const PhazeReference& other) {
  return fmt::format("{} plan: {}: {:.6g} s, simulated {:.6g} s{}{}\n", whose,
                     shape_text(other.placement), other.placement.flush_s, other.simulated_s,
                     other.own_s > 0 ? fmt::format(" (it says {:.6g} s)", other.own_s) : "",
                     other.fits ? "" : "; it does not fit");
}

std::string stages_table(const PhazePlacement& placement) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "layers", "devices", "branches", "forward", "backward", "memory"}};
  double most_bytes = 0;
  for (const PhazeStage& stage : placement.stages) {
    most_bytes = std::max(most_bytes, stage.peak_bytes);
  }
  for (std::size_t s = 0; s < placement.stages.size(); ++s) {
    const PhazeStage& stage = placement.stages[s];
    rows.push_back({std::to_string(s + 1), ranges_text(stage.layers), std::to_string(stage.devices),
                    std::to_string(stage.branches), format_seconds(stage.forward_s),
                    format_seconds(stage.backward_s),
                    format_bytes_as(stage.peak_bytes, most_bytes)});
  }
  return text_table(rows);
}

std::string runs_table(const PhazeAnswer& answer) {
  std::vector<std::vector<std::string>> rows = {
      {"memory", "activations", "s per batch", "simulated", "plan", "profile"}};
  double most_bytes = 0;
  for (const PhazeRun& run : answer.runs) {
    most_bytes = std::max(most_bytes, run.problem.memory_bytes);
  }
  for (const PhazeRun& run : answer.runs) {
    std::vector<std::string> row = {format_bytes_as(run.problem.memory_bytes, most_bytes),
                                    kept_text(run.problem)};
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

}  // namespace

bool by_program(const ProfileOptions& o) { return o.rules == "program"; }

Json phaze_json(const ProfileOptions& o, const PhazeAnswer& answer,
                const PhazeReferences& references) {
  const PhazeRun& best = answer.runs[answer.best];
  Json json = Json::object();
  json["status"] = nullptr;
  json["planner"] = "phaze";
  json["objective"] = {{"name", "time per batch (s)"}, {"value", nullptr}};
  json["rules"] = {{"costs", by_program(o) ? "program" : "corrected"},
                   {"objective", name_of(answer.options.objective)},
                   {"latency_unit_s", best.time_unit_s},
                   {"text", phaze_rules_text(o, answer)}};
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
    json["expert"] = reference_to_json(references.expert);
    if (!by_program(o)) json["program"] = reference_to_json(references.program);
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

std::string phaze_text(const ProfileOptions& o, const PhazeAnswer& answer,
                       const PhazeReferences& references) {
  const PhazeRun& best = answer.runs[answer.best];
  const PhazePlacement& placement = *best.placement;
  std::string text = fmt::format(
      "phaze: {:.9g} s per batch by the formula, {:.9g} s simulated, on {} of {} devices\n"
      "{}, {} micro-batches each, {}, {} a device\n{}\n\n{}\n",
      formula_s(answer, placement), best.simulated_s, devices_used(placement), best.problem.devices,
      shape_text(placement), placement.micro_batches,
      best.problem.recompute ? "forward passes repeated" : "activations kept",
      format_bytes(best.problem.memory_bytes), phaze_rules_text(o, answer),
      stages_table(placement));
  if (answer.runs.size() > 1) text += runs_table(answer) + "\n";
  if (references.expert) text += reference_text("expert's", *references.expert);
  if (references.program) text += reference_text("program's", *references.program);
  if (proven(best)) {
    text += "Proven: the best of the planner's space\n";
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

}  // namespace braid
