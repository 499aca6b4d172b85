#include "braid/trainers/exchange/export.h"

#include <algorithm>
#include <map>

namespace braid {

std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string title_of(const Plan& plan) {
  return on_one_line(plan.model + " on " + plan.system.name + ": written by braid");
}

BlockCounts count_blocks(const Plan& plan) {
  // Without a shape, a layer whose kind occurs once is taken for an embedding or a head.
  std::map<std::int32_t, std::int64_t> frequency;
  for (const ProfileLayer& layer : plan.profile.layers) ++frequency[layer.kind];
  const auto is_block = [&](std::int32_t layer) {
    if (plan.shape) {
      return layer >= plan.shape->first_block &&
             layer < plan.shape->first_block + plan.shape->blocks;
    }
    return frequency[plan.profile.layers[static_cast<std::size_t>(layer)].kind] > 1;
  };
  BlockCounts counts;
  const std::size_t chunks = plan.stages.empty() ? 0 : plan.stages.front().chunks.size();
  for (std::size_t c = 0; c < chunks; ++c) {
    for (const Stage& stage : plan.stages) {
      std::int64_t blocks = 0;
      for (const std::int32_t layer : stage.chunks[c].layers) {
        if (is_block(layer)) ++blocks;
      }
      counts.per_chunk.push_back(blocks);
      counts.total += blocks;
    }
  }
  counts.even = std::adjacent_find(counts.per_chunk.begin(), counts.per_chunk.end(),
                                   std::not_equal_to<>()) == counts.per_chunk.end();
  return counts;
}

}  // namespace braid
