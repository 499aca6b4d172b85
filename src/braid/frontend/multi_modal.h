#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// Transformers side by side, one for each modality, fused at the end, from a config with
/// `model_type` "multi_modal_transformer". Each of `num_branches` reads the vectors of its tokens
/// (`embedding_size` wide; a linear layer makes them `hidden_size` when that differs) with
/// `num_hidden_layers` blocks of `hidden_size`, `num_attention_heads` and `intermediate_size`; a
/// list `branches` of objects gives any of these fields for each branch by itself. The branches'
/// tokens are joined feature by feature and a linear layer gives `num_labels` (1) for each. All
/// have `max_position_embeddings` tokens, or as many as asked for. Blocks and the layer "fusion"
/// are layers of the graph. Throws Error naming the field.
Graph multi_modal_from_config(const Value& config, const std::string& name,
                              const ModelOptions& options);

}  // namespace braid
