#include "braid/graph/downsets.h"

#include <algorithm>
#include <cassert>

namespace braid {

bool smaller_downset(const Bitset& a, const Bitset& b) {
  const std::size_t in_a = a.count();
  const std::size_t in_b = b.count();
  return in_a != in_b ? in_a < in_b : a < b;
}

Dag make_dag(std::size_t nodes, std::span<const std::pair<std::int32_t, std::int32_t>> edges) {
  Dag dag{.predecessors = std::vector<Bitset>(nodes, Bitset(nodes)),
          .successors = std::vector<Bitset>(nodes, Bitset(nodes))};
  for (const auto& [source, target] : edges) {
    assert(0 <= source && source < target && static_cast<std::size_t>(target) < nodes);
    dag.predecessors[static_cast<std::size_t>(target)].set(static_cast<std::size_t>(source));
    dag.successors[static_cast<std::size_t>(source)].set(static_cast<std::size_t>(target));
  }
  return dag;
}

std::optional<std::vector<Bitset>> downsets(const Dag& dag, std::size_t limit) {
  // A downset without its highest-numbered member is a downset too, as numbers are topological. So
  // each is made once: from that one, by adding a node above all members.
  struct Partial {
    Bitset set;
    std::size_t next;  ///< Nodes below may not be added any more.
  };
  if (limit == 0) return std::nullopt;
  std::vector<Bitset> sets;
  std::vector<Partial> open;
  open.push_back({Bitset(dag.size()), 0});
  while (!open.empty()) {
    const Partial partial = std::move(open.back());
    open.pop_back();
    sets.push_back(partial.set);
    for (std::size_t node = partial.next; node < dag.size(); ++node) {
      if (!dag.predecessors[node].is_subset_of(partial.set)) continue;
      if (sets.size() + open.size() >= limit) return std::nullopt;
      open.push_back({partial.set, node + 1});
      open.back().set.set(node);
    }
  }
  // Not the function itself, calls of which would not be inlined.
  std::sort(sets.begin(), sets.end(),
            [](const Bitset& a, const Bitset& b) { return smaller_downset(a, b); });
  return sets;
}

std::optional<std::vector<DownsetPair>> downset_pairs(const std::vector<Bitset>& sets,
                                                      std::size_t most_nodes, std::size_t limit) {
  std::vector<std::size_t> counts;
  counts.reserve(sets.size());
  for (const Bitset& set : sets) counts.push_back(set.count());
  std::vector<DownsetPair> pairs;
  std::size_t lowest = 0;  // Sets before have too few members for most_nodes.
  for (std::size_t outer = 0; outer < sets.size(); ++outer) {
    while (counts[lowest] + most_nodes < counts[outer]) ++lowest;
    for (std::size_t inner = lowest; counts[inner] < counts[outer]; ++inner) {
      if (!sets[inner].is_subset_of(sets[outer])) continue;
      if (pairs.size() >= limit) return std::nullopt;
      pairs.push_back({static_cast<std::uint32_t>(inner), static_cast<std::uint32_t>(outer)});
    }
  }
  return pairs;
}

}  // namespace braid
