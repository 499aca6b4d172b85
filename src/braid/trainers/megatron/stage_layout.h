#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

/// Transformer blocks of each chunk of a --pipeline-model-parallel-layout, in model order: "t" is a
/// block, "E" and "L" embedding and loss, "|" ends a chunk, "(…)*3" and "t*3" repeat. With "m", an
/// MTP module, all layers of each chunk: embedding, blocks, all modules as one, loss
/// (megatron/core/transformer/pipeline_parallel_layer_layout.py). Throws Error for other
/// characters, brackets that do not match and more than 2^16 chunks or blocks.
///
///     blocks_of_layout("Et*3|(tt|)*2tL");  // 3, 2, 2, 1
std::vector<std::int64_t> blocks_of_layout(const std::string& layout, const std::string& file);

}  // namespace braid
