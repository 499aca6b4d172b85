#pragma once

#include "braid/profile/estimator.h"

namespace braid {

/// What the operators that read a tensor in one layer want of it, by how tensor parallelism divides
/// them. Every field is monotone: one more reader never makes communication less.
struct TensorNeeds {
  bool whole = false;    ///< By one that multiplies all of it by a share of its weights: its
                         ///< gradient is a partial sum on each rank.
  bool sharded = false;  ///< By one that works on a rank's share of the features.
  bool as_is = false;    ///< By one that every rank does again (or for its part of the sequence).

  TensorNeeds& operator|=(const TensorNeeds& other);
};

/// Whether an operator leaves its output sharded by features over the tensor-parallel ranks.
bool leaves_sharded(const Operator& op);

/// What `reader` wants of the activation `tensor` that was left sharded, or not. Experts that
/// tensor parallelism divides want their tokens whole; under sequence parallelism, which whole
/// experts need, a rank dispatches its part of them and operator_comm() has the rest.
TensorNeeds needs_of(const Operator& reader, TensorId tensor, bool sharded, bool sequence_parallel);

/// Seconds, or bytes where the function says so.
struct TensorComm {
  double forward = 0, backward = 0;
  double gathered_again = 0;  ///< In the backward pass, for the weights' gradients.
};

/// Communication of one tensor of `bytes` (whole), in both passes, nothing hidden. With s for
/// sequence parallelism, `left` for how its writer leaves it:
///
///   left      wanted            forward          backward
///   whole     whole             - (s: gather)    all-reduce (s: gather, reduce-scatter)
///   whole     sharded, as is    -                gather if sharded and not s
///   sharded   whole             gather           scatter
///   sharded   as is             gather           -
///   sharded   sharded           -                -
///
/// A gather is an all-gather, a scatter a reduce-scatter, or an all-reduce where that takes less.
/// Each is done once however many readers want it, as their gradients are summed first. Under
/// sequence parallelism operators that are sharded take their share of what is whole from their own
/// part of the sequence, as manual shardings have it.
TensorComm tensor_comm(double bytes, bool sharded, const TensorNeeds& needs, bool sequence_parallel,
                       const GroupSpan& ranks, const System& system);

/// The bytes that each rank sends for it, in place of times: sent_bytes() of the same collectives.
TensorComm tensor_sent(double bytes, bool sharded, const TensorNeeds& needs, bool sequence_parallel,
                       int ranks);

/// Exposed communication of one operator besides that of the tensors that it reads: the sum of
/// partial outputs, of a loss over sharded logits, the states of a sharded recurrent cell after
/// every step, and, for experts that are sharded under sequence parallelism, the gather of the
/// tokens that came to a rank's experts before these and the scatter of their outputs' sums behind,
/// in both passes: each rank dispatches its own part of the sequence (Megatron-Core's dispatchers,
/// megatron/core/transformer/moe/token_dispatcher.py). `output_bytes` is its whole output. Zero for
/// tp 1 and for whole experts.
TensorComm operator_comm(const Operator& op, double output_bytes, double rows, const Execution& how,
                         const GroupSpan& ranks, const System& system);

/// The bytes that each rank sends for it, in place of times.
TensorComm operator_sent(const Operator& op, double output_bytes, double rows,
                         const Execution& how);

}  // namespace braid
