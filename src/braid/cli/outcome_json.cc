#include "braid/cli/outcome_json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "braid/base/rounding.h"
#include "braid/plan/plan_json.h"
#include "braid/plan/stage_load.h"
#include "braid/report/confidence_text.h"
#include "braid/report/devices_text.h"
#include "braid/report/plan_text.h"
#include "braid/report/plans_table.h"
#include "braid/report/recommendation_text.h"
#include "braid/trust/confidence.h"

namespace braid {
namespace {

/// Null where what chips can do is not known.
Json mfu_to_json(const Candidate& candidate) {
  return knows_arithmetic(candidate.plan.system) ? Json(candidate.metrics.mfu) : Json();
}

Json metrics_to_json(const Candidate& candidate, double bound_s) {
  const Metrics& metrics = candidate.metrics;
  Json json = Json::object();
  json["iteration_time_s"] = metrics.iteration_time_s;
  json["lower_bound_s"] = bound_s;
  json["mfu"] = mfu_to_json(candidate);
  json["tokens_per_s"] = metrics.tokens_per_s;
  json["model_flops_per_s_per_device"] =
      knows_arithmetic(candidate.plan.system) ? Json(metrics.model_flops_per_s_per_device) : Json();
  json["peak_memory_bytes"] = metrics.peak_memory_bytes;
  Json time = Json::object();
  time["compute_s"] = metrics.compute_s;
  time["recompute_s"] = metrics.recompute_s;
  time["tp_comm_s"] = metrics.tp_comm_s;
  time["cp_comm_s"] = metrics.cp_comm_s;
  time["ep_comm_s"] = metrics.ep_comm_s;
  time["pp_comm_s"] = metrics.pp_comm_s;
  time["dp_comm_s"] = metrics.dp_comm_s;
  time["bubble_s"] = metrics.bubble_s;
  time["offload_s"] = metrics.offload_s;
  time["optimizer_s"] = metrics.optimizer_s;
  json["time"] = std::move(time);
  json["busiest_stage"] = metrics.busiest_stage;
  return json;
}

/// Null where the search bounds no plan's time.
/// What is left of a proof's rounding is no gap.
Json gap_to_json(const PlanRow& row) {
  return row.gap ? Json(*row.gap > 1 - kBelowTolerance ? *row.gap : 0.0) : Json();
}

/// 0 stands for none.
Json bound_to_json(double bound_s) { return bound_s > 0 ? Json(bound_s) : Json(); }

/// Null for a plan whose times are those of a profile.
Json confidence_to_json(const Plan& plan, const Metrics& metrics) {
  const std::optional<Confidence> confidence = confidence_of(plan, metrics);
  if (!confidence) return nullptr;
  const auto ends = [](const std::optional<ErrorInterval>& interval, double figure) -> Json {
    if (!interval) return nullptr;
    return {figure * interval->low, figure * interval->high};
  };
  Json json = Json::object();
  json["level"] = kIntervalLevel;
  json["iteration_time_s"] = ends(confidence->time, metrics.iteration_time_s);
  json["peak_memory_bytes"] = ends(confidence->memory, metrics.peak_memory_bytes);
  json["beyond"] = confidence->beyond;
  json["nearest"] = Json::array();
  for (const RunError& run : confidence->nearest) {
    json["nearest"].push_back({{"source", run.source},
                               {"model", run.model},
                               {"model_parameters", run.traits.parameters},
                               {"chip", run.traits.chip},
                               {"devices", run.traits.devices},
                               {"trainer", run.traits.trainer},
                               {"error", std::exp(-run.error) - 1}});
  }
  return json;
}

Json stages_to_json(const Plan& plan) {
  Json json = Json::array();
  const std::vector<StageLoad> loads = stage_loads(plan);
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    Json part = Json::object();
    part["layers"] = Json::array();
    double time_s = 0;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      part["layers"].push_back(ranges_text(stage.chunks[c].layers));
      time_s += loads[s].chunks[c].forward_s() + loads[s].chunks[c].backward_s();
    }
    part["devices"] = Json::array({stage.devices.front(), stage.devices.back()});
    if (plan.system.groups.size() > 1) part["chips"] = stage_chips(plan, s);
    part["dp"] = stage.dp;
    part["tp"] = stage.tp;
    part["cp"] = stage.cp;
    part["time_s"] = time_s;
    if (stage.own) {
      const Parallelism form = form_of(plan, s);
      part["ep"] = form.ep;
      part["micro_batch"] = form.micro_batch;
      part["num_micro_batches"] = form.num_micro_batches;
      part["sequence_parallel"] = form.sequence_parallel;
      part["zero"] = static_cast<int>(form.zero);
      if (stage.own->warm_up) part["warm_up"] = *stage.own->warm_up;
      if (!stage.own->passes.empty()) part["passes"] = to_json(stage.own->passes);
    }
    const MemoryBreakdown& memory = memories[s];
    part["memory_bytes"] = memory.device_total();
    part["memory"] = to_json(memory);
    json.push_back(std::move(part));
  }
  return json;
}

}  // namespace

namespace {

Json ease_to_json(const Ease& ease) {
  return {{"offload", ease.offload},
          {"dimensions", ease.dimensions},
          {"own_layout", ease.own_layout},
          {"extreme", ease.extreme}};
}

/// Null where no plan was recommended before others: the first is the best.
Json recommendation_to_json(const Outcome& outcome) {
  if (!outcome.recommendation) return nullptr;
  const Recommendation& why = *outcome.recommendation;
  Json json = Json::object();
  json["is_fastest"] = !why.fastest.has_value();
  json["gain_of_fastest"] = gain_of_fastest(outcome);
  json["ease"] = ease_to_json(why.ease);
  json["ease_of_fastest"] = ease_to_json(why.ease_of_fastest);
  json["of_all"] = why.of_all;
  json["without_offload_s"] = nullptr;
  if (why.without_offload_s && std::isfinite(*why.without_offload_s)) {
    json["without_offload_s"] = *why.without_offload_s;
  }
  return json;
}

Json objective_to_json(const Outcome& outcome) {
  Json json = Json::object();
  json["name"] = outcome.objective_name;
  json["value"] = outcome.objective;
  if (!outcome.own_times.empty()) {
    json["times"] = Json::object();
    for (const OwnTime& each : outcome.own_times) json["times"][each.key] = each.time_s;
  }
  return json;
}

}  // namespace

Json form_to_json(const Parallelism& parallel) {
  Json json = to_json(parallel);
  if (parallel.pp == 1) json["schedule"] = nullptr;
  return json;
}

Json candidate_to_json(const Candidate& candidate, const LowerBound& bound) {
  Json json = metrics_to_json(candidate, bound.time_s);
  json["confidence"] = confidence_to_json(candidate.plan, candidate.metrics);
  json["global_batch"] = candidate.plan.global_batch;
  json["devices_used"] = devices_used(candidate.plan);
  json["parallel"] = form_to_json(candidate.plan.parallel);
  json["uniform"] = is_uniform(candidate.plan);
  json["stages"] = stages_to_json(candidate.plan);
  json["bound_by"] = bound.binding;
  return json;
}

Json outcome_to_json(const Outcome& outcome, const std::string& planner, double wall_s) {
  Json json = Json::object();
  json["status"] = name_of(outcome.status);
  json["planner"] = planner;
  const std::vector<PlanRow> rows = rows_of(outcome);
  if (!outcome.candidates.empty()) {
    const Candidate& best = outcome.candidates.front();
    json.update(metrics_to_json(best, outcome.physical_bound.time_s));
    json["gap"] = gap_to_json(rows.front());
    json["confidence"] = confidence_to_json(best.plan, best.metrics);
    json["model"] = best.plan.model;
    json["model_parameters"] = best.plan.model_parameters;
    json["system"] = best.plan.system.name;
    json["devices"] = best.plan.system.device_count;
    json["devices_used"] = devices_used(best.plan);
    json["precision"] = name_of(best.plan.precision);
    json["trainer"] = best.plan.trainer.name;
    json["global_batch"] = best.plan.global_batch;
    json["seq_len"] = best.plan.seq_len;
    json["parallel"] = form_to_json(best.plan.parallel);
    json["uniform"] = is_uniform(best.plan);
    json["stages"] = stages_to_json(best.plan);
  } else {
    json["lower_bound_s"] = outcome.physical_bound.time_s;
    json["reason"] = infeasibility_text(outcome);
    if (outcome.infeasibility) {
      json["needed_bytes"] = outcome.infeasibility->needed_bytes;
      json["available_bytes"] = outcome.infeasibility->available_bytes;
      json["host_needed_bytes"] = outcome.infeasibility->host_needed_bytes;
      json["host_available_bytes"] = outcome.infeasibility->host_available_bytes;
      json["stage"] = outcome.infeasibility->stage;
    }
  }
  json["bound_by"] = outcome.physical_bound.binding;
  json["search"] = {{"wall_s", wall_s},
                    {"work", outcome.work},
                    {"evaluated", outcome.evaluated},
                    {"bound_s", bound_to_json(outcome.search_bound_s)},
                    {"assignments_bound_s", bound_to_json(outcome.assignments_bound_s)}};
  json["objective"] = objective_to_json(outcome);
  json["recommendation"] = recommendation_to_json(outcome);
  json["fastest"] = nullptr;
  if (outcome.recommendation && outcome.recommendation->fastest) {
    json["fastest"] = candidate_to_json(*outcome.recommendation->fastest, outcome.physical_bound);
  }
  const std::vector<std::size_t> alike = not_told_apart(outcome.candidates);
  json["alternatives"] = Json::array();
  for (std::size_t i = 1; i < outcome.candidates.size(); ++i) {
    const Candidate& candidate = outcome.candidates[i];
    Json part = metrics_to_json(candidate, outcome.physical_bound.time_s);
    part["gap"] = gap_to_json(rows[i]);
    part["confidence"] = confidence_to_json(candidate.plan, candidate.metrics);
    part["told_apart"] = !std::binary_search(alike.begin(), alike.end(), i);
    part["parallel"] = form_to_json(candidate.plan.parallel);
    json["alternatives"].push_back(std::move(part));
  }
  json["trainer_notes"] = outcome.trainer_notes;
  json["assumptions"] = outcome.assumptions;
  return json;
}

Json compare_row(const CheckedOutcome& checked, const std::string& planner, double least_s) {
  const Outcome& outcome = checked.outcome;
  Json json = refused_row(planner, "");
  json["status"] = name_of(outcome.status);
  json["objective"] = objective_to_json(outcome);
  json["objective"]["bound"] =
      outcome.candidates.empty() ? Json() : bound_to_json(outcome.search_bound_s);
  if (!outcome.candidates.empty()) {
    const Candidate& best = outcome.candidates.front();
    json["iteration_time_s"] = best.metrics.iteration_time_s;
    json["of_best"] = best.metrics.iteration_time_s / least_s;
    json["peak_memory_bytes"] = best.metrics.peak_memory_bytes;
    json["mfu"] = mfu_to_json(best);
    json["devices_used"] = devices_used(best.plan);
    json["parallel"] = form_to_json(best.plan.parallel);
    json["uniform"] = is_uniform(best.plan);
    json["stages"] = stages_to_json(best.plan);
    json["assumptions"] = outcome.assumptions;
    json["verified"] = checked.failure.empty();
    if (!checked.failure.empty()) json["reason"] = checked.failure;
  } else {
    json["reason"] = infeasibility_text(outcome);
    json["objective"]["value"] = nullptr;
  }
  json["lower_bound_s"] = outcome.physical_bound.time_s;
  json["search_s"] = checked.wall_s;
  return json;
}

Json refused_row(const std::string& planner, const std::string& reason) {
  Json json = Json::object();
  json["planner"] = planner;
  json["status"] = "refused";
  for (const char* none :
       {"objective", "iteration_time_s", "of_best", "peak_memory_bytes", "mfu", "devices_used",
        "parallel", "uniform", "stages", "assumptions", "lower_bound_s", "search_s", "reason"}) {
    json[none] = nullptr;
  }
  if (!reason.empty()) json["reason"] = reason;
  json["verified"] = false;
  return json;
}

}  // namespace braid
