#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// Deep learning recommendation model (Naumov et al. 2019), from a config with `model_type` "dlrm":
/// - `dense_branches` (1) dense stacks, each of the widths `bottom_mlp` over `dense_features`
///   inputs; the published model has one;
/// - a bag of `lookups` rows of `embedding_dim` from each table, summed or, with `bag` "concat",
///   side by side; `embedding_rows` is a list with the rows of each table, or the rows of each of
///   `num_tables`;
/// - their `interaction`: "cat" puts all features side by side; "dot" the dense ones and the
///   products of all pairs of dense and embedded vectors (bottom_mlp then ends in embedding_dim);
///   "fold" adds all features up into as many as one dense stack gives, without weights;
/// - the dense stack `top_mlp`, whose last outputs are the logits; `mlp_bias` (true).
/// Every dense layer and every table is a layer of the graph, and all branches meet in the layer
/// "interaction". Tensor parallelism splits tables by rows. Throws Error naming the field.
Graph dlrm_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
