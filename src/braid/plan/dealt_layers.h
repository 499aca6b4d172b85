#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

/// Layers of each chunk in model order, dealt out as trainers do (Megatron-LM and those built on
/// it): the same number of blocks to every chunk, the embedding to the first, the head to the last;
/// where blocks do not divide evenly, embedding and head count as blocks; where that does not help
/// either, the first chunks get one more. `layers` counts embedding and head; `chunks` is at most
/// that. With `heavy_end`, where the layer before the head is an MTP module, the embedding
/// does not count and all chunks but the last get as many, so that this gets what is left:
/// Megatron-Bridge's layouts of DeepSeek-V3, such as 61 blocks in 16 chunks as 15 times 4 and one
/// with the two ends.
std::vector<std::int32_t> layers_of_chunks(std::int32_t layers, std::int32_t chunks,
                                           bool heavy_end = false);

/// "9,8x2,5": the layers of each chunk as the option --layout takes them.
std::string layout_text(const std::vector<std::int32_t>& layers);

}  // namespace braid
