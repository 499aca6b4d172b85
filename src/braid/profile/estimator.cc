#include "braid/profile/estimator.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "braid/profile/layer_comm.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/operator_time.h"
#include "braid/profile/recurrent_time.h"
#include "braid/profile/shard.h"
#include "braid/profile/split_limits.h"

namespace braid {
namespace {

double elements(const Tensor& tensor) {
  double count = 1;
  for (const std::int64_t dim : tensor.dims) count *= static_cast<double>(dim);
  return count;
}

/// One device's share of an operator's work.
OpWork local_work(const OpWork& work, const Shard& shard) {
  OpWork local;
  const double flops = shard.tokens * std::min(shard.input, 1.0) * shard.output /
                       (shard.input < 1 && shard.output < 1 ? shard.output : 1.0);
  local.matmul_flops = work.matmul_flops * flops;
  local.vector_flops = work.vector_flops * flops;
  local.input_bytes = work.input_bytes * shard.tokens * shard.input;
  local.output_bytes = work.output_bytes * shard.tokens * shard.output;
  local.weight_bytes = work.weight_bytes * shard.weight;
  return local;
}

struct Roofline {
  double compute_s = 0;
  double bytes = 0;
};

double time_of(const Roofline& roofline, const Chip& chip) {
  return std::max(roofline.compute_s, memory_s(roofline.bytes, chip)) +
         chip.efficiency.kernel_launch_s;
}

/// Shapes of the forward product, the input gradient and the weight gradient on one device.
struct Products {
  MatMulShape forward, input_gradient, weight_gradient;
};
Products products_of(const MatMulShape& s) {
  return {s, {s.batch, s.m, s.k, s.n}, {s.batch, s.k, s.n, s.m}};
}

struct OpTimes {
  double forward_s = 0, backward_input_s = 0, backward_weight_s = 0;
};

/// Peak for operators that stay in the precision of the activations when weight products run in a
/// narrower one: attention, and the output projection (Micikevicius et al. 2022, section 3).
double activation_peak(const Chip& chip, const Precision& precision, double peak) {
  if (bytes_per_element(precision.matmul) >= bytes_per_element(precision.activation)) return peak;
  return std::min(peak, matmul_peak(chip, precision.activation).value_or(peak));
}

/// Traffic of cross entropy in f32 when each of its steps is a kernel, bytes per logit. Forward:
/// conversion, maximum, difference, exponential, sum, quotient. Backward: copy, product,
/// conversion.
constexpr double kLossForwardBytes = 38, kLossBackwardBytes = 26;

class LayerEstimate {
 public:
  LayerEstimate(const Graph& graph, const Execution& how, const Precision& precision,
                const Chip& chip, double peak)
      : graph_(graph),
        how_(how),
        precision_(precision),
        chip_(chip),
        peak_(peak),
        wide_peak_(activation_peak(chip, precision, peak)) {}

  OpTimes times(const Operator& op, const OperatorWork& work) const {
    const Shard shard = shard_of(op.split, how_, graph_.samples);
    OpWork forward = local_work(work.forward, shard);
    const OpWork input_gradient = local_work(work.backward.input_gradient, shard);
    OpWork weight_gradient = local_work(work.backward.weight_gradient, shard);
    if (std::holds_alternative<Embedding>(op.kind)) {
      // Reads as many rows as it looks up, and adds to as many.
      forward.weight_bytes *= shard.tokens;
    } else {
      // Writes one gradient of the weights, however many samples it comes from.
      weight_gradient.output_bytes = work.backward.weight_gradient.output_bytes * shard.weight;
    }
    const auto bytes = [](const OpWork& w) {
      return w.input_bytes + w.weight_bytes + w.output_bytes;
    };
    OpTimes times;
    if (const auto* view = std::get_if<DataMovement>(&op.kind); view && view->view) return times;

    if (const auto shape = product_shape(op, shard)) {
      const Products products = products_of(*shape);
      const bool narrow = wide_peak_ < peak_ && is_narrow(op);
      const double peak = narrow ? peak_ : wide_peak_;
      const auto product_s = [&](const MatMulShape& s, double moved) {
        return time_of({matmul_compute_s(s, peak, chip_), moved}, chip_);
      };
      times.forward_s = product_s(products.forward, bytes(forward));
      if (input_gradient.matmul_flops > 0) {
        times.backward_input_s = product_s(products.input_gradient, bytes(input_gradient));
      }
      if (weight_gradient.matmul_flops > 0) {
        times.backward_weight_s = product_s(products.weight_gradient, bytes(weight_gradient));
      }
      if (narrow) {
        // Operands are converted, row by row and column by column, by kernels of their own: each is
        // read once and written twice at half the width.
        times.forward_s += conversion_s(forward.input_bytes);
        times.backward_input_s += conversion_s(forward.output_bytes);
      }
      return times;
    }
    if (const auto* attention = std::get_if<Attention>(&op.kind)) {
      if (!attention->flash)
        return plain_attention_times(*attention, forward, input_gradient, shard);
      const double rate = wide_peak_ * chip_.efficiency.attention_peak_fraction;
      times.forward_s = time_of({forward.matmul_flops / rate, bytes(forward)}, chip_);
      // The backward kernel keeps more in registers and reaches about four fifths of the rate.
      times.backward_input_s =
          time_of({input_gradient.matmul_flops / (0.8 * rate), bytes(input_gradient)}, chip_);
      return times;
    }
    if (const auto* cell = std::get_if<Recurrent>(&op.kind)) {
      return recurrent_times(*cell, op, input_gradient.matmul_flops > 0, shard);
    }
    if (const auto* loss = std::get_if<Loss>(&op.kind)) {
      const double logits = static_cast<double>(loss->rows) * static_cast<double>(loss->width) *
                            shard.tokens / how_.tp;
      times.forward_s =
          memory_s(kLossForwardBytes * logits, chip_) + chip_.efficiency.kernel_launch_s;
      times.backward_input_s =
          memory_s(kLossBackwardBytes * logits, chip_) + chip_.efficiency.kernel_launch_s;
      return times;
    }
    const auto pointwise_s = [&](const OpWork& w) {
      if (bytes(w) + w.vector_flops + w.matmul_flops <= 0) return 0.0;
      const double compute_s = vector_s(w.vector_flops, chip_) +
                               w.matmul_flops / (peak_ * chip_.efficiency.matmul_peak_fraction);
      if (!work.is_fused) return time_of({compute_s, bytes(w)}, chip_);
      // Fused into its producer: reads what that wrote no more, and needs no launch of its own.
      const double moved = w.weight_bytes + std::max(w.output_bytes, w.input_bytes);
      return std::max(compute_s,
                      moved / (chip_.memory.bytes_per_s * chip_.efficiency.memory_peak_fraction));
    };
    times.forward_s = pointwise_s(forward);
    times.backward_input_s = pointwise_s(input_gradient);
    times.backward_weight_s = pointwise_s(weight_gradient);
    return times;
  }

 private:
  /// Whether a product runs in the job's narrow format: those of the blocks with weights.
  static bool is_narrow(const Operator& op) {
    const auto* product = std::get_if<MatMul>(&op.kind);
    return (product != nullptr && product->weight && op.split != Split::vocab) ||
           std::holds_alternative<MoeExperts>(op.kind);
  }

  double conversion_s(double bytes) const {
    return bytes <= 0 ? 0 : memory_s(2 * bytes, chip_) + chip_.efficiency.kernel_launch_s;
  }

  /// Scores and probabilities pass through memory between batched products, which compute what the
  /// mask leaves out too. Each kernel is a roofline of its own: a product writes or reads the
  /// matrix of scores once while it computes; all other traffic is that of pointwise kernels.
  OpTimes plain_attention_times(const Attention& op, const OpWork& forward,
                                const OpWork& input_gradient, const Shard& shard) const {
    constexpr double kForwardKernels = 4, kBackwardKernels = 6;
    constexpr double kForwardProducts = 2, kBackwardProducts = 4;
    const double launch_s = chip_.efficiency.kernel_launch_s;
    const double batch = static_cast<double>(op.samples) * static_cast<double>(op.heads) *
                         shard.output * how_.micro_batch / static_cast<double>(graph_.samples);
    const double rows = static_cast<double>(op.q_len) / how_.cp;
    const auto keys = static_cast<double>(op.kv_len);
    const double matrix_bytes = batch * rows * keys * bytes_per_element(precision_.activation);
    const auto product_s = [&](double n, double k) {
      return std::max(matmul_compute_s({batch, rows, n, k}, wide_peak_, chip_),
                      memory_s(matrix_bytes, chip_));
    };
    const double products_s = product_s(keys, static_cast<double>(op.qk_dim)) +
                              product_s(static_cast<double>(op.v_dim), keys);
    const auto others_s = [&](const OpWork& w, double products) {
      return memory_s(w.input_bytes + w.output_bytes - products * matrix_bytes, chip_);
    };
    OpTimes times;
    times.forward_s = products_s + others_s(forward, kForwardProducts) + kForwardKernels * launch_s;
    times.backward_input_s =
        2 * products_s + others_s(input_gradient, kBackwardProducts) + kBackwardKernels * launch_s;
    return times;
  }

  /// Local matrix product of an operator that is one.
  std::optional<MatMulShape> product_shape(const Operator& op, const Shard& shard) const {
    if (const auto* o = std::get_if<MatMul>(&op.kind)) {
      MatMulShape shape{static_cast<double>(o->batch), static_cast<double>(o->m),
                        static_cast<double>(o->n) * shard.output,
                        static_cast<double>(o->k) * shard.input};
      (o->weight ? shape.m : shape.batch) *= shard.tokens;
      return shape;
    }
    if (const auto* o = std::get_if<Convolution>(&op.kind)) {
      return MatMulShape{static_cast<double>(o->groups),
                         static_cast<double>(o->samples * o->out_positions) * shard.tokens,
                         static_cast<double>(o->out_channels) / static_cast<double>(o->groups),
                         static_cast<double>(o->in_channels) / static_cast<double>(o->groups) *
                             static_cast<double>(o->kernel_positions)};
    }
    if (const auto* o = std::get_if<MoeExperts>(&op.kind)) {
      // All matrices of a device's experts, each with its share of the tokens.
      const double experts = static_cast<double>(o->experts) / how_.ep;
      const double rows = static_cast<double>(o->tokens) * static_cast<double>(o->top_k) /
                          static_cast<double>(o->experts) * shard.tokens * how_.ep;
      return MatMulShape{experts * static_cast<double>(o->matrices), rows,
                         static_cast<double>(o->inner) / how_.tp, static_cast<double>(o->hidden)};
    }
    return std::nullopt;
  }

  OpTimes recurrent_times(const Recurrent& cell, const Operator& op, bool input_gradient,
                          const Shard& shard) const {
    RecurrentShape shape;
    shape.steps = static_cast<double>(cell.steps);
    shape.rows = static_cast<double>(cell.rows) * shard.tokens;
    shape.gates = static_cast<double>(cell.n);
    // A step writes its state, so the first output holds the states of all steps.
    const Tensor& states = graph_.tensors[static_cast<std::size_t>(op.outputs.front())];
    const double k = static_cast<double>(cell.k);
    shape.state = std::min(k, elements(states) / (shape.steps * static_cast<double>(cell.rows)));
    shape.input = k - shape.state;
    shape.element_bytes = bytes_per_element(precision_.weight);
    const RecurrentTime time = recurrent_time(shape, peak_, chip_);
    return {time.forward_s, input_gradient ? time.backward_input_s : 0, time.backward_weight_s};
  }

  const Graph& graph_;
  const Execution& how_;
  const Precision& precision_;
  const Chip& chip_;
  double peak_;
  double wide_peak_;  ///< Of what keeps the activations' precision.
};

/// The pass takes at least as long as the host takes to issue it.
void wait_for_host(double host_s, PassTime& pass) {
  pass.compute_s += std::max(0.0, host_s - pass.total_s());
}

/// Share of a tensor that one device stores, by the region that wrote it.
double stored_share(const Graph& graph, const Tensor& tensor, const Execution& how) {
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  if (tensor.producer < 0) return rows;
  const Split split = graph.operators[static_cast<std::size_t>(tensor.producer)].split;
  if (!in_replicated_region(split)) return rows / how.tp;
  return how.sequence_parallel ? rows / how.tp : rows;
}

}  // namespace

LayerCost estimate_layer(const Graph& graph, LayerId layer, const Execution& how,
                         const Precision& precision, const LayerGroups& groups,
                         const System& system) {
  return estimate_layer(graph, layer, layer_work(graph, layer), how, precision, groups, system);
}

LayerCost estimate_layer(const Graph& graph, LayerId layer_id, std::span<const OperatorWork> works,
                         const Execution& how, const Precision& precision,
                         const LayerGroups& groups, const System& system) {
  const Chip& chip = system.groups.front().chip;
  const double peak = matmul_peak_in(chip, precision);
  const Layer& layer = graph.layers[static_cast<std::size_t>(layer_id)];
  const LayerEstimate estimate(graph, how, precision, chip, peak);
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  LayerCost cost;
  double attention_forward_s = 0;
  double attention_backward_s = 0;
  double selective_s = 0;
  double whole_stash = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const OperatorWork& work = works[static_cast<std::size_t>(id - layer.first)];
    const OpTimes times = estimate.times(op, work);
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
      if (tensor >= 0) {
        share = stored_share(graph, graph.tensors[static_cast<std::size_t>(tensor)], how);
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
          elements(tensor) * bytes_per_element(tensor.dtype) * rows / (is_split ? how.tp : 1);
      cost.output_bytes = elements(tensor) * bytes_per_element(precision.activation) *
                          stored_share(graph, tensor, how);
    }
    if (const auto* loss = std::get_if<Loss>(&op.kind)) {
      // Logits and their gradient in f32.
      working =
          8 * static_cast<double>(loss->rows) * static_cast<double>(loss->width) * rows / how.tp;
    }
    cost.working_bytes = std::max(cost.working_bytes, 2 * working);
    for (const TensorId parameter : work.parameters) {
      const double share = shard_of(op.split, how, 1).weight;
      (op.split == Split::expert ? cost.expert_parameters : cost.dense_parameters) +=
          elements(graph.tensors[static_cast<std::size_t>(parameter)]) * share;
    }
  }
  // Kernels wait for the host where it takes longer to issue them. The backward pass of an operator
  // is two on average: gradients of what it read and of its weights.
  double issued = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const auto* view = std::get_if<DataMovement>(&op.kind);
    if (view == nullptr || !view->view) ++issued;
    if (how.tp > 1 && op.split == Split::row) ++issued;  // The collective behind it.
  }
  const double host_s = issued * chip.efficiency.host_operator_s;
  const LayerComm comm = layer_comm(graph, layer, how, precision, groups, system);
  cost.forward.tp_comm_s = comm.tp_forward_s;
  cost.backward_input.tp_comm_s = comm.tp_backward_s;
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
  if (how.recompute == Recompute::full) cost.recompute = cost.forward;
  wait_for_host(host_s, cost.forward);
  {
    PassTime backward = cost.backward_input;
    backward += cost.backward_weight;
    const double wait_s = std::max(0.0, 2 * host_s - backward.total_s());
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
                         const Precision& precision, const System& system) {
  const SplitLimits limits = split_limits(graph);
  Profile profile = layer_profile(graph, system.groups.front().chip.name, profile_edges(graph));
  std::vector<bool> filled(profile.kinds.size(), false);
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const auto kind = static_cast<std::size_t>(graph.layers[l].kind);
    if (filled[kind]) continue;
    filled[kind] = true;
    for (const Execution& how : executions) {
      if (!refusal(limits, how).empty()) continue;
      LayerGroups groups;
      groups.tp = span_of(system, 1, how.tp);
      groups.cp = span_of(system, how.tp, how.cp);
      groups.ep = span_of(system, how.tp, how.ep);
      Option option;
      option.name = name_of(how);
      option.how = how;
      option.cost = estimate_layer(graph, static_cast<LayerId>(l), how, precision, groups, system);
      profile.kinds[kind].push_back(std::move(option));
    }
  }
  return profile;
}

std::string name_of(const Execution& how) {
  std::string name = "tp" + std::to_string(how.tp);
  if (how.sequence_parallel) name += " sp";
  if (how.cp > 1) name += " cp" + std::to_string(how.cp);
  if (how.ep > 1) name += " ep" + std::to_string(how.ep);
  if (how.recompute == Recompute::selective) name += " selective recompute";
  if (how.recompute == Recompute::full) name += " full recompute";
  if (how.offload_activations) name += " activations offloaded";
  if (how.offload_weights) name += " weights offloaded";
  return name;
}

}  // namespace braid
