#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "braid/graph/bitset.h"
#include "braid/graph/downsets.h"

namespace braid {

/// The ways to cut a DAG in what comes first and what is left: its downsets, or some of them. What
/// lies between two of which one holds the other is a stage. Of a chain they are its prefixes.
struct DownsetLattice {
  std::vector<Bitset>
      sets;              ///< As downsets() orders them: the empty one first, the whole one last.
  bool complete = true;  ///< Else not all downsets of the DAG.

  std::size_t size() const { return sets.size(); }
};

/// All downsets; nullopt when there are more than `most`. Costs what downsets() does.
std::optional<DownsetLattice> downset_lattice(const Dag& dag, std::size_t most);

/// Those that some topological orders pass through: of the nodes that are ready the first, the
/// last, the one that has been so longest, or shortest. At most 4 · nodes + 1. Where all are too
/// many to be searched, these mostly hold good cuts.
DownsetLattice order_lattice(const Dag& dag);

/// The empty and the whole set of so many nodes alone: all is one stage.
DownsetLattice uncut_lattice(std::size_t nodes);

}  // namespace braid
