#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/explore/point_result.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/names.h"
#include "braid/plan/plan_energy.h"
#include "braid/planners/trainer_choice.h"
#include "braid/report/form_text.h"
#include "braid/report/plan_assumptions.h"
#include "braid/report/plan_text.h"
#include "braid/verify/check_candidates.h"

namespace braid {
namespace {

void describe(const Outcome& outcome, const Graph& graph, PointResult& result) {
  const Plan& plan = outcome.candidates.front().plan;
  const Metrics& m = outcome.candidates.front().metrics;
  result.time_s = m.iteration_time_s;
  result.throughput = graph.seq_len > 0
                          ? m.tokens_per_s
                          : static_cast<double>(plan.global_batch) / m.iteration_time_s;
  result.utilisation = m.mfu;
  const FormText form = form_text(plan);
  result.form = parallelism_text(plan);
  result.words = {form.tp,          fmt::format("{}", plan.parallel.pp),
                  form.cp,          fmt::format("{}", plan.parallel.vp),
                  form.ep,          form.dp,
                  form.micro_batch, schedule_text(plan),
                  form.recompute,   form.zero,
                  form.offload};
  result.counts = {devices_used(plan), outcome.evaluated};
  result.figures = {outcome.search_bound_s, m.peak_memory_bytes, m.model_flops_per_s_per_device,
                    outcome.objective};
  result.parts_s = {m.compute_s, m.recompute_s, m.tp_comm_s, m.cp_comm_s, m.ep_comm_s,
                    m.pp_comm_s, m.dp_comm_s,   m.bubble_s,  m.offload_s, m.optimizer_s};
}

/// What of a system's power is not that of its chips.
double other_watts(const System& system, const SystemCost& cost) {
  const double chip = system.groups.front().chip.power_w.value_or(0);
  return std::max(0.0, cost.watts - static_cast<double>(system.device_count) * chip);
}

}  // namespace

// Degrees of one are not worth a word.
std::string parallelism_text(const Plan& plan) {
  const FormText form = form_text(plan);
  std::string text = fmt::format("TP {} PP {} DP {}", form.tp, plan.parallel.pp, form.dp);
  if (form.cp != "1") text += " CP " + form.cp;
  if (form.ep != "1") text += " EP " + form.ep;
  if (plan.parallel.vp != 1) text += fmt::format(" VP {}", plan.parallel.vp);
  text += " MBS " + form.micro_batch;
  if (form.recompute != "none") text += ", recompute " + form.recompute;
  if (form.zero != "0") text += ", ZeRO " + form.zero;
  if (!form.offload.empty()) text += ", off" + form.offload;
  return text + ", by " + plan.trainer.name;
}

WorkloadPlan plan_workload(const SystemSpace& space, std::size_t workload, std::size_t planner,
                           const System& system, std::shared_ptr<NestMemo> nests) {
  const SystemWorkload& asked = space.workloads[workload];
  WorkloadPlan planned{{}, asked.graph, {}};
  try {
    Job job;
    job.precision =
        asked.precision.empty() ? usual_precision(system) : parse_precision(asked.precision);
    set_working_precision(planned.graph, job.precision.activation, job.precision.weight);
    job.graph = &planned.graph;
    job.model_source = asked.model;
    job.global_batch = asked.global_batch;
    job.sharding = space.sharding;
    job.nests = std::move(nests);
    SpaceOptions options = space.options;
    std::vector<const PlannerEntry*> planners;
    for (const std::string& name : space.planners) planners.push_back(&find_planner(name));
    const TrainerNeeds needs{&job, &system, &options, planners};
    if (space.trainer) check_trainer(*space.trainer, needs);
    const TrainerFile& trainer = space.trainer ? *space.trainer : usual_trainer(needs);
    const std::vector<std::string> notes = trainer_notes(trainer, needs, space.trainer.has_value());
    set_trainer(trainer, system, job, options);
    adapt_graph(job.trainer.does, planned.graph);
    PlannerOptions all = options;
    all.own = space.own;
    planned.outcome =
        find_planner(space.planners[planner]).plan(job, system, all, space.budget, {});
    planned.outcome.trainer_notes = notes;
  } catch (const Error& refusal) {
    planned.refusal = refusal.what();
  }
  return planned;
}

PlannedPoint plan_point(const SystemSpace& space, const SpacePoint& point,
                        std::shared_ptr<NestMemo> nests) {
  const System system = system_of(space, point);
  // Of the plan and of its energy.
  const auto known = nests != nullptr ? std::move(nests) : std::make_shared<NestMemo>();
  WorkloadPlan of = plan_workload(space, point[kWorkloadAxis], point[kMethodAxis], system, known);
  PlannedPoint planned;
  PointResult& result = planned.result;
  if (!of.refusal.empty()) {
    result.reason = of.refusal;
    return planned;
  }
  Outcome& outcome = of.outcome;
  result.status = outcome.status;
  result.work = outcome.work;
  result.lower_bound_s = outcome.physical_bound.time_s;
  if (outcome.candidates.empty()) {
    result.reason = infeasibility_text(outcome);
    return planned;
  }
  const std::string failure = claim_and_check(outcome);
  if (!failure.empty()) {
    throw std::logic_error(
        fmt::format("a plan of {} {}", space.planners[point[kMethodAxis]], failure));
  }
  const SystemCost cost = cost_of(space, point);
  if (space.has_prices) result.usd = cost.usd;
  if (space.has_powers) result.watts = cost.watts;
  describe(outcome, of.graph, result);
  if (space.counts_energy) {
    const Plan& plan = outcome.candidates.front().plan;
    result.joules = plan_energy(plan, of.graph, outcome.objective, *known).total_j();
    if (space.has_powers) result.joules += other_watts(system, cost) * outcome.objective;
  }
  result.assumptions = space.workloads[point[kWorkloadAxis]].assumptions;
  for (const auto& lines : {plan_assumptions(&of.graph, outcome.candidates.front().plan),
                            outcome.trainer_notes, outcome.assumptions}) {
    result.assumptions.insert(result.assumptions.end(), lines.begin(), lines.end());
  }
  planned.plan = std::move(outcome.candidates.front().plan);
  return planned;
}

}  // namespace braid
