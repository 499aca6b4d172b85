#include "braid/profile/layer_estimate.h"

#include <algorithm>
#include <optional>

#include "braid/graph/tensor_size.h"
#include "braid/profile/expert_time.h"
#include "braid/profile/operator_estimate.h"
#include "braid/profile/shard.h"

namespace braid {
namespace {

std::span<const Operator> operators_of(const LayerInput& input) {
  const Layer& layer = input.graph.layers[static_cast<std::size_t>(input.layer)];
  return std::span(input.graph.operators)
      .subspan(static_cast<std::size_t>(layer.first),
               static_cast<std::size_t>(layer.last - layer.first));
}

/// Of the graph's samples, what a rank of a context-parallel group has of a micro-batch.
double rows_of(const Graph& graph, const Execution& how) {
  return static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
}

/// Share of a tensor that one device stores, by the region that wrote it.
double stored_share(const Graph& graph, const Tensor& tensor, const Execution& how) {
  const double rows = rows_of(graph, how);
  if (tensor.producer < 0) return rows;
  const Operator& writer = graph.operators[static_cast<std::size_t>(tensor.producer)];
  if (!in_replicated_region(writer.split) && leaves_sharded(writer)) return rows / how.tp;
  return how.sequence_parallel ? rows / how.tp : rows;
}

/// Whether ranks that each write a part of a tensor put it together again for some reader.
bool is_gathered(std::span<const TensorUse> uses, TensorId tensor) {
  return std::any_of(uses.begin(), uses.end(), [&](const TensorUse& use) {
    return use.tensor == tensor && use.sharded && (use.needs.whole || use.needs.as_is);
  });
}

bool is_sharded(const Operator& op) {
  return op.split != Split::replicated && op.split != Split::sequence;
}

void add_stash(const LayerInput& input, const Operator& op, const OperatorWork& work,
               const Execution& how, std::span<const TensorUse> uses, LayerEstimate& estimate) {
  const Graph& graph = input.graph;
  const double rows = rows_of(graph, how);
  for (const LayerKept& kept : work.kept) {
    const auto [tensor, bytes] = kept.tensor;
    double share = rows / (is_sharded(op) || how.sequence_parallel ? how.tp : 1);
    if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
      share = rows * kept_share(*experts, how);
    }
    if (tensor >= 0) {
      share = is_gathered(uses, tensor)
                  ? rows
                  : stored_share(graph, graph.tensors[static_cast<std::size_t>(tensor)], how);
    }
    if (!kept.is_first) continue;
    estimate.whole_stash_bytes += bytes * share;
    if (kept.is_selective) estimate.partial_stash_bytes += bytes * share;
  }
}

/// The pass takes at least as long as the host takes to issue it.
void wait_for_host(double host_s, PassTime& pass) {
  pass.compute_s += std::max(0.0, host_s - pass.total_s());
}

/// Kernels that the host issues for a forward pass of an operator, collectives and experts aside.
double own_kernels(const Operator& op) {
  const auto* view = std::get_if<DataMovement>(&op.kind);
  if (view != nullptr && view->view) return 0;
  const auto* attention = std::get_if<Attention>(&op.kind);
  return attention != nullptr && !attention->flash ? kPlainAttentionKernels : 1;
}

/// Those of the best mapping.
MappedTimes mapped_times_of(const LayerInput& input, const Execution& how,
                            const LayerPlace& place) {
  std::optional<MappedLayers> own;
  MappedLayers* mapped = input.mapped;
  if (mapped == nullptr) {
    mapped = &own.emplace(input.graph, place.precision, place.system.groups.front().chip);
  }
  return mapped->times(input.graph, input.layer, input.works, how);
}

}  // namespace

void add_compute(const LayerInput& input, const Execution& how,
                 std::span<const OperatorTimes> times, LayerEstimate& estimate) {
  LayerCost& cost = estimate.cost;
  const std::span<const Operator> operators = operators_of(input);
  const double rows = rows_of(input.graph, how);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    cost.forward.compute_s += times[i].forward_s;
    cost.backward_input.compute_s += times[i].backward_input_s;
    cost.backward_weight.compute_s += times[i].backward_weight_s;
    if (std::holds_alternative<Attention>(operators[i].kind)) {
      estimate.attention_forward_s += times[i].forward_s;
      estimate.attention_backward_s += times[i].backward_input_s;
    }
    if (input.works[i].is_recomputed) estimate.selective_s += times[i].forward_s;
    // What each rank of a tensor-parallel group does again is the model's arithmetic once.
    cost.model_flops += input.works[i].model_flops * rows / how.tp;
  }
  estimate.again_s = estimate.unkept_forward_s = cost.forward.compute_s;
}

void add_memory(const LayerInput& input, const Execution& how, const Precision& precision,
                std::span<const TensorUse> uses, LayerEstimate& estimate) {
  LayerCost& cost = estimate.cost;
  const Graph& graph = input.graph;
  const std::span<const Operator> operators = operators_of(input);
  const double rows = rows_of(graph, how);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    add_stash(input, op, input.works[i], how, uses, estimate);
    double working = 0;
    for (const TensorId output : op.outputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(output)];
      working += elements_of(tensor) * bytes_per_element(tensor.dtype) * rows /
                 (is_sharded(op) ? how.tp : 1);
      cost.output_bytes = elements_of(tensor) * bytes_per_element(precision.activation) *
                          (is_gathered(uses, output) ? rows : stored_share(graph, tensor, how));
    }
    if (const auto* loss = std::get_if<Loss>(&op.kind)) {
      // Logits and their gradient in f32.
      working = 8 * static_cast<double>(loss->rows) * static_cast<double>(loss->width) * rows /
                (op.split == Split::vocab ? how.tp : 1);
    }
    cost.working_bytes = std::max(cost.working_bytes, 2 * working);
    for (const TensorId parameter : input.works[i].parameters) {
      const double share = shard_of(op.split, how, 1).weight;
      (op.split == Split::expert ? cost.expert_parameters : cost.dense_parameters) +=
          elements_of(graph.tensors[static_cast<std::size_t>(parameter)]) * share;
    }
  }
}

void take_mapped_times(const MappedTimes& times, LayerEstimate& estimate) {
  LayerCost& cost = estimate.cost;
  const double sum_s = cost.forward.compute_s;
  const double backward_s = cost.backward_input.compute_s + cost.backward_weight.compute_s;
  const double weights = backward_s > 0 ? cost.backward_weight.compute_s / backward_s : 0;
  cost.forward.compute_s = times.forward_s;
  estimate.unkept_forward_s = times.forward_unkept_s;
  cost.backward_input.compute_s = times.backward_s * (1 - weights);
  cost.backward_weight.compute_s = times.backward_s * weights;
  estimate.again_s = times.forward_s;
  estimate.selective_s = times.recomputed_s;
  // Attention takes the share of the pass that it has by itself.
  if (sum_s > 0) estimate.attention_forward_s *= times.forward_s / sum_s;
  if (backward_s > 0) estimate.attention_backward_s *= times.backward_s / backward_s;
}

double issued_kernels(const LayerInput& input, const Execution& how, const Precision& precision) {
  const bool narrow = bytes_per_element(precision.matmul) < bytes_per_element(precision.activation);
  double issued = 0;
  for (const Operator& op : operators_of(input)) {
    issued += own_kernels(op);
    if (how.tp > 1 && op.split == Split::row) ++issued;  // The collective behind it.
    if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
      issued += experts_issued(static_cast<double>(experts->experts) / how.ep, narrow, how.ep > 1,
                               experts->biased, experts->clamped, is_sorted(*experts, how));
      // Tokens are gathered and outputs scattered, or these summed.
      if (how.tp > 1 && !how.whole_experts) issued += how.sequence_parallel ? 2 : 1;
      --issued;  // Counted as one above.
    }
  }
  return issued;
}

void add_communication(const LayerInput& input, const Execution& how, const LayerPlace& place,
                       std::span<const TensorUse> uses, LayerEstimate& estimate) {
  LayerCost& cost = estimate.cost;
  const LayerComm comm = layer_comm(input, uses, how, place);
  cost.forward.tp_comm_s = comm.tp_forward_s;
  cost.hidden_tp_s = comm.tp_hidden_s;
  cost.backward_input.tp_comm_s = comm.tp_backward_s - cost.hidden_tp_s;
  cost.forward.ep_comm_s = comm.ep_forward_s;
  cost.backward_input.ep_comm_s = comm.ep_backward_s;
  if (comm.cp_forward_bytes <= 0) return;
  // Keys and values go around in cp - 1 steps behind the attention of the block at hand; the
  // backward pass moves them and their gradients.
  const double step_s = collective_time(Collective::all_gather, comm.cp_forward_bytes * how.cp,
                                        place.groups.cp, place.system)
                            .time_s;
  const double hidden = static_cast<double>(how.cp - 1) / how.cp;
  cost.forward.cp_comm_s =
      std::max(step_s / how.cp, step_s - estimate.attention_forward_s * hidden);
  cost.backward_input.cp_comm_s =
      std::max(2 * step_s / how.cp, 2 * step_s - estimate.attention_backward_s * hidden);
}

void add_recomputation(const LayerEstimate& estimate, Recompute recompute, LayerCost& cost) {
  const double host_s = estimate.host_s;
  if (recompute == Recompute::full) {
    cost.recompute = cost.forward;
    cost.recompute.compute_s = estimate.again_s;
    cost.forward.compute_s = estimate.unkept_forward_s;
  }
  cost.stash_bytes = estimate.whole_stash_bytes;
  wait_for_host(host_s, cost.forward);
  PassTime backward = cost.backward_input;
  backward += cost.backward_weight;
  cost.backward_input.compute_s += std::max(0.0, host_s - backward.total_s());
  if (recompute == Recompute::full) {
    wait_for_host(host_s, cost.recompute);
    cost.stash_bytes = cost.output_bytes;
    cost.working_bytes = std::max(cost.working_bytes, estimate.whole_stash_bytes);
  } else if (recompute == Recompute::selective) {
    cost.recompute.compute_s = estimate.selective_s;
    cost.stash_bytes = estimate.partial_stash_bytes;
    cost.working_bytes += estimate.whole_stash_bytes - cost.stash_bytes;
  }
}

void add_offload(const Execution& how, const Precision& precision, const Chip& chip,
                 LayerCost& cost) {
  if (how.offload_activations) {
    cost.offloaded_bytes = cost.stash_bytes;
    const double transfer_s = chip.host ? cost.stash_bytes / chip.host->bytes_per_s : 0;
    cost.forward.offload_s = std::max(0.0, transfer_s - cost.forward.total_s());
    cost.backward_input.offload_s = std::max(0.0, transfer_s - cost.backward_s());
  }
  if (how.offload_weights && chip.host) {
    const double transfer_s = (cost.dense_parameters + cost.expert_parameters) *
                              bytes_per_element(precision.weight) / chip.host->bytes_per_s;
    cost.forward.offload_s += std::max(0.0, transfer_s - cost.forward.total_s());
    cost.backward_input.offload_s += std::max(0.0, transfer_s - cost.backward_s());
  }
}

LayerEstimate estimate_untraded(const LayerInput& input, const Execution& how,
                                const LayerPlace& place, const MappedTimes* mapped) {
  const Chip& chip = place.system.groups.front().chip;
  const double peak = matmul_peak_in(chip, place.precision);
  const Layer& layer = input.graph.layers[static_cast<std::size_t>(input.layer)];
  const OperatorEstimate operators(input.graph, how, place.precision, chip, peak);
  std::vector<OperatorTimes> times;
  times.reserve(input.works.size());
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    times.push_back(operators.times(input.graph.operators[static_cast<std::size_t>(id)],
                                    input.works[static_cast<std::size_t>(id - layer.first)]));
  }
  std::vector<TensorUse> uses;
  if (how.tp > 1) {
    uses = tensor_uses(input.graph, layer, times, input.made_whole, how.sequence_parallel);
  }
  LayerEstimate estimate;
  add_compute(input, how, times, estimate);
  add_memory(input, how, place.precision, uses, estimate);
  if (mapped != nullptr) {
    take_mapped_times(*mapped, estimate);
  } else if (maps_layers(chip) && input.maps_kernels) {
    take_mapped_times(mapped_times_of(input, how, place), estimate);
  }
  add_communication(input, how, place, uses, estimate);
  // Kernels wait for the host where it takes longer to issue them. The backward pass of an operator
  // is two on average, gradients of what it read and of its weights, but the engine that issues
  // them runs without the interpreter (Paszke et al. 2019, section 5.1) and needs half the time for
  // each.
  estimate.host_s = issued_kernels(input, how, place.precision) * chip.efficiency.host_operator_s;
  return estimate;
}

LayerCost traded(const LayerEstimate& estimate, const Execution& how, const Precision& precision,
                 const Chip& chip) {
  LayerCost cost = estimate.cost;
  add_recomputation(estimate, how.recompute, cost);
  add_offload(how, precision, chip, cost);
  return cost;
}

}  // namespace braid
