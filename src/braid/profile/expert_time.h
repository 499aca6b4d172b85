#pragma once

#include "braid/graph/graph.h"
#include "braid/profile/operator_time.h"
#include "braid/profile/profile.h"
#include "braid/system/chip.h"

namespace braid {

/// What one device does of an MoE layer's routed experts for one micro-batch.
struct ExpertWork {
  double experts = 1;   ///< On this device.
  double tokens = 1;    ///< That the device holds before they are dispatched.
  double visits = 1;    ///< Rows that its experts compute, of all tokens that come to them.
  double hidden = 1;    ///< Width of a token.
  double inner = 1;     ///< Width inside an expert, this device's part.
  double matrices = 3;  ///< 3 when gated, 2 when not: all but one read the token.
  double element_bytes = 2, weight_bytes = 2, gradient_bytes = 4;  ///< For one element.
  bool is_narrow = false;  ///< GEMMs in a format narrower than the activations.
  bool biased = false;     ///< MoeExperts::biased.
  bool clamped = false;    ///< MoeExperts::clamped.
  bool sorted = false;     ///< Rows lie by sender where they arrive and leave, and are sorted.
};

/// Times of both passes without communication; `peak` is that of the GEMMs. Each of the two
/// GEMMs (into the experts, out of them), of their input gradients and of their weight gradients
/// is one of all experts of the device, a roofline; weight gradients are read and written, since
/// the GEMM adds to what earlier micro-batches left. What moves or changes tokens between them
/// are kernels of memory traffic, in elements. The activation takes the router's weights along
/// (weighted_bias_swiglu_impl() of Megatron-Core), so that outputs are only summed:
///
///   forward   permute 2 visits · hidden; activate visits · matrices · inner; combine (visits +
///             tokens) · hidden
///   backward  combine (visits + tokens) · hidden; activate visits · (2 matrices - 1) · inner;
///             permute (visits + tokens) · hidden
///
/// Biases and clamps are kernels of PyTorch's, as Megatron-LM has them (TEGroupedMLP::_apply_bias()
/// in megatron/core/transformer/moe/experts.py and megatron/core/fusions/fused_bias_geglu.py): what
/// comes out of an expert takes its bias times the router's f32 weight, in f32, is put together
/// with the others' and converted back; the halves that the activation reads are clamped one by one
/// and put together. The first GEMM adds its bias itself. Bytes, w those of an element, up =
/// matrices - 1:
///
///   forward   bias visits · hidden · (24 + 2w); clamp visits · 4 up · inner · w
///   backward  bias visits · (hidden · (32 + 4w) + up · inner · w); clamp visits · 5 up · inner · w
///
/// Rows that lie by sender are sorted by expert before the first GEMM and back behind the last,
/// 2 visits · hidden each, in both passes.
///
/// Narrow GEMMs' operands are converted first, read once and written in two layouts of half the
/// width. Cost: constant.
OperatorTimes expert_times(const ExpertWork& shape, double peak, const Chip& chip);

/// Operators that the host issues for a pass over `experts` experts: each one's two GEMMs, and
/// for narrow ones the conversion of its rows, are calls of their own (Transformer Engine's
/// GroupedLinear issues a GEMM for each of its splits), and so is each one's bias, with two for
/// all; permutation, activation and combination; three for clamps; two where rows are sorted; and,
/// where tokens travel to other devices, dispatch and the way back.
double experts_issued(double experts, bool is_narrow, bool travel, bool biased = false,
                      bool clamped = false, bool sorted = false);

/// Whether a device's rows of `op` lie by sender, ExpertWork::sorted: those that are padded keep
/// the places that they were sent to (drop_and_pad of MoEAlltoAllTokenDispatcher in
/// megatron/core/transformer/moe/token_dispatcher.py), which is in order for a single sender or
/// expert.
bool is_sorted(const MoeExperts& op, const Execution& how);

}  // namespace braid
