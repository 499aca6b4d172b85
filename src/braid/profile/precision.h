#pragma once

#include <optional>
#include <string>

#include "braid/base/dtype.h"
#include "braid/graph/pointwise_figures.h"
#include "braid/system/system.h"

namespace braid {

/// Number formats of mixed-precision training.
struct Precision {
  Dtype matmul = Dtype::bf16;      ///< Operands of GEMMs.
  Dtype activation = Dtype::bf16;  ///< Stored activations and communicated tensors.
  Dtype weight = Dtype::bf16;      ///< Weights used in the passes.
  Dtype gradient = Dtype::f32;     ///< Accumulated and reduced gradients.
  /// Gradients of parameters that several stages hold, as these sum them; nullopt: as `gradient`.
  /// DeepSpeed's pipelines sum them in the weights' format (allreduce_tied_weight_gradients in
  /// deepspeed/runtime/pipe/module.py, which takes weight.grad).
  std::optional<Dtype> shared_gradient = std::nullopt;
  double optimizer_bytes_per_parameter = kAdamStateBytes;
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// "bf16", "fp16", "fp8", "tf32", "fp32" as trainers name them. Throws Error for others.
Precision parse_precision(const std::string& name);
std::string name_of(const Precision& precision);

/// The precision to train in where none is asked for: the first of bf16, fp16 and fp32 that every
/// chip of `system` lists a peak for, else that any of them does, else bf16.
Precision usual_precision(const System& system);

/// Peak matmul rate of `chip` in this precision, FLOP/s. Throws Error, with the precisions that the
/// chip lists, when it lists no such peak.
double matmul_peak_in(const Chip& chip, const Precision& precision);

}  // namespace braid
