#include "braid/validate/predict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/bound.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/node_replicas.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"
#include "braid/trust/evidence.h"
#include "braid/trust/likeness.h"
#include "braid/validate/hardware.h"
#include "braid/validate/maxtext_scripts.h"
#include "braid/validate/measured_time.h"
#include "braid/validate/run_model.h"
#include "braid/validate/run_parallelism.h"
#include "braid/validate/run_rates.h"
#include "braid/validate/run_trainer.h"

namespace braid {
namespace {

/// Adapters are trained, all other weights stay (Hu et al. 2021, LoRA).
bool is_frozen(const MeasuredRun& run) { return run.notes.starts_with("LoRA"); }

template <class Change>
void change_costs(Plan& plan, const Change& change) {
  for (std::vector<Option>& options : plan.profile.kinds) {
    for (Option& option : options) change(option.cost);
  }
}

/// With the weights' gradients neither computed nor reduced; the adapters' own are left out.
Metrics frozen_metrics(Plan plan) {
  plan.precision.optimizer_bytes_per_parameter = 0;
  plan.precision.gradient = Dtype::f4;
  change_costs(plan, [](LayerCost& cost) {
    cost.backward_input.tp_comm_s += cost.hidden_tp_s;
    cost.hidden_tp_s = 0;
    cost.backward_weight = {};
  });
  const Metrics with_weights = measure(plan);
  change_costs(plan, [](LayerCost& cost) { cost.dense_parameters = cost.expert_parameters = 0; });
  Metrics metrics = measure(plan);
  metrics.peak_memory_bytes = with_weights.peak_memory_bytes;
  metrics.tightest_stage = with_weights.tightest_stage;
  metrics.tightest_memory = with_weights.tightest_memory;
  return metrics;
}

/// Halfway between two ways to run a job.
Metrics halfway(Metrics a, const Metrics& b) {
  for (double Metrics::*const figure :
       {&Metrics::iteration_time_s, &Metrics::compute_s, &Metrics::tp_comm_s, &Metrics::cp_comm_s,
        &Metrics::ep_comm_s, &Metrics::pp_comm_s, &Metrics::dp_comm_s, &Metrics::bubble_s,
        &Metrics::recompute_s, &Metrics::optimizer_s, &Metrics::offload_s,
        &Metrics::peak_memory_bytes}) {
    a.*figure = (a.*figure + b.*figure) / 2;
  }
  const double longer = b.iteration_time_s / a.iteration_time_s;
  for (double Metrics::*const rate :
       {&Metrics::tokens_per_s, &Metrics::model_flops_per_s_per_device, &Metrics::mfu}) {
    a.*rate = b.*rate * longer;
  }
  return a;
}

/// The largest micro-batch that fits into memory; where none does, all that a rank has.
void take_largest_micro_batch(PreparedRun& prepared) {
  Parallelism& parallel = prepared.parallel;
  const Parallelism whole = parallel;
  const std::int64_t rank_batch = prepared.global_batch / parallel.dp;
  double room_bytes = kInfinity;
  for (const DeviceGroup& group : prepared.system.groups) {
    room_bytes = std::min(room_bytes, usable_bytes(group.chip));
  }
  for (std::int64_t parts = 1; parts <= rank_batch; ++parts) {
    if (rank_batch % parts != 0) continue;
    parallel.micro_batch = static_cast<int>(rank_batch / parts);
    parallel.num_micro_batches = parts;
    if (metrics_of(prepared, prepared.system).peak_memory_bytes <= room_bytes) return;
  }
  parallel = whole;
}

void fill_or_throw(const MeasuredRun& stated, PreparedRun& prepared) {
  if (!stated.failure.empty()) {
    prepared.reason = "the run did not finish: " + stated.failure;
    return;
  }
  if (stated.notes.find("plan in ") != std::string::npos) {
    prepared.reason = "the plan is in a file that the notes only name";
    return;
  }
  const MeasuredRun run = with_told_by_rates(with_maxtext_script(stated));
  RunSystem system = system_of(run);
  prepared.reason = std::move(system.reason);
  if (!prepared.reason.empty()) return;
  prepared.system = std::move(system.system);
  RunModel model = model_of(run);
  prepared.reason = std::move(model.reason);
  if (!prepared.reason.empty()) return;
  prepared.graph = std::move(*model.graph);
  Graph& graph = prepared.graph;
  RunParallelism form = parallelism_of(run, static_cast<std::int64_t>(graph.layers.size()) - 2);
  prepared.reason = std::move(form.reason);
  if (!prepared.reason.empty()) return;
  if (run.precision.empty() &&
      matmul_peak(prepared.system.groups.front().chip, Dtype::f8).has_value()) {
    prepared.reason = "the precision is not said, and the chip has 8-bit units";
    return;
  }
  prepared.parallel = std::move(form.parallel);
  prepared.half_recompute = form.half_recompute;
  prepared.precision = form.precision;
  if (run.precision.empty()) prepared.precision = usual_precision(prepared.system);
  prepared.global_batch = run.global_batch;
  for (const std::int64_t layers : run.stage_layers) {
    prepared.stage_layers.push_back(static_cast<std::int32_t>(
        std::min<std::int64_t>(layers, std::numeric_limits<std::int32_t>::max())));
  }
  set_working_precision(graph, prepared.precision.activation, prepared.precision.weight);
  TrainerSubject subject = subject_of(run);
  subject.compute_capability = least_compute_capability(prepared.system);
  const TrainerFile& trainer = trainer_of_run(subject);
  prepared.trainer = trainer.trainer(subject);
  adapt_graph(prepared.trainer.does, graph);
  adapt_precision(prepared.trainer.does, prepared.precision);
  if (prepared.trainer.does.node_replicas) {
    prepared.parallel.replicate = node_replicas(prepared.system, prepared.parallel);
  }
  prepared.measured_memory_bytes = run.peak_memory_bytes;
  prepared.measured_s =
      measured_time_s(run, graph, prepared.precision, prepared.parallel.recompute, prepared.system);
  if (prepared.measured_s <= 0) {
    prepared.reason = "no figure says how long an iteration took";
    return;
  }
  prepared.bound_s =
      lower_bound(graph, prepared.precision, run.global_batch, prepared.system).time_s;
  prepared.frozen_weights = is_frozen(run);
  if (prepared.frozen_weights) prepared.trainer.does.gradient_placeholders = false;
  // Two of the three GEMMs of every weight remain.
  if (prepared.frozen_weights) prepared.bound_s *= 2.0 / 3;
  if (run.micro_batch == 0 && prepared.parallel.pp == 1 && !trainer.usual(subject).whole_batches) {
    take_largest_micro_batch(prepared);
  }
}

/// Whether this is the run that the evidence has, as far as its digits go.
bool is_same(const RunError& known, const Prediction& prediction) {
  constexpr double kMostDistance = 0.01, kMostError = 1e-3;
  const double error = -std::log(prediction.ratio());
  return std::abs(known.error - error) < kMostError &&
         distance_of(known.traits, prediction.traits) < kMostDistance;
}

void add_intervals(Prediction& prediction) {
  const auto is_other = [&](const RunError& known) { return !is_same(known, prediction); };
  prediction.interval = time_interval(prediction.traits, evidence(), is_other);
  prediction.memory_interval = memory_interval(prediction.traits, evidence(), is_other);
}

Metrics metrics_of(const PreparedRun& run, const Plan& plan) {
  const Metrics metrics = run.frozen_weights ? frozen_metrics(plan) : measure(plan);
  if (!run.half_recompute) return metrics;
  PreparedRun full = run;
  full.half_recompute = false;
  full.parallel.recompute = Recompute::full;
  return halfway(metrics, metrics_of(full, plan_of(full, plan.system)));
}

}  // namespace

PreparedRun prepare(const MeasuredRun& run) {
  PreparedRun prepared;
  try {
    fill_or_throw(run, prepared);
  } catch (const Error& error) {
    prepared.reason = error.what();
  }
  return prepared;
}

Plan plan_of(const PreparedRun& run, const System& system) {
  return direct_plan(run.graph, {run.parallel, run.precision, run.trainer, run.global_batch},
                     system, run.stage_layers);
}

Metrics metrics_of(const PreparedRun& run, const System& system) {
  return metrics_of(run, plan_of(run, system));
}

Prediction predict(const MeasuredRun& run, const Calibration& calibration) {
  PreparedRun prepared = prepare(run);
  if (prepared.reason.empty()) static_cast<void>(apply_calibration(calibration, prepared.system));
  Prediction prediction;
  prediction.measured_s = prepared.measured_s;
  prediction.measured_memory_bytes = prepared.measured_memory_bytes;
  prediction.bound_s = prepared.bound_s;
  prediction.parallel = prepared.parallel;
  prediction.reason = prepared.reason;
  prediction.chip = chip_names_of(prepared.system);
  if (!prediction.predicted()) return prediction;
  try {
    const Plan plan = plan_of(prepared, prepared.system);
    prediction.metrics = metrics_of(prepared, plan);
    prediction.traits = traits_of(plan, prediction.metrics);
    add_intervals(prediction);
  } catch (const Error& error) {
    prediction.reason = error.what();
  }
  return prediction;
}

std::vector<Prediction> predict(const std::vector<MeasuredRun>& runs,
                                const Calibration& calibration) {
  std::vector<Prediction> predictions(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) { predictions[i] = predict(runs[i], calibration); });
  return predictions;
}

}  // namespace braid
