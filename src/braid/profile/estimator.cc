#include "braid/profile/estimator.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "braid/graph/tensor_size.h"
#include "braid/profile/estimated_layers.h"
#include "braid/profile/expert_time.h"
#include "braid/profile/layer_comm.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/operator_estimate.h"
#include "braid/profile/shard.h"
#include "braid/profile/sharded_options.h"
#include "braid/profile/split_limits.h"

namespace braid {
namespace {

/// The pass takes at least as long as the host takes to issue it.
void wait_for_host(double host_s, PassTime& pass) {
  pass.compute_s += std::max(0.0, host_s - pass.total_s());
}

/// Share of a tensor that one device stores, by the region that wrote it.
double stored_share(const Graph& graph, const Tensor& tensor, const Execution& how) {
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  if (tensor.producer < 0) return rows;
  const Operator& writer = graph.operators[static_cast<std::size_t>(tensor.producer)];
  if (!in_replicated_region(writer.split) && leaves_divided(writer)) return rows / how.tp;
  return how.sequence_parallel ? rows / how.tp : rows;
}

/// Whether ranks that each write a part of a tensor put it together again for some reader.
bool is_gathered(std::span<const TensorUse> uses, TensorId tensor) {
  return std::any_of(uses.begin(), uses.end(), [&](const TensorUse& use) {
    return use.tensor == tensor && use.divided && (use.needs.whole || use.needs.as_is);
  });
}

}  // namespace

LayerCost estimate_layer(const Graph& graph, LayerId layer, const Execution& how,
                         const Precision& precision, const LayerGroups& groups,
                         const System& system) {
  return estimate_layer(graph, layer, layer_work(graph, layer), how, precision, groups, system);
}

LayerCost estimate_layer(const Graph& graph, LayerId layer_id, std::span<const OperatorWork> works,
                         const Execution& how, const Precision& precision,
                         const LayerGroups& groups, const System& system,
                         std::span<const TensorId> made_whole, MappedLayers* mapped) {
  const Chip& chip = system.groups.front().chip;
  const double peak = matmul_peak_in(chip, precision);
  const Layer& layer = graph.layers[static_cast<std::size_t>(layer_id)];
  const OperatorEstimate estimate(graph, how, precision, chip, peak);
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  std::vector<OperatorTimes> all_times;
  all_times.reserve(works.size());
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    all_times.push_back(estimate.times(graph.operators[static_cast<std::size_t>(id)],
                                       works[static_cast<std::size_t>(id - layer.first)]));
  }
  std::vector<TensorUse> uses;
  if (how.tp > 1) uses = tensor_uses(graph, layer, all_times, made_whole, how.sequence_parallel);
  LayerCost cost;
  double attention_forward_s = 0;
  double attention_backward_s = 0;
  double selective_s = 0;
  double whole_stash = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const OperatorWork& work = works[static_cast<std::size_t>(id - layer.first)];
    const OperatorTimes& times = all_times[static_cast<std::size_t>(id - layer.first)];
    cost.forward.compute_s += times.forward_s;
    cost.backward_input.compute_s += times.backward_input_s;
    cost.backward_weight.compute_s += times.backward_weight_s;
    if (std::holds_alternative<Attention>(op.kind)) {
      attention_forward_s += times.forward_s;
      attention_backward_s += times.backward_input_s;
    }
    if (work.is_recomputed) selective_s += times.forward_s;
    const bool is_split = op.split != Split::replicated && op.split != Split::sequence;
    // What each rank of a tensor-parallel group does again is the model's arithmetic once.
    cost.model_flops += work.model_flops * rows / how.tp;
    for (const LayerKept& kept : work.kept) {
      const auto [tensor, bytes] = kept.tensor;
      double share = rows / (is_split || how.sequence_parallel ? how.tp : 1);
      if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
        share = rows * kept_share(*experts, how);
      }
      if (tensor >= 0) {
        share = is_gathered(uses, tensor)
                    ? rows
                    : stored_share(graph, graph.tensors[static_cast<std::size_t>(tensor)], how);
      }
      if (kept.is_first) whole_stash += bytes * share;
      const bool is_stored =
          how.recompute == Recompute::selective ? kept.is_first_of_stored : kept.is_first;
      if (is_stored) cost.stash_bytes += bytes * share;
    }
    double working = 0;
    for (const TensorId output : op.outputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(output)];
      working +=
          elements_of(tensor) * bytes_per_element(tensor.dtype) * rows / (is_split ? how.tp : 1);
      cost.output_bytes = elements_of(tensor) * bytes_per_element(precision.activation) *
                          (is_gathered(uses, output) ? rows : stored_share(graph, tensor, how));
    }
    if (const auto* loss = std::get_if<Loss>(&op.kind)) {
      // Logits and their gradient in f32.
      working = 8 * static_cast<double>(loss->rows) * static_cast<double>(loss->width) * rows /
                (op.split == Split::vocab ? how.tp : 1);
    }
    cost.working_bytes = std::max(cost.working_bytes, 2 * working);
    for (const TensorId parameter : work.parameters) {
      const double share = shard_of(op.split, how, 1).weight;
      (op.split == Split::expert ? cost.expert_parameters : cost.dense_parameters) +=
          elements_of(graph.tensors[static_cast<std::size_t>(parameter)]) * share;
    }
  }
  double again_s = cost.forward.compute_s;  // Of a forward pass for the backward one.
  if (chip.execution == ChipExecution::dataflow) {
    std::optional<MappedLayers> own;
    if (mapped == nullptr) mapped = &own.emplace(graph, precision, chip);
    const MappedTimes& times = mapped->times(graph, layer_id, works, how);
    const double sum_s = cost.forward.compute_s;
    const double backward_s = cost.backward_input.compute_s + cost.backward_weight.compute_s;
    const double weights = backward_s > 0 ? cost.backward_weight.compute_s / backward_s : 0;
    cost.forward.compute_s =
        how.recompute == Recompute::full ? times.forward_unkept_s : times.forward_s;
    cost.backward_input.compute_s = times.backward_s * (1 - weights);
    cost.backward_weight.compute_s = times.backward_s * weights;
    again_s = times.forward_s;
    selective_s = times.recomputed_s;
    // Attention takes the share of the pass that it has by itself.
    if (sum_s > 0) attention_forward_s *= times.forward_s / sum_s;
    if (backward_s > 0) attention_backward_s *= times.backward_s / backward_s;
  }
  // Kernels wait for the host where it takes longer to issue them. The backward pass of an operator
  // is two on average, gradients of what it read and of its weights, but the engine that issues
  // them runs without the interpreter (Paszke et al. 2019, section 5.1) and needs half the time for
  // each.
  const bool narrow = bytes_per_element(precision.matmul) < bytes_per_element(precision.activation);
  double issued = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const auto* view = std::get_if<DataMovement>(&op.kind);
    if (view == nullptr || !view->view) ++issued;
    if (how.tp > 1 && op.split == Split::row) ++issued;  // The collective behind it.
    if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
      issued += experts_issued(static_cast<double>(experts->experts) / how.ep, narrow, how.ep > 1,
                               experts->biased, experts->clamped, is_sorted(*experts, how));
      // Tokens are gathered and outputs scattered, or these summed.
      if (how.tp > 1 && !how.whole_experts) issued += how.sequence_parallel ? 2 : 1;
      --issued;  // Counted as one above.
    }
  }
  const double host_s = issued * chip.efficiency.host_operator_s;
  const LayerComm comm = layer_comm(graph, layer, uses, how, precision, groups, system);
  cost.forward.tp_comm_s = comm.tp_forward_s;
  cost.hidden_tp_s = comm.tp_hidden_s;
  cost.backward_input.tp_comm_s = comm.tp_backward_s - cost.hidden_tp_s;
  cost.forward.ep_comm_s = comm.ep_forward_s;
  cost.backward_input.ep_comm_s = comm.ep_backward_s;
  if (comm.cp_forward_bytes > 0) {
    // Keys and values go around in cp - 1 steps behind the attention of the block at hand; the
    // backward pass moves them and their gradients.
    const double step_s =
        collective_time(Collective::all_gather, comm.cp_forward_bytes * how.cp, groups.cp, system)
            .time_s;
    const double hidden = static_cast<double>(how.cp - 1) / how.cp;
    cost.forward.cp_comm_s = std::max(step_s / how.cp, step_s - attention_forward_s * hidden);
    cost.backward_input.cp_comm_s =
        std::max(2 * step_s / how.cp, 2 * step_s - attention_backward_s * hidden);
  }
  if (how.recompute == Recompute::full) {
    cost.recompute = cost.forward;
    cost.recompute.compute_s = again_s;
  }
  wait_for_host(host_s, cost.forward);
  {
    PassTime backward = cost.backward_input;
    backward += cost.backward_weight;
    const double wait_s = std::max(0.0, host_s - backward.total_s());
    cost.backward_input.compute_s += wait_s;
  }
  if (how.recompute == Recompute::full) {
    wait_for_host(host_s, cost.recompute);
    cost.stash_bytes = cost.output_bytes;
    cost.working_bytes = std::max(cost.working_bytes, whole_stash);
  } else if (how.recompute == Recompute::selective) {
    cost.recompute.compute_s = selective_s;
    cost.working_bytes += whole_stash - cost.stash_bytes;
  }
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
  return cost;
}

Profile estimate_profile(const Graph& graph, const std::vector<Execution>& executions,
                         const Precision& precision, const System& system,
                         ShardingSource sharding) {
  const EstimatedLayers layers(graph, sharding);
  const std::unique_ptr<LayerCosts> costs = layers.on(system, precision);
  const SplitLimits limits = split_limits(graph);
  Profile profile = layers.layers();
  profile.chip = system.groups.front().chip.name;
  const bool finds = layers.finds_divisions();
  const std::vector<bool> closed = kinds_closed(graph);
  for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) {
    for (const Execution& how : executions) {
      LayerGroups groups;
      groups.tp = span_of(system, 1, how.tp);
      groups.cp = span_of(system, how.tp, how.cp);
      groups.ep = span_of(system, how.whole_experts ? 1 : how.tp, how.ep);
      const auto add = [&](const LayerDivision& division) {
        Option& option = profile.kinds[kind].emplace_back(costs->option(kind, division, how));
        option.cost = costs->cost(kind, division, how, groups);
      };
      if (refusal(limits, how).empty() && !(finds && closed[kind] && how.tp > 1)) add({});
      Execution undivided = how;
      undivided.tp = 1;
      if (!finds || how.sequence_parallel || !refusal(limits, undivided).empty()) continue;
      for (const LayerDivision& division : costs->divisions(kind, how, groups)) {
        if (division) add(division);
      }
    }
  }
  return profile;
}

std::string name_of(const Execution& how) {
  std::string name = "tp" + std::to_string(how.tp);
  if (how.sequence_parallel) name += " sp";
  if (how.cp > 1) name += " cp" + std::to_string(how.cp);
  if (how.ep > 1) name += " ep" + std::to_string(how.ep);
  if (how.whole_experts) name += " whole experts";
  if (how.recompute == Recompute::selective) name += " selective recompute";
  if (how.recompute == Recompute::full) name += " full recompute";
  if (how.offload_activations) name += " activations offloaded";
  if (how.offload_weights) name += " weights offloaded";
  return name;
}

}  // namespace braid
