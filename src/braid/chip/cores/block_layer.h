#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/cores/block_state.h"
#include "braid/chip/cores/core_block.h"
#include "braid/graph/bitset.h"

namespace braid {

/// A way to begin some operators of a block.
struct BlockLabel {
  Bitset begun;
  std::size_t hash = 0;   ///< Of `begun`.
  std::size_t fused = 0;  ///< Operators that need a pair and have not begun.
  double bound_s = 0;     ///< No schedule that goes on from here takes less.
  double serial_s = 0;    ///< What has not begun takes so long one by one.
  /// Operators that ran alone since others last ran at once, and that one which comes after must
  /// still begin for before the next runs alone; of size 0 when there are none.
  Bitset owed;
  bool together = false;     ///< Whether any has begun on one core since.
  std::int32_t parent = -1;  ///< What it was made from, of all that were ever kept, and how.
  std::int32_t op = -1;
  bool all = false;
  std::int32_t tensor = -1, vector = -1;
  std::size_t state = 0;  ///< Where its state is stored.
};

/// Labels with the same number of operators, none of them ahead of another in nothing: a state is
/// ahead where something is free or has ended sooner.
class BlockLayer {
 public:
  explicit BlockLayer(const CoreBlock& block);

  void clear();
  std::size_t size() const { return labels_.size(); }
  const BlockLabel& label(std::size_t i) const { return labels_[i]; }
  /// Reads the state of a label; `rest_s`: for each bound of the block, the sum of what the
  /// operators cost that have not begun.
  void read(const BlockLabel& label, BlockState& state, std::vector<double>& rest_s) const;
  /// Adds a label unless there is one that is behind in nothing, and drops those that are then
  /// ahead in nothing.
  void add(BlockLabel label, const BlockState& state, std::span<const double> rest_s);
  /// Drops dead labels and, by bound, those beyond `width`; the rest is ordered by bound. Returns
  /// the least bound of what was cut for the width; infinite where nothing was.
  double cut_to(std::size_t width);

 private:
  bool no_later(std::size_t a, std::size_t b) const;
  std::int32_t& slot_of(const BlockLabel& label);
  void grow();

  const CoreBlock* block_;
  std::size_t fixed_;  ///< Numbers of a state before its running operators.
  std::vector<BlockLabel> labels_;
  std::vector<std::int32_t> next_;  ///< The label before with the same operators; -1: none.
  std::vector<bool> dead_;
  std::vector<std::int32_t> table_;  ///< By hash, the last label with these operators.
  std::vector<double> states_;
};

}  // namespace braid
