#include "braid/cli/evaluation_json.h"

#include "braid/cli/outcome_json.h"
#include "braid/cli/run_cost_options.h"
#include "braid/plan/plan_json.h"
#include "braid/report/plan_text.h"

namespace braid {
namespace {

Json to_json(const ConfigurationChange& change, double before_s) {
  Json json = Json::object();
  json["what"] = change.what;
  json["iteration_time_s"] = change.time_s;
  json["change_s"] = change.time_s - before_s;
  json["peak_memory_bytes"] = change.peak_memory_bytes;
  json["fits"] = change.fits;
  json["parallel"] = form_to_json(change.after.parallel);
  return json;
}

}  // namespace

Json to_json(const ConfigurationEvaluation& evaluation) {
  const Plan& plan = evaluation.mine.candidate.plan;
  Json json = Json::object();
  json["model"] = plan.model;
  json["model_parameters"] = plan.model_parameters;
  json["system"] = plan.system.name;
  json["devices"] = plan.system.device_count;
  json["precision"] = name_of(plan.precision);
  json["trainer"] = plan.trainer.name;
  json["global_batch"] = plan.global_batch;
  json["seq_len"] = plan.seq_len;
  json["fits"] = evaluation.mine.fits();
  json["misfit"] = evaluation.mine.fits() ? Json() : Json(evaluation.mine.misfit);
  json["yours"] = candidate_to_json(evaluation.mine.candidate, evaluation.bound);
  const Candidate* best = evaluation.best();
  json["best"] = best != nullptr ? candidate_to_json(*best, evaluation.bound) : Json();
  json["best_status"] = evaluation.search ? Json(name_of(evaluation.search->status)) : Json();
  json["no_best"] =
      evaluation.search && best == nullptr ? Json(infeasibility_text(*evaluation.search)) : Json();
  json["changes"] = Json::array();
  double before_s = evaluation.mine.candidate.metrics.iteration_time_s;
  for (const ConfigurationChange& change : evaluation.changes) {
    json["changes"].push_back(to_json(change, before_s));
    before_s = change.time_s;
  }
  if (evaluation.run) json["yours"]["run"] = to_json(*evaluation.run);
  if (evaluation.run_of_best) json["best"]["run"] = to_json(*evaluation.run_of_best);
  json["not_given"] = evaluation.not_given;
  json["not_known"] = evaluation.not_known;
  json["not_modelled"] = evaluation.not_modelled;
  json["trainer_notes"] = evaluation.trainer_notes;
  json["assumptions"] = evaluation.assumptions;
  return json;
}

}  // namespace braid
