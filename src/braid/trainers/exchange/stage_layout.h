#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// Transformer blocks of each chunk of a --pipeline-model-parallel-layout, in model order: "t" is a
/// block, "E" and "L" embedding and loss, "|" ends a chunk, "(…)*3" and "t*3" repeat. With "m", an
/// MTP module, all layers of each chunk: embedding, blocks, all modules as one, loss
/// (megatron/core/transformer/pipeline_parallel_layer_layout.py). Throws Error for other
/// characters, brackets that do not match and more than 2^16 chunks or blocks.
///
///     blocks_of_layout("Et*3|(tt|)*2tL", "run.sh");  // 3, 2, 2, 1
std::vector<std::int64_t> blocks_of_layout(const std::string& layout, const std::string& file);

/// Layers of each chunk of a hybrid's pattern, of which those of the predictions behind "/" do not
/// count.
///
///     layers_of_pattern("MEM*|EMEM/*E/*E");  // 4, 4
std::vector<std::int64_t> layers_of_pattern(const std::string& pattern);

/// "MEM*|EMEM": the layers of each chunk of a hybrid, perhaps none, without predictions.
/// Precondition: the plan has the shape of a hybrid.
std::string hybrid_pattern(const Plan& plan);

/// Whether the model is a hybrid of state-space, attention and feed-forward layers, which
/// pretrain_hybrid.py trains and not pretrain_gpt.py (ModelShape::layer_pattern).
bool is_hybrid(const Plan& plan);

/// The chunk, in model order, of the layer behind the last block, which a model with further
/// predictions has there; that of the last block is the last one where all is behind it.
/// Precondition: the plan has a shape.
std::size_t chunk_of_predictions(const Plan& plan);

/// Throws Error where a hybrid has MTP modules elsewhere than on the last stage, where
/// HybridModel builds that (mtp_process in megatron/core/models/hybrid/hybrid_model.py). `target`:
/// for which a plan would have them there.
void check_predictions_of_hybrid(const Plan& plan, const std::string& target);

}  // namespace braid
