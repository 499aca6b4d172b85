#include "braid/chip/cores/core_assignment.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace braid {
namespace {

/// When each of the chip's cores is free. Of cores beside the pairs, no more than there are
/// operators.
class ChipCores {
 public:
  ChipCores(const CoreCounts& counts, std::size_t operators)
      : pairs_(static_cast<std::size_t>(counts.pairs())) {
    const auto with_lone = [&](std::int64_t cores) {
      return pairs_ + std::min(static_cast<std::size_t>(cores) - pairs_, operators);
    };
    tensors_.assign(with_lone(counts.tensor), 0);
    vectors_.assign(with_lone(counts.vector), 0);
  }

  /// A pair that is as free as one of the state's.
  std::int32_t pair_like(const BlockState& state, std::int32_t pair) const {
    const auto at = static_cast<std::size_t>(pair);
    return first_where_holds(pairs_, [&](std::size_t i) {
      return std::max(tensors_[i], state.begun_s) == state.tensors[at] &&
             std::max(vectors_[i], state.begun_s) == state.vectors[at];
    });
  }
  std::int32_t free_pair(double start_s) const {
    return first_where_holds(
        pairs_, [&](std::size_t i) { return tensors_[i] <= start_s && vectors_[i] <= start_s; });
  }
  std::int32_t free_tensor(double start_s) const { return free_core(tensors_, start_s); }
  std::int32_t free_vector(double start_s) const { return free_core(vectors_, start_s); }

  void take(const PlacedOperator& placed, CoreKind kind) {
    take(tensors_, placed, needs_tensor_core(kind), placed.tensor_core);
    take(vectors_, placed, needs_vector_core(kind), placed.vector_core);
  }

 private:
  static void take(std::vector<double>& cores, const PlacedOperator& placed, bool needed,
                   std::int32_t core) {
    if (placed.all_cores && needed) std::fill(cores.begin(), cores.end(), placed.end_s);
    if (core >= 0) cores[static_cast<std::size_t>(core)] = placed.end_s;
  }
  template <typename Holds>
  static std::int32_t first_where_holds(std::size_t count, const Holds& holds) {
    for (std::size_t i = 0; i < count; ++i) {
      if (holds(i)) return static_cast<std::int32_t>(i);
    }
    return -1;
  }
  /// Beside the pairs if there is one, else of a pair that is free as a whole, else any.
  std::int32_t free_core(const std::vector<double>& cores, double start_s) const {
    for (std::size_t i = pairs_; i < cores.size(); ++i) {
      if (cores[i] <= start_s) return static_cast<std::int32_t>(i);
    }
    const std::int32_t pair = free_pair(start_s);
    if (pair >= 0) return pair;
    return first_where_holds(pairs_, [&](std::size_t i) { return cores[i] <= start_s; });
  }

  std::size_t pairs_;
  std::vector<double> tensors_, vectors_;
};

/// The cores of an operator that is on one or a pair. Where pairs count (`paired`), those that are
/// like what the move takes; else operators of one kind are put where they leave whole pairs to
/// fused ones.
void choose_cores(const CoreMove& move, const BlockState& state, std::size_t paired, CoreKind kind,
                  const ChipCores& chip, PlacedOperator& placed) {
  const std::int32_t counted = std::max(move.tensor, move.vector);
  if (counted >= 0 && static_cast<std::size_t>(counted) < paired) {
    const std::int32_t pair = chip.pair_like(state, counted);
    if (needs_tensor_core(kind)) placed.tensor_core = pair;
    if (needs_vector_core(kind)) placed.vector_core = pair;
  } else if (kind == CoreKind::fused) {
    placed.tensor_core = placed.vector_core = chip.free_pair(move.start_s);
  } else if (kind == CoreKind::tensor) {
    placed.tensor_core = chip.free_tensor(move.start_s);
  } else {
    placed.vector_core = chip.free_vector(move.start_s);
  }
}

}  // namespace

std::vector<PlacedOperator> assigned_cores(const CoreBlock& block, const CoreCounts& cores,
                                           std::span<const CoreMove> moves, double start_s) {
  std::vector<PlacedOperator> all(block.operators.size());
  ChipCores chip(cores, block.operators.size());
  BlockState state = initial_state(block);
  std::size_t fused = block.fused;
  for (const CoreMove& move : moves) {
    const auto op = static_cast<std::size_t>(move.op);
    const CoreKind kind = block.operators[op].work.kind;
    PlacedOperator placed{.start_s = move.start_s, .end_s = move.end_s, .all_cores = move.all};
    if (!move.all) {
      choose_cores(move, state, fused > 0 ? block.cores.pairs : 0, kind, chip, placed);
      assert(!needs_tensor_core(kind) || placed.tensor_core >= 0);
      assert(!needs_vector_core(kind) || placed.vector_core >= 0);
    }
    chip.take(placed, kind);
    if (block.fused > 0 && kind == CoreKind::fused) --fused;
    make_move(block, move, fused > 0, state);
    placed.start_s += start_s;
    placed.end_s += start_s;
    all[op] = placed;
  }
  return all;
}

}  // namespace braid
