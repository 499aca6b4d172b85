#include "braid/profile/operator_estimate.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "braid/graph/tensor_size.h"
#include "braid/profile/recurrent_time.h"

namespace braid {
namespace {

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

/// Shapes of the forward GEMM, the input gradient and the weight gradient on one device.
struct Gemms {
  MatMulShape forward, input_gradient, weight_gradient;
};
Gemms gemms_of(const MatMulShape& s) {
  return {s, {s.batch, s.m, s.k, s.n}, {s.batch, s.k, s.n, s.m}};
}

/// Peak for operators that stay in the precision of the activations when weight GEMMs run in a
/// narrower one: attention, and the output projection (Micikevicius et al. 2022, section 3).
double activation_peak(const Chip& chip, const Precision& precision, double peak) {
  if (bytes_per_element(precision.matmul) >= bytes_per_element(precision.activation)) return peak;
  return std::min(peak, matmul_peak(chip, precision.activation).value_or(peak));
}

/// Traffic of cross entropy in f32 when each of its steps is a kernel, bytes per logit. Forward:
/// conversion, maximum, difference, exponential, sum, quotient. Backward: copy, product,
/// conversion.
constexpr double kLossForwardBytes = 38, kLossBackwardBytes = 26;

/// Whether a GEMM runs in the job's narrow format: those of the blocks with weights.
bool is_narrow(const Operator& op) {
  const auto* gemm = std::get_if<MatMul>(&op.kind);
  return gemm != nullptr && gemm->weight && op.split != Split::vocab;
}

/// A chunked scan's GEMMs are Triton kernels over small blocks (Dao and Gu's mamba_ssm), which
/// take this many times as long as a library's batched GEMMs: fitted to 41 runs of Nemotron 3 on
/// five chips (docs/accuracy.md).
constexpr double kScanSlowdown = 8;
/// Of the rate of fused attention's forward kernel: the backward one keeps more in registers.
constexpr double kAttentionBackwardShare = 0.8;

/// Whether an operator is a GEMM of a state-space layer's scan.
bool is_scan(const Operator& op) {
  const auto* gemm = std::get_if<MatMul>(&op.kind);
  if (gemm == nullptr || gemm->weight) return false;
  for (const std::string_view name : {"scan_scores", "scan_states", "scan_outputs"}) {
    if (op.name.ends_with(name)) return true;
  }
  return false;
}

}  // namespace

OperatorEstimate::OperatorEstimate(const Graph& graph, const Execution& how,
                                   const Precision& precision, const Chip& chip, double peak)
    : graph_(graph),
      how_(how),
      precision_(precision),
      chip_(chip),
      peak_(peak),
      wide_peak_(activation_peak(chip, precision, peak)),
      is_narrow_(wide_peak_ < peak_) {
  const Efficiency& reached = chip.efficiency;
  if (is_narrow_) {
    // matmul_compute_s() takes a share of it that large GEMMs in wider formats reach.
    peak_ *= reached.narrow_share() / reached.matmul_peak_fraction;
  }
}

OperatorTimes OperatorEstimate::times(const Operator& op, const OperatorWork& work) const {
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
  OperatorTimes times;
  if (const auto* view = std::get_if<DataMovement>(&op.kind); view && view->view) return times;

  if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
    return expert_times(expert_shape(*experts, shard), peak_, chip_);
  }
  if (const auto shape = gemm_shape(op, shard)) {
    const Gemms gemms = gemms_of(*shape);
    const bool narrow = is_narrow_ && is_narrow(op);
    const double peak = narrow ? peak_ : wide_peak_;
    const double slowdown = is_scan(op) ? kScanSlowdown : 1;
    const auto gemm_s = [&](const MatMulShape& s, double moved) {
      return slowdown * time_of({matmul_compute_s(s, peak, chip_), moved}, chip_);
    };
    times.forward_s = gemm_s(gemms.forward, bytes(forward));
    if (input_gradient.matmul_flops > 0) {
      times.backward_input_s = gemm_s(gemms.input_gradient, bytes(input_gradient));
    }
    if (weight_gradient.matmul_flops > 0) {
      times.backward_weight_s = gemm_s(gemms.weight_gradient, bytes(weight_gradient));
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
    if (!attention->flash) return plain_attention_times(*attention, forward, input_gradient, shard);
    const double rate = wide_peak_ * chip_.efficiency.attention_peak_fraction;
    times.forward_s = time_of({forward.matmul_flops / rate, bytes(forward)}, chip_);
    const double backward_rate = kAttentionBackwardShare * rate;
    times.backward_input_s =
        time_of({input_gradient.matmul_flops / backward_rate, bytes(input_gradient)}, chip_);
    return times;
  }
  if (const auto* cell = std::get_if<Recurrent>(&op.kind)) {
    return recurrent_times(*cell, op, input_gradient.matmul_flops > 0, shard);
  }
  if (const auto* loss = std::get_if<Loss>(&op.kind)) {
    const double logits = static_cast<double>(loss->rows) * static_cast<double>(loss->width) *
                          shard.tokens / (op.split == Split::vocab ? how_.tp : 1);
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

double OperatorEstimate::conversion_s(double bytes) const {
  return bytes <= 0 ? 0 : memory_s(2 * bytes, chip_) + chip_.efficiency.kernel_launch_s;
}

/// Scores and probabilities pass through memory between batched GEMMs, which compute what the
/// mask leaves out too. Each kernel is a roofline of its own: a GEMM writes or reads the
/// matrix of scores once while it computes; all other traffic is that of pointwise kernels.
OperatorTimes OperatorEstimate::plain_attention_times(const Attention& op, const OpWork& forward,
                                                      const OpWork& input_gradient,
                                                      const Shard& shard) const {
  constexpr double kBackwardKernels = 6;
  constexpr double kForwardGemms = 2, kBackwardGemms = 4;
  const double launch_s = chip_.efficiency.kernel_launch_s;
  const double batch = static_cast<double>(op.samples) * static_cast<double>(op.heads) *
                       shard.output * how_.micro_batch / static_cast<double>(graph_.samples);
  const double rows = static_cast<double>(op.q_len) / how_.cp;
  const auto keys = static_cast<double>(op.kv_len);
  const double matrix_bytes = batch * rows * keys * bytes_per_element(precision_.activation);
  const auto gemm_s = [&](double n, double k) {
    return std::max(matmul_compute_s({batch, rows, n, k}, wide_peak_, chip_),
                    memory_s(matrix_bytes, chip_));
  };
  const double gemms_s =
      gemm_s(keys, static_cast<double>(op.qk_dim)) + gemm_s(static_cast<double>(op.v_dim), keys);
  const auto others_s = [&](const OpWork& w, double gemms) {
    return memory_s(w.input_bytes + w.output_bytes - gemms * matrix_bytes, chip_);
  };
  OperatorTimes times;
  times.forward_s = gemms_s + others_s(forward, kForwardGemms) + kPlainAttentionKernels * launch_s;
  times.backward_input_s =
      2 * gemms_s + others_s(input_gradient, kBackwardGemms) + kBackwardKernels * launch_s;
  return times;
}

/// Local GEMM of an operator that is one.
std::optional<MatMulShape> OperatorEstimate::gemm_shape(const Operator& op,
                                                        const Shard& shard) const {
  if (const auto* o = std::get_if<MatMul>(&op.kind)) {
    // Sharded by heads, of which each is a GEMM.
    const bool heads = !o->weight && op.split == Split::heads;
    MatMulShape shape{static_cast<double>(o->batch) * (heads ? shard.output : 1),
                      static_cast<double>(o->m),
                      static_cast<double>(o->n) * (heads ? 1 : shard.output),
                      static_cast<double>(o->k) * (heads ? 1 : shard.input)};
    (o->weight ? shape.m : shape.batch) *= shard.tokens;
    return shape;
  }
  if (const auto* o = std::get_if<Convolution>(&op.kind)) {
    // Sharded by channels, or by whole groups of them.
    const bool groups = shard.input < 1 && shard.output < 1;
    return MatMulShape{static_cast<double>(o->groups) * (groups ? shard.output : 1),
                       static_cast<double>(o->samples * o->out_positions) * shard.tokens,
                       static_cast<double>(o->out_channels) / static_cast<double>(o->groups) *
                           (groups ? 1 : shard.output),
                       static_cast<double>(o->in_channels) / static_cast<double>(o->groups) *
                           static_cast<double>(o->kernel_positions) * (groups ? 1 : shard.input)};
  }
  return std::nullopt;
}

/// A device's experts get as many tokens as it holds itself, each top_k times: balanced routing.
ExpertWork OperatorEstimate::expert_shape(const MoeExperts& op, const Shard& shard) const {
  ExpertWork shape;
  shape.experts = static_cast<double>(op.experts) / how_.ep;
  // Tensor-parallel ranks each send their part of the sequence to whole experts, or all compute
  // their part of every expert's network.
  const double senders = how_.whole_experts ? how_.tp : 1;
  const double slices = how_.whole_experts ? 1 : how_.tp;
  shape.tokens = static_cast<double>(op.tokens) * shard.tokens / senders;
  shape.visits = shape.tokens * static_cast<double>(op.top_k);
  shape.hidden = static_cast<double>(op.hidden);
  shape.inner = static_cast<double>(op.inner) / slices;
  shape.matrices = static_cast<double>(op.matrices);
  shape.biased = op.biased;
  shape.clamped = op.clamped;
  shape.sorted = is_sorted(op, how_);
  shape.element_bytes = bytes_per_element(precision_.activation);
  shape.weight_bytes = bytes_per_element(precision_.weight);
  shape.gradient_bytes = bytes_per_element(precision_.gradient);
  shape.is_narrow = is_narrow_;
  return shape;
}

OperatorTimes OperatorEstimate::recurrent_times(const Recurrent& cell, const Operator& op,
                                                bool input_gradient, const Shard& shard) const {
  RecurrentShape shape;
  shape.steps = static_cast<double>(cell.steps);
  shape.rows = static_cast<double>(cell.rows) * shard.tokens;
  shape.gates = static_cast<double>(cell.n) * shard.output;
  // A step writes its state, so the first output holds the states of all steps.
  const Tensor& states = graph_.tensors[static_cast<std::size_t>(op.outputs.front())];
  const double k = static_cast<double>(cell.k);
  shape.state = std::min(k, elements_of(states) / (shape.steps * static_cast<double>(cell.rows)));
  shape.input = k - shape.state;
  shape.element_bytes = bytes_per_element(precision_.weight);
  const RecurrentTime time = recurrent_time(shape, peak_, chip_);
  return {time.forward_s, input_gradient ? time.backward_input_s : 0, time.backward_weight_s};
}

}  // namespace braid
