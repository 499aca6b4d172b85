#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

/// Transformer blocks of each chunk of a --pipeline-model-parallel-layout, in model order: "t" and
/// "m" (an MTP module) are blocks, "E" and "L" embedding and loss, "|" ends a chunk, "(…)*3" and
/// "t*3" repeat (megatron/core/transformer/pipeline_parallel_layer_layout.py). Throws Error for
/// other characters, brackets that do not match and more than 2^16 chunks or blocks.
///
///     blocks_of_layout("Et*3|(tt|)*2tL");  // 3, 2, 2, 1
std::vector<std::int64_t> blocks_of_layout(const std::string& layout, const std::string& file);

}  // namespace braid
