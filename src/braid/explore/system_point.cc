#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/explore/point_result.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/names.h"
#include "braid/planners/trainer_choice.h"
#include "braid/report/form_text.h"
#include "braid/report/plan_assumptions.h"
#include "braid/report/plan_text.h"
#include "braid/verify/check_candidates.h"

namespace braid {
namespace {

// Degrees of one are not worth a word.
std::string form_for_people(const FormText& form, const Plan& plan) {
  std::string text = fmt::format("TP {} PP {} DP {}", form.tp, plan.parallel.pp, form.dp);
  if (form.cp != "1") text += " CP " + form.cp;
  if (form.ep != "1") text += " EP " + form.ep;
  if (plan.parallel.vp != 1) text += fmt::format(" VP {}", plan.parallel.vp);
  text += " MBS " + form.micro_batch;
  if (form.recompute != "none") text += ", recompute " + form.recompute;
  if (form.zero != "0") text += ", ZeRO " + form.zero;
  if (!form.offload.empty()) text += ", off" + form.offload;
  return text;
}

void describe(const Outcome& outcome, const Graph& graph, PointResult& result) {
  const Plan& plan = outcome.candidates.front().plan;
  const Metrics& m = outcome.candidates.front().metrics;
  result.time_s = m.iteration_time_s;
  result.throughput = graph.seq_len > 0
                          ? m.tokens_per_s
                          : static_cast<double>(plan.global_batch) / m.iteration_time_s;
  result.utilisation = m.mfu;
  const FormText form = form_text(plan);
  result.form = form_for_people(form, plan);
  result.words = {form.tp,          fmt::format("{}", plan.parallel.pp),
                  form.cp,          fmt::format("{}", plan.parallel.vp),
                  form.ep,          form.dp,
                  form.micro_batch, schedule_text(plan),
                  form.recompute,   form.zero,
                  form.offload};
  result.counts = {devices_used(plan), outcome.evaluated};
  result.figures = {outcome.search_bound_s, m.peak_memory_bytes, m.model_flops_per_s_per_device};
  result.parts_s = {m.compute_s, m.recompute_s, m.tp_comm_s, m.cp_comm_s, m.ep_comm_s,
                    m.pp_comm_s, m.dp_comm_s,   m.bubble_s,  m.offload_s, m.optimizer_s};
}

}  // namespace

PlannedPoint plan_point(const SystemSpace& space, const SpacePoint& point) {
  const SystemWorkload& workload = space.workloads[point[kWorkloadAxis]];
  const PlannerEntry& planner = find_planner(space.planners[point[kMethodAxis]]);
  const System system = system_of(space, point);
  PlannedPoint planned;
  PointResult& result = planned.result;
  Graph graph = workload.graph;
  Outcome outcome;
  try {
    Job job;
    job.precision =
        workload.precision.empty() ? usual_precision(system) : parse_precision(workload.precision);
    set_working_precision(graph, job.precision.activation, job.precision.weight);
    job.graph = &graph;
    job.model_source = workload.model;
    job.global_batch = workload.global_batch;
    job.sharding = space.sharding;
    SpaceOptions options = space.options;
    std::vector<const PlannerEntry*> planners;
    for (const std::string& name : space.planners) planners.push_back(&find_planner(name));
    const TrainerNeeds needs{&job, &system, &options, planners, /*own_code=*/true};
    if (space.trainer) check_trainer(*space.trainer, needs);
    set_trainer(space.trainer ? *space.trainer : usual_trainer(needs), system, job, options);
    adapt_graph(job.trainer.does, graph);
    outcome = planner.plan(job, system, options, space.budget, {});
  } catch (const Error& refusal) {
    result.reason = refusal.what();
    return planned;
  }
  result.status = outcome.status;
  result.work = outcome.work;
  result.lower_bound_s = outcome.physical_bound.time_s;
  if (outcome.candidates.empty()) {
    result.reason = infeasibility_text(outcome);
    return planned;
  }
  const std::string failure = claim_and_check(outcome);
  if (!failure.empty()) {
    throw std::logic_error(fmt::format("a plan of {} {}", planner.name, failure));
  }
  const SystemCost cost = cost_of(space, point);
  if (space.has_prices) result.usd = cost.usd;
  if (space.has_powers) result.watts = cost.watts;
  describe(outcome, graph, result);
  result.assumptions = workload.assumptions;
  for (const auto& lines :
       {plan_assumptions(&graph, outcome.candidates.front().plan), outcome.assumptions}) {
    result.assumptions.insert(result.assumptions.end(), lines.begin(), lines.end());
  }
  planned.plan = std::move(outcome.candidates.front().plan);
  return planned;
}

}  // namespace braid
