#include "braid/graph/pass_work.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "braid/graph/attention_scores.h"
#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

// Arithmetic per element, counting each addition, product, division, comparison and exponential
// once.
constexpr double softmax_flops = 5;           // maximum, subtract, exponential, sum, divide
constexpr double softmax_gradient_flops = 4;  // product, sum, subtract, product
constexpr double rescore_flops = 2;           // subtract, exponential: probabilities from scores
constexpr double layer_norm_flops = 7;        // sum; subtract, square, sum; scale; gain; shift
constexpr double rms_norm_flops = 4;          // square, sum; scale; gain
constexpr double layer_norm_gradient_flops = 10;
constexpr double rms_norm_gradient_flops = 7;
constexpr double recurrent_gate_flops = 6;  // sigmoid or tanh, and its part of the cell update
constexpr double adam_flops = 16;           // two moments, bias correction, decay, update
constexpr double f32_bytes = 4;

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// Samples × heads: rows of the score matrices.
double score_matrices(const Attention& kind) {
  return as_double(kind.samples) * as_double(kind.heads);
}
double computed_scores(const Attention& kind) {
  return score_matrices(kind) * attended_scores(kind);
}
/// Unfused kernels store the whole matrix, masked or not.
double stored_scores(const Attention& kind) {
  return score_matrices(kind) * as_double(kind.q_len) * as_double(kind.kv_len);
}
double row_statistics_bytes(const Attention& kind) {
  return f32_bytes * score_matrices(kind) * as_double(kind.q_len);
}

double visits(const MoeExperts& kind) { return as_double(kind.tokens) * as_double(kind.top_k); }
/// Elements that the experts write and read between their GEMMs: the tokens as dispatched, the
/// inner activations before and after the nonlinearity, and the outputs before they are combined.
double expert_intermediates(const MoeExperts& kind) {
  return visits(kind) *
         (2 * as_double(kind.hidden) + as_double(kind.matrices) * as_double(kind.inner));
}
/// Of these, those that the backward pass reads: trainers weight the activation by the router's
/// scores, so that outputs are only summed.
double kept_intermediates(const MoeExperts& kind) {
  return visits(kind) * (as_double(kind.hidden) + as_double(kind.matrices) * as_double(kind.inner));
}
double expert_vector_flops(const MoeExperts& kind) {
  const double per_inner = kSiluFlops + std::max(0.0, as_double(kind.matrices) - 2);
  return visits(kind) * (per_inner * as_double(kind.inner) + 2 * as_double(kind.hidden));
}
/// Share of the experts' weights that this many visits can reach.
double reached_experts(const MoeExperts& kind) {
  return std::min(1.0, visits(kind) / as_double(kind.experts));
}

template <typename Kind>
double gemms(const Kind& kind) {
  if constexpr (std::is_same_v<Kind, MatMul>) {
    return 2 * as_double(kind.batch) * as_double(kind.m) * as_double(kind.n) * as_double(kind.k);
  } else if constexpr (std::is_same_v<Kind, Attention>) {
    return 2 * computed_scores(kind) * (as_double(kind.qk_dim) + as_double(kind.v_dim));
  } else if constexpr (std::is_same_v<Kind, Convolution>) {
    const double positions = as_double(kind.transposed ? kind.in_positions : kind.out_positions);
    return 2 * as_double(kind.samples) * positions * as_double(kind.kernel_positions) *
           as_double(kind.in_channels) * as_double(kind.out_channels) / as_double(kind.groups);
  } else if constexpr (std::is_same_v<Kind, Recurrent>) {
    return 2 * as_double(kind.steps) * as_double(kind.rows) * as_double(kind.n) * as_double(kind.k);
  } else if constexpr (std::is_same_v<Kind, MoeRouter>) {
    return 2 * as_double(kind.tokens) * as_double(kind.hidden) * as_double(kind.experts);
  } else if constexpr (std::is_same_v<Kind, MoeExperts>) {
    return 2 * visits(kind) * as_double(kind.matrices) * as_double(kind.hidden) *
           as_double(kind.inner);
  } else {
    return 0;
  }
}

/// Each tensor read and written once.
OpWork traffic(const PassTensors& tensors) {
  OpWork work;
  work.input_bytes = tensors.activation_bytes;
  work.weight_bytes = tensors.parameter_bytes;
  work.output_bytes = tensors.written_bytes;
  return work;
}

template <typename Kind>
OpWork forward(const Kind& kind, const PassTensors& tensors) {
  OpWork work = traffic(tensors);
  work.matmul_flops = gemms(kind);
  if constexpr (std::is_same_v<Kind, MatMul>) {
    if (kind.bias) {
      work.vector_flops = as_double(kind.batch) * as_double(kind.m) * as_double(kind.n);
    }
  } else if constexpr (std::is_same_v<Kind, Attention>) {
    work.vector_flops = softmax_flops * computed_scores(kind);
    if (kind.flash) {
      work.output_bytes += row_statistics_bytes(kind);
    } else {
      const double scores = stored_scores(kind);
      work.input_bytes += 2 * scores * tensors.element_bytes;
      work.output_bytes += 2 * scores * tensors.element_bytes;
      if (kind.dropout) {
        work.input_bytes += scores * tensors.element_bytes;
        work.output_bytes += scores * (tensors.element_bytes + 1);
      }
    }
    if (kind.dropout) work.vector_flops += 2 * computed_scores(kind);
  } else if constexpr (std::is_same_v<Kind, Convolution>) {
    if (kind.bias) {
      work.vector_flops =
          as_double(kind.samples) * as_double(kind.out_channels) * as_double(kind.out_positions);
    }
  } else if constexpr (std::is_same_v<Kind, Recurrent>) {
    work.vector_flops =
        recurrent_gate_flops * as_double(kind.steps) * as_double(kind.rows) * as_double(kind.n);
  } else if constexpr (std::is_same_v<Kind, Normalization>) {
    work.vector_flops = as_double(kind.elements) * (kind.rms ? rms_norm_flops : layer_norm_flops);
  } else if constexpr (std::is_same_v<Kind, Softmax>) {
    work.vector_flops = as_double(kind.elements) * softmax_flops;
  } else if constexpr (std::is_same_v<Kind, Elementwise>) {
    work.vector_flops = as_double(kind.elements) * kind.flops_per_element;
  } else if constexpr (std::is_same_v<Kind, Embedding>) {
    const double lookups = as_double(kind.lookups);
    if (tensors.has_parameters) {
      work.weight_bytes = lookups * as_double(kind.width) * tensors.element_bytes;
    }
    work.vector_flops = (lookups - lookups / as_double(kind.pooling)) * as_double(kind.width);
  } else if constexpr (std::is_same_v<Kind, MoeRouter>) {
    work.vector_flops =
        as_double(kind.tokens) * as_double(kind.experts) * (softmax_flops + as_double(kind.top_k));
  } else if constexpr (std::is_same_v<Kind, MoeExperts>) {
    const double intermediates = expert_intermediates(kind) * tensors.element_bytes;
    work.input_bytes += intermediates;
    work.output_bytes += intermediates;
    work.weight_bytes *= reached_experts(kind);
    work.vector_flops = expert_vector_flops(kind);
  } else if constexpr (std::is_same_v<Kind, Reduction>) {
    work.vector_flops = as_double(kind.elements);
  } else if constexpr (std::is_same_v<Kind, DataMovement>) {
    if (kind.view) work = {};
  } else if constexpr (std::is_same_v<Kind, Loss>) {
    work.vector_flops = softmax_flops * as_double(kind.rows) * as_double(kind.width);
    work.output_bytes += private_kept_bytes(kind, tensors.element_bytes);
  } else {
    static_assert(std::is_same_v<Kind, OptimizerStep>);
    const double parameters = as_double(kind.parameters);
    work.vector_flops = adam_flops * parameters;
    work.input_bytes += kAdamStateBytes * parameters;
    work.output_bytes += kAdamStateBytes * parameters;
  }
  return work;
}

template <typename Kind>
OpWork input_gradient(const Kind& kind, const PassTensors& tensors) {
  OpWork work = traffic(tensors);
  work.input_bytes += private_kept_bytes(kind, tensors.element_bytes);
  work.matmul_flops = gemms(kind);
  if constexpr (std::is_same_v<Kind, MatMul>) {
    if (!kind.weight) work.matmul_flops *= tensors.wanted_gradients;
  } else if constexpr (std::is_same_v<Kind, Attention>) {
    work.matmul_flops *= 2;
    work.vector_flops = softmax_gradient_flops * computed_scores(kind);
    if (kind.flash) {
      work.matmul_flops += 2 * computed_scores(kind) * as_double(kind.qk_dim);
      work.vector_flops += rescore_flops * computed_scores(kind);
    } else {
      // The gradients of the probabilities and of the scores pass through memory.
      const double scores = stored_scores(kind) * tensors.element_bytes;
      work.input_bytes += (kind.dropout ? 4 : 3) * scores;
      work.output_bytes += (kind.dropout ? 3 : 2) * scores;
    }
    if (kind.dropout) work.vector_flops += 2 * computed_scores(kind);
  } else if constexpr (std::is_same_v<Kind, Recurrent>) {
    work.vector_flops =
        recurrent_gate_flops * as_double(kind.steps) * as_double(kind.rows) * as_double(kind.n);
  } else if constexpr (std::is_same_v<Kind, Normalization>) {
    work.vector_flops =
        as_double(kind.elements) * (kind.rms ? rms_norm_gradient_flops : layer_norm_gradient_flops);
  } else if constexpr (std::is_same_v<Kind, Softmax>) {
    work.vector_flops = as_double(kind.elements) * softmax_gradient_flops;
  } else if constexpr (std::is_same_v<Kind, Elementwise>) {
    work.vector_flops =
        as_double(kind.elements) * kind.flops_per_element * tensors.wanted_gradients;
  } else if constexpr (std::is_same_v<Kind, MoeRouter>) {
    work.vector_flops = softmax_gradient_flops * as_double(kind.tokens) * as_double(kind.experts);
  } else if constexpr (std::is_same_v<Kind, MoeExperts>) {
    // Gradients of the intermediates are written, and read by the GEMM before them.
    const double intermediates = expert_intermediates(kind) * tensors.element_bytes;
    work.input_bytes += intermediates;
    work.output_bytes += intermediates;
    work.weight_bytes *= reached_experts(kind);
    work.vector_flops = expert_vector_flops(kind);
  } else if constexpr (std::is_same_v<Kind, Reduction>) {
    work.vector_flops = as_double(kind.elements);
  } else if constexpr (std::is_same_v<Kind, DataMovement>) {
    if (kind.view) work = {};
  } else if constexpr (std::is_same_v<Kind, Loss>) {
    work.vector_flops = 2 * as_double(kind.rows) * as_double(kind.width);
  }
  return work;
}

template <typename Kind>
OpWork weight_gradient(const Kind& kind, const PassTensors& tensors) {
  OpWork work = traffic(tensors);
  work.matmul_flops = gemms(kind);
  if constexpr (std::is_same_v<Kind, MatMul> || std::is_same_v<Kind, Convolution>) {
    work.vector_flops = forward(kind, tensors).vector_flops;
    if constexpr (std::is_same_v<Kind, MatMul>) {
      if (!kind.weight) work.matmul_flops = 0;
    }
  } else if constexpr (std::is_same_v<Kind, Attention>) {
    work.matmul_flops = 0;
  } else if constexpr (std::is_same_v<Kind, Recurrent>) {
    const double gates = as_double(kind.steps) * as_double(kind.rows) * as_double(kind.n);
    work.input_bytes += gates * tensors.element_bytes;
  } else if constexpr (std::is_same_v<Kind, Normalization>) {
    work.vector_flops = as_double(kind.elements) * (kind.rms ? 2 : 3);
  } else if constexpr (std::is_same_v<Kind, Elementwise>) {
    work.vector_flops = as_double(kind.elements) * (1 + kind.flops_per_element);
  } else if constexpr (std::is_same_v<Kind, Embedding>) {
    // Rows are added into the table's gradient: only those that were looked up are touched.
    const double touched = as_double(kind.lookups) * as_double(kind.width);
    work.vector_flops = touched;
    work.output_bytes = touched * tensors.element_bytes;
  } else if constexpr (std::is_same_v<Kind, MoeExperts>) {
    // Reads each GEMM's operand and output gradient once more.
    work.input_bytes += visits(kind) * tensors.element_bytes * as_double(kind.matrices) *
                        (as_double(kind.hidden) + as_double(kind.inner));
    work.output_bytes *= reached_experts(kind);
  } else if constexpr (std::is_same_v<Kind, DataMovement>) {
    if (kind.view) work = {};
  }
  return work;
}

}  // namespace

OpWork forward_pass_work(const OperatorKind& kind, const PassTensors& tensors) {
  return std::visit([&](const auto& plain) { return forward(plain, tensors); }, kind);
}

OpWork input_gradient_pass_work(const OperatorKind& kind, const PassTensors& tensors) {
  return std::visit([&](const auto& plain) { return input_gradient(plain, tensors); }, kind);
}

OpWork weight_gradient_pass_work(const OperatorKind& kind, const PassTensors& tensors) {
  return std::visit([&](const auto& plain) { return weight_gradient(plain, tensors); }, kind);
}

double gemm_flops(const OperatorKind& kind) {
  return std::visit([](const auto& plain) { return gemms(plain); }, kind);
}

double private_kept_bytes(const OperatorKind& kind, double element_bytes) {
  if (const auto* attention = std::get_if<Attention>(&kind)) {
    if (attention->flash) return row_statistics_bytes(*attention);
    const double scores = stored_scores(*attention);
    return scores * (attention->dropout ? 2 * element_bytes + 1 : element_bytes);
  }
  if (const auto* recurrent = std::get_if<Recurrent>(&kind)) {
    return as_double(recurrent->steps) * as_double(recurrent->rows) * as_double(recurrent->n) *
           element_bytes;
  }
  if (const auto* pointwise = std::get_if<Elementwise>(&kind)) {
    return pointwise->keeps == Elementwise::Keeps::mask ? as_double(pointwise->elements) : 0;
  }
  if (const auto* router = std::get_if<MoeRouter>(&kind)) {
    return f32_bytes * as_double(router->tokens) * as_double(router->experts);
  }
  if (const auto* experts = std::get_if<MoeExperts>(&kind)) {
    return kept_intermediates(*experts) * element_bytes;
  }
  if (const auto* loss = std::get_if<Loss>(&kind)) {
    // Cross entropy works in f32 (Korthikanti et al. 2022, §4.3).
    return f32_bytes * as_double(loss->rows) * as_double(loss->width);
  }
  return 0;
}

}  // namespace braid
