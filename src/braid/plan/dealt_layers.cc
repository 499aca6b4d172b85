#include "braid/plan/dealt_layers.h"

#include <fmt/format.h>

namespace braid {

std::vector<std::int32_t> layers_of_chunks(std::int32_t layers, std::int32_t chunks,
                                           bool heavy_end) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(chunks), 0);
  const std::int32_t each = (layers - 1 + chunks - 1) / chunks;
  if (heavy_end && (chunks - 1) * each < layers - 1) {
    counts.assign(counts.size(), each);
    ++counts.front();
    counts.back() += layers - 1 - chunks * each;
    return counts;
  }
  const std::int32_t blocks = layers - 2;
  const bool ends_count = blocks < chunks || (blocks % chunks != 0 && layers % chunks == 0);
  const std::int32_t dealt = ends_count ? layers : blocks;
  for (std::int32_t c = 0; c < chunks; ++c) {
    counts[static_cast<std::size_t>(c)] = dealt / chunks + (c < dealt % chunks ? 1 : 0);
  }
  if (!ends_count) {
    ++counts.front();
    ++counts.back();
  }
  return counts;
}

std::string layout_text(const std::vector<std::int32_t>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", layers[i]);
    if (end - i > 1) text += fmt::format("x{}", end - i);
    i = end;
  }
  return text;
}

}  // namespace braid
