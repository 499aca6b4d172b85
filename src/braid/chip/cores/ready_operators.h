#pragma once

#include <vector>

#include "braid/chip/cores/block_state.h"
#include "braid/chip/cores/core_block.h"
#include "braid/graph/bitset.h"

namespace braid {

/// Finds who may go next; keeps its memory.
class ReadyFinder {
 public:
  explicit ReadyFinder(const CoreBlock& block) : block_(block), end_s_(block.operators.size(), 0) {}

  /// The operators whose predecessors, and their twin if they have one to wait for, are `begun`.
  const std::vector<ReadyOperator>& find(const Bitset& begun, const BlockState& state);

 private:
  const CoreBlock& block_;
  std::vector<double> end_s_;  ///< Of running operators; else 0.
  std::vector<ReadyOperator> ready_;
};

}  // namespace braid
