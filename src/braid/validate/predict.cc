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

Prediction unpredicted(std::string reason) {
  Prediction prediction;
  prediction.reason = std::move(reason);
  return prediction;
}

Prediction predict_or_throw(const MeasuredRun& run) {
  RunSystem system = system_of(run);
  if (!system.reason.empty()) return unpredicted(std::move(system.reason));
  RunModel model = model_of(run);
  if (!model.graph) return unpredicted(std::move(model.reason));
  Graph& graph = *model.graph;
  RunParallelism form = parallelism_of(run, static_cast<std::int64_t>(graph.layers.size()) - 2);
  if (!form.reason.empty()) return unpredicted(std::move(form.reason));
  set_working_precision(graph, form.precision.activation, form.precision.weight);
  if (!trainer_defaults(run.framework).flash_attention) use_plain_attention(graph);

  Prediction prediction;
  prediction.parallel = form.parallel;
  prediction.measured_memory_bytes = run.peak_memory_bytes;
  prediction.measured_s =
      measured_time_s(run, graph, form.precision, form.parallel.recompute, system.system);
  if (prediction.measured_s <= 0) return unpredicted("no figure says how long an iteration took");
  prediction.bound_s = lower_bound(graph, form.precision, run.global_batch, system.system).time_s;
  prediction.metrics =
      measure(direct_plan(graph, form.parallel, form.precision, run.global_batch, system.system));
  return prediction;
}

}  // namespace

Prediction predict(const MeasuredRun& run) {
  try {
    return predict_or_throw(run);
  } catch (const Error& error) {
    return unpredicted(error.what());
  }
}

std::vector<Prediction> predict(const std::vector<MeasuredRun>& runs) {
  std::vector<Prediction> predictions(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) { predictions[i] = predict(runs[i]); });
  return predictions;
}

}  // namespace braid
