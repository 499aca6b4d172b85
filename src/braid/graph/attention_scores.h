#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// Scores that one head computes for one sample, of its q_len × kv_len: those that neither the
/// causal mask nor the window hides. The last query stands at the last key. A causal window holds
/// the last `window` keys, itself included; one without a causal mask is centred on the query.
double attended_scores(const Attention& attention);

}  // namespace braid
