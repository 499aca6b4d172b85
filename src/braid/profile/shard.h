#pragma once

#include "braid/graph/graph.h"
#include "braid/profile/profile.h"

namespace braid {

/// Shares of an operator's quantities that one device handles under an Execution, relative to the
/// whole graph's samples.
struct Shard {
  double tokens = 1;  ///< Rows: micro-batch over samples, context parallelism, sequence region.
  double input = 1;   ///< Further share of the input features.
  double output = 1;  ///< Further share of the output features.
  double weight = 1;  ///< Of the parameters.
};
Shard shard_of(Split split, const Execution& how, std::int64_t samples);

/// Share that a tensor-parallel rank keeps of what experts keep for themselves
/// (kept_for_backward(): the tokens as dispatched, inner activations). Ranks that divide each
/// expert's inner width all hold the tokens that came to it.
double kept_share(const MoeExperts& experts, const Execution& how);

/// Whether a tensor written by an operator with this split lies whole (or split over the sequence)
/// on each tensor-parallel rank, rather than split by features.
bool in_replicated_region(Split producer);

}  // namespace braid
