#include "braid/explore/memory_groups.h"

#include <algorithm>
#include <tuple>

namespace braid {

std::vector<std::vector<std::size_t>> memory_groups(std::span<const PricedMemory> memories) {
  if (memories.empty()) return {{}};
  const auto most = std::max_element(
      memories.begin(), memories.end(), [](const PricedMemory& a, const PricedMemory& b) {
        return std::tie(a.bytes, a.bytes_per_s) < std::tie(b.bytes, b.bytes_per_s);
      });
  const auto first = static_cast<std::size_t>(most - memories.begin());
  const bool leads = std::all_of(memories.begin(), memories.end(), [&](const PricedMemory& memory) {
    return memory.bytes_per_s <= most->bytes_per_s;
  });
  std::vector<std::vector<std::size_t>> groups;
  if (leads) groups.push_back({first});
  for (std::size_t m = 0; m < memories.size(); ++m) {
    if (!leads) {
      groups.push_back({m});
    } else if (m != first) {
      groups.front().push_back(m);
    }
  }
  return groups;
}

}  // namespace braid
