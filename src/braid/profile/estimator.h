#pragma once

#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/profile/profile.h"
#include "braid/system/collective.h"
#include "braid/system/system.h"

namespace braid {

/// Number formats of mixed-precision training.
struct Precision {
  Dtype matmul = Dtype::bf16;                 ///< Operands of matrix products.
  Dtype activation = Dtype::bf16;             ///< Stored activations and communicated tensors.
  Dtype weight = Dtype::bf16;                 ///< Weights used in the passes.
  Dtype gradient = Dtype::f32;                ///< Accumulated and reduced gradients.
  double optimizer_bytes_per_parameter = 12;  ///< Adam: f32 master weight and two moments.
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// "bf16", "fp16", "fp8", "tf32", "fp32" as trainers name them. Throws Error for others.
Precision parse_precision(const std::string& name);
std::string name_of(const Precision& precision);

/// "tp8 sp cp2 full recompute": what sets an option apart.
std::string name_of(const Execution& how);

/// Which degrees a model allows.
struct SplitLimits {
  std::int64_t heads =
      0;  ///< gcd of what tp must divide (heads, features, vocabulary is padded); 0: tp = 1 only.
  std::int64_t kv_heads = 0;  ///< Key/value heads; tp beyond it replicates them.
  std::int64_t experts = 0;   ///< ep must divide it; 0: dense model.
  std::int64_t seq_len = 0;   ///< sp: tp divides it; cp: 2·cp divides it; 0: neither.
  bool recurrent = false;     ///< A layer needs the whole sequence in order: cp = 1 only.
};
SplitLimits split_limits(const Graph& graph);

/// Empty when the graph can run as `how` says, else why not ("tp 3 does not divide 64 attention
/// heads").
std::string refusal(const SplitLimits& limits, const Execution& how);

/// Communicators that a layer's own collectives run on.
struct LayerGroups {
  GroupSpan tp, cp, ep;
};

/// Cost of one layer of `graph` run as `how` on chips of `system` (homogeneous). Pure; the layer's
/// time is the sum over its operators of a roofline with shape-dependent efficiency plus exposed
/// collectives. Equations and sources: docs/cost-model.md. Throws Error when the chip does not list
/// the peak for the precision. Cost: linear in the layer's operators.
LayerCost estimate_layer(const Graph& graph, LayerId layer, const Execution& how,
                         const Precision& precision, const LayerGroups& groups,
                         const System& system);

/// A lower bound on the forward + backward device time of one layer and micro-batch, whatever the
/// kernels: max(arithmetic at peak, compulsory bytes at full memory bandwidth), no recomputation,
/// for the whole layer on one device (divide by the degrees used).
double layer_bound_s(const Graph& graph, LayerId layer, const Precision& precision,
                     const Chip& chip);

/// Options for all layer kinds over the given executions (those that the model refuses are left
/// out).
Profile estimate_profile(const Graph& graph, const std::vector<Execution>& executions,
                         const Precision& precision, const System& system);

}  // namespace braid
