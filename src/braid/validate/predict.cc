#include "braid/validate/predict.h"

#include <utility>

#include "braid/base/error.h"
#include "braid/base/parallel.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/bound.h"
#include "braid/schedule/timeline.h"
#include "braid/validate/direct_plan.h"
#include "braid/validate/framework.h"
#include "braid/validate/hardware.h"
#include "braid/validate/measured_time.h"
#include "braid/validate/run_model.h"
#include "braid/validate/run_parallelism.h"

namespace braid {
namespace {

/// Scores are written to memory and read again.
void use_plain_attention(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* attention = std::get_if<Attention>(&op.kind)) attention->flash = false;
  }
}

void fill_or_throw(const MeasuredRun& run, PreparedRun& prepared) {
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
  prepared.parallel = std::move(form.parallel);
  prepared.precision = form.precision;
  prepared.global_batch = run.global_batch;
  set_working_precision(graph, form.precision.activation, form.precision.weight);
  if (!trainer_defaults(run.framework).flash_attention) use_plain_attention(graph);
  prepared.measured_memory_bytes = run.peak_memory_bytes;
  prepared.measured_s =
      measured_time_s(run, graph, form.precision, prepared.parallel.recompute, prepared.system);
  if (prepared.measured_s <= 0) {
    prepared.reason = "no figure says how long an iteration took";
    return;
  }
  prepared.bound_s = lower_bound(graph, form.precision, run.global_batch, prepared.system).time_s;
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

Metrics metrics_of(const PreparedRun& run, const System& system) {
  return measure(direct_plan(run.graph, run.parallel, run.precision, run.global_batch, system));
}

Prediction predict(const MeasuredRun& run) {
  const PreparedRun prepared = prepare(run);
  Prediction prediction;
  prediction.measured_s = prepared.measured_s;
  prediction.measured_memory_bytes = prepared.measured_memory_bytes;
  prediction.bound_s = prepared.bound_s;
  prediction.parallel = prepared.parallel;
  prediction.reason = prepared.reason;
  if (!prepared.system.groups.empty()) prediction.chip = prepared.system.groups.front().chip.name;
  if (!prediction.predicted()) return prediction;
  try {
    prediction.metrics = metrics_of(prepared, prepared.system);
  } catch (const Error& error) {
    prediction.reason = error.what();
  }
  return prediction;
}

std::vector<Prediction> predict(const std::vector<MeasuredRun>& runs) {
  std::vector<Prediction> predictions(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) { predictions[i] = predict(runs[i]); });
  return predictions;
}

}  // namespace braid
