#include "braid/search/downset_lattice.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace braid {
namespace {

std::vector<std::size_t> order_of(const Dag& dag, int choice) {
  std::vector<std::size_t> waits, ready, order;
  waits.reserve(dag.size());
  for (std::size_t v = 0; v < dag.size(); ++v) {
    waits.push_back(dag.predecessors[v].count());
    if (waits[v] == 0) ready.push_back(v);
  }
  while (!ready.empty()) {
    const auto next = choice == 0   ? std::min_element(ready.begin(), ready.end())
                      : choice == 1 ? std::max_element(ready.begin(), ready.end())
                      : choice == 2 ? ready.begin()
                                    : ready.end() - 1;
    const std::size_t v = *next;
    ready.erase(next);
    order.push_back(v);
    dag.successors[v].for_each([&](std::size_t w) {
      if (--waits[w] == 0) ready.push_back(w);
    });
  }
  return order;
}

}  // namespace

std::optional<DownsetLattice> downset_lattice(const Dag& dag, std::size_t most) {
  auto sets = downsets(dag, most);
  if (!sets.has_value()) return std::nullopt;
  return DownsetLattice{std::move(*sets), true};
}

DownsetLattice order_lattice(const Dag& dag) {
  std::vector<Bitset> sets;
  for (const int choice : {0, 1, 2, 3}) {
    Bitset set(dag.size());
    sets.push_back(set);
    for (const std::size_t v : order_of(dag, choice)) {
      set.set(v);
      sets.push_back(set);
    }
  }
  std::sort(sets.begin(), sets.end(), smaller_downset);
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return {std::move(sets), false};
}

DownsetLattice uncut_lattice(std::size_t nodes) {
  Bitset all(nodes);
  for (std::size_t v = 0; v < nodes; ++v) all.set(v);
  return {{Bitset(nodes), all}, false};
}

}  // namespace braid
