#include "braid/search/symmetric_branches.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace braid {

std::vector<std::pair<std::int32_t, std::int32_t>> symmetry_breaking_edges(
    std::span<const std::size_t> label,
    std::span<const std::pair<std::int32_t, std::int32_t>> edges) {
  using Layers = std::vector<std::int32_t>;
  std::vector<Layers> before(label.size()), behind(label.size());
  for (const auto& [source, target] : edges) {
    before[static_cast<std::size_t>(target)].push_back(source);
    behind[static_cast<std::size_t>(source)].push_back(target);
  }
  for (Layers& layers : before) std::sort(layers.begin(), layers.end());
  for (Layers& layers : behind) std::sort(layers.begin(), layers.end());

  std::vector<bool> taken(label.size(), false);
  std::map<std::tuple<Layers, std::vector<std::size_t>, Layers>, Layers>
      last_of;  // The last branch.
  std::vector<std::pair<std::int32_t, std::int32_t>> turns;
  for (std::size_t head = 0; head < label.size(); ++head) {
    if (taken[head]) continue;
    Layers branch;
    std::vector<std::size_t> labels;
    for (std::size_t here = head;;) {
      taken[here] = true;
      branch.push_back(static_cast<std::int32_t>(here));
      labels.push_back(label[here]);
      if (behind[here].size() != 1) break;
      const auto next = static_cast<std::size_t>(behind[here].front());
      if (before[next].size() != 1) break;
      here = next;
    }
    const Layers& tail = behind[static_cast<std::size_t>(branch.back())];
    Layers& last = last_of[{before[head], std::move(labels), tail}];
    bool rising = !last.empty();
    for (std::size_t i = 0; i < last.size(); ++i) rising = rising && last[i] < branch[i];
    for (std::size_t i = 0; i < branch.size() && rising; ++i) {
      turns.emplace_back(last[i], branch[i]);
    }
    last = std::move(branch);
  }
  return turns;
}

}  // namespace braid
