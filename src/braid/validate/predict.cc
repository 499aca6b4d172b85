#include "braid/validate/predict.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/bound.h"
#include "braid/schedule/timeline.h"
#include "braid/validate/direct_plan.h"
#include "braid/validate/framework.h"
#include "braid/validate/gradient_placeholders.h"
#include "braid/validate/hardware.h"
#include "braid/validate/maxtext_scripts.h"
#include "braid/validate/measured_time.h"
#include "braid/validate/node_replicas.h"
#include "braid/validate/run_model.h"
#include "braid/validate/run_parallelism.h"
#include "braid/validate/run_rates.h"

namespace braid {
namespace {

/// Scores are written to memory and read again.
void use_plain_attention(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* attention = std::get_if<Attention>(&op.kind)) attention->flash = false;
  }
}

/// Cross entropy reads the logits and leaves their gradient in their place, as a pointwise operator
/// does, in place of a kernel for each step and a copy in f32 (Transformer Engine's
/// common/triton/cross_entropy.py).
void fuse_loss(Graph& graph) {
  constexpr double kFlopsPerLogit = 5;
  for (Operator& op : graph.operators) {
    const auto* loss = std::get_if<Loss>(&op.kind);
    if (loss == nullptr) continue;
    op.kind = Elementwise{loss->rows * loss->width, kFlopsPerLogit, Elementwise::Keeps::inputs};
    if (op.split == Split::vocab) op.split = Split::features;
  }
}

/// Biases and clamps of experts take no time of their own.
void fuse_experts(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* experts = std::get_if<MoeExperts>(&op.kind)) {
      experts->biased = experts->clamped = false;
    }
  }
}

/// Tokens beyond the average of an expert are dropped.
void pad_experts(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* experts = std::get_if<MoeExperts>(&op.kind)) experts->padded = true;
  }
}

/// FlashAttention 2 reaches 35 % of an H100's peak where kernels for its asynchronous units reach
/// 1.5 to 2 times as much (Shah et al. 2024, FlashAttention-3).
constexpr double kOldAttentionRate = 0.6;
constexpr std::array<std::string_view, 6> kAsynchronous = {"h100", "h200",  "b200",
                                                           "b300", "gb200", "gb300"};

/// Hopper and Blackwell.
bool has_asynchronous_units(const Chip& chip) {
  return std::any_of(kAsynchronous.begin(), kAsynchronous.end(),
                     [&](std::string_view family) { return chip.name.starts_with(family); });
}

/// Adapters are trained, all other weights stay (Hu et al. 2021, LoRA).
bool is_frozen(const MeasuredRun& run) { return run.notes.starts_with("LoRA"); }

template <class Change>
void change_costs(Plan& plan, const Change& change) {
  for (std::vector<Option>& options : plan.profile.kinds) {
    for (Option& option : options) change(option.cost);
  }
}

/// Nothing hides behind the weights' gradients.
void show_tensor_parallel(Plan& plan) {
  change_costs(plan, [](LayerCost& cost) {
    cost.backward_input.tp_comm_s += cost.hidden_tp_s;
    cost.hidden_tp_s = 0;
  });
}

/// Every micro-batch but the first reads its gradients and what earlier ones left, and writes the
/// sum. Gradients that are sharded over ranks (ZeRO-2 and 3) are small beside that.
void add_accumulation(Plan& plan) {
  const Parallelism& parallel = plan.parallel;
  if (parallel.zero == Zero::gradients || parallel.zero == Zero::parameters) return;
  const double micro_batches =
      static_cast<double>(plan.global_batch) /
      (static_cast<double>(parallel.dp) * static_cast<double>(parallel.micro_batch));
  if (micro_batches <= 1) return;
  double bytes_per_s = kInfinity;
  for (const DeviceGroup& group : plan.system.groups) {
    bytes_per_s = std::min(
        bytes_per_s, group.chip.memory.bytes_per_s * group.chip.efficiency.memory_peak_fraction);
  }
  const double bytes =
      bytes_per_element(plan.precision.weight) + 2 * bytes_per_element(plan.precision.gradient);
  const double parameter_s = bytes * (1 - 1 / micro_batches) / bytes_per_s;
  change_costs(plan, [&](LayerCost& cost) {
    cost.backward_weight.compute_s +=
        (cost.dense_parameters + cost.expert_parameters) * parameter_s;
  });
}

/// Dispatch and its way back go on beside the other pass of another micro-batch: what does not hide
/// behind the layer's kernels shows, and of what does the share that it takes from them.
void hide_dispatch(Plan& plan) {
  const double loss = plan.system.groups.front().chip.efficiency.overlap_loss;
  change_costs(plan, [&](LayerCost& cost) {
    const double travel_s = cost.forward.ep_comm_s + cost.backward_input.ep_comm_s;
    if (travel_s <= 0) return;
    const double kernels_s = cost.forward.compute_s + cost.recompute.compute_s +
                             cost.backward_input.compute_s + cost.backward_weight.compute_s;
    const double hidden_s = std::min(travel_s, kernels_s);
    const double shown = (travel_s - hidden_s * (1 - loss)) / travel_s;
    cost.forward.ep_comm_s *= shown;
    cost.backward_input.ep_comm_s *= shown;
  });
}

/// With the weights' gradients neither computed nor reduced; the adapters' own are left out.
Metrics frozen_metrics(Plan plan, Sends sends) {
  show_tensor_parallel(plan);
  plan.precision.optimizer_bytes_per_parameter = 0;
  plan.precision.gradient = Dtype::f4;
  change_costs(plan, [](LayerCost& cost) { cost.backward_weight = {}; });
  const Metrics with_weights = measure(plan, sends);
  change_costs(plan, [](LayerCost& cost) { cost.dense_parameters = cost.expert_parameters = 0; });
  Metrics metrics = measure(plan, sends);
  metrics.peak_memory_bytes = with_weights.peak_memory_bytes;
  metrics.tightest_stage = with_weights.tightest_stage;
  metrics.tightest_memory = with_weights.tightest_memory;
  return metrics;
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
  prepared.precision = form.precision;
  if (run.precision.empty()) prepared.precision = usual_precision(prepared.system);
  prepared.global_batch = run.global_batch;
  for (const std::int64_t layers : run.stage_layers) {
    prepared.stage_layers.push_back(static_cast<std::int32_t>(
        std::min<std::int64_t>(layers, std::numeric_limits<std::int32_t>::max())));
  }
  set_working_precision(graph, prepared.precision.activation, prepared.precision.weight);
  const TrainerDefaults& trainer = prepared.trainer = trainer_defaults(run);
  if (!trainer.flash_attention) use_plain_attention(graph);
  if (trainer.fused_loss) fuse_loss(graph);
  if (trainer.fused_experts) fuse_experts(graph);
  if (trainer.padded_experts) pad_experts(graph);
  if (trainer.old_attention && has_asynchronous_units(prepared.system.groups.front().chip)) {
    prepared.attention_rate = kOldAttentionRate;
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
  // Two of the three products of every weight remain.
  if (prepared.frozen_weights) prepared.bound_s *= 2.0 / 3;
  if (run.micro_batch == 0 && prepared.parallel.pp == 1 && !trainer.whole_batches) {
    take_largest_micro_batch(prepared);
  }
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
  System slower = system;
  for (DeviceGroup& group : slower.groups) {
    group.chip.efficiency.attention_peak_fraction *= run.attention_rate;
    if (run.trainer.whole_graph) group.chip.efficiency.host_operator_s = 0;
  }
  const std::optional<NodeReplica> node = run.trainer.node_replicas
                                              ? node_replica(slower, run.parallel, run.global_batch)
                                              : std::nullopt;
  Plan plan = node ? direct_plan(run.graph, node->parallel, run.precision, node->global_batch,
                                 node->system, run.stage_layers)
                   : direct_plan(run.graph, run.parallel, run.precision, run.global_batch, slower,
                                 run.stage_layers);
  if (run.trainer.gradient_placeholders && !run.frozen_weights) {
    add_gradient_placeholders(run.graph, plan);
  }
  if (!run.trainer.fused_accumulation) add_accumulation(plan);
  if (run.trainer.overlap_dispatch) hide_dispatch(plan);
  if (!run.trainer.overlap_tensor_parallel) show_tensor_parallel(plan);
  const Sends sends = run.trainer.blocking_sends && run.parallel.vp == 1 ? Sends::within_passes
                                                                         : Sends::beside_passes;
  if (run.frozen_weights) return frozen_metrics(std::move(plan), sends);
  Metrics metrics = measure(plan, sends);
  if (node) {
    const double sync_s = sync_nodes_s(slower, static_cast<double>(parameter_count(run.graph)) *
                                                   bytes_per_element(run.precision.gradient));
    metrics.dp_comm_s += sync_s;
    metrics.iteration_time_s += sync_s;
  }
  return metrics;
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
  for (const DeviceGroup& group : prepared.system.groups) {
    prediction.chip += (prediction.chip.empty() ? "" : " + ") + group.chip.name;
  }
  if (!prediction.predicted()) return prediction;
  try {
    prediction.metrics = metrics_of(prepared, prepared.system);
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
