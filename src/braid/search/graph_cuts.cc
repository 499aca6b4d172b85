#include "braid/search/graph_cuts.h"

#include <unordered_map>
#include <utility>

namespace braid {

std::vector<double> GraphCuts::sums(const std::vector<double>& of_layers) const {
  std::vector<double> sums(sets.size(), 0);
  // Every cut is reached from a smaller one, which comes before it.
  for (std::size_t cut = 0; cut < sets.size(); ++cut) {
    for (std::size_t s = first_step[cut]; s < first_step[cut + 1]; ++s) {
      sums[steps[s].to] = sums[cut] + of_layers[steps[s].layer];
    }
  }
  return sums;
}

std::vector<double> GraphCuts::crossing(const Dag& dag, std::span<const double> of_layers) const {
  std::vector<double> sums;
  sums.reserve(sets.size());
  for (const Bitset& set : sets) {
    double sum = 0;
    set.for_each([&](std::size_t layer) {
      if (!dag.successors[layer].is_subset_of(set)) sum += of_layers[layer];
    });
    sums.push_back(sum);
  }
  return sums;
}

std::optional<GraphCuts> graph_cuts(const Dag& dag, std::size_t most) {
  auto lattice = downset_lattice(dag, most);
  if (!lattice.has_value()) return std::nullopt;
  std::unordered_map<Bitset, std::uint32_t, BitsetHash> index;
  index.reserve(lattice->size());
  for (std::size_t i = 0; i < lattice->size(); ++i) {
    index.emplace(lattice->sets[i], static_cast<std::uint32_t>(i));
  }
  GraphCuts cuts{std::move(*lattice), {}, {}};
  cuts.first_step.reserve(cuts.sets.size() + 1);
  for (const Bitset& set : cuts.sets) {
    cuts.first_step.push_back(cuts.steps.size());
    for (std::size_t layer = 0; layer < dag.size(); ++layer) {
      if (set.test(layer) || !dag.predecessors[layer].is_subset_of(set)) continue;
      Bitset larger = set;
      larger.set(layer);
      cuts.steps.push_back({static_cast<std::uint32_t>(layer), index.at(larger)});
    }
  }
  cuts.first_step.push_back(cuts.steps.size());
  return cuts;
}

}  // namespace braid
