#include "braid/chip/cores/block_state.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace braid {
namespace {

std::int32_t first_free(const std::vector<double>& cores, std::size_t from) {
  if (from >= cores.size()) return -1;
  return static_cast<std::int32_t>(
      std::min_element(cores.begin() + static_cast<std::ptrdiff_t>(from), cores.end()) -
      cores.begin());
}

class MoveLister {
 public:
  MoveLister(const CoreBlock& block, const BlockState& state, bool paired,
             std::vector<CoreMove>& moves)
      : block_(block), state_(state), pairs_(paired ? block.cores.pairs : 0), moves_(moves) {}

  void list(const ReadyOperator& ready) {
    const BlockOperator& op = block_.operators[static_cast<std::size_t>(ready.op)];
    const double ready_s = std::max(ready.ready_s, state_.begun_s);
    const CoreKind kind = op.work.kind;
    const bool on_tensor = needs_tensor_core(kind) && !state_.tensors.empty();
    const bool on_vector = needs_vector_core(kind) && !state_.vectors.empty();
    const bool fused = on_tensor && on_vector;
    for (std::size_t pair = 0; pair < pairs_ && (on_tensor || on_vector); ++pair) {
      if (pair > 0 && state_.tensors[pair] == state_.tensors[pair - 1] &&
          state_.vectors[pair] == state_.vectors[pair - 1]) {
        continue;
      }
      add(ready.op, ready_s, on_tensor ? static_cast<std::int32_t>(pair) : -1,
          on_vector ? static_cast<std::int32_t>(pair) : -1);
    }
    if (!fused) {
      const std::int32_t tensor = on_tensor ? first_free(state_.tensors, pairs_) : -1;
      const std::int32_t vector = on_vector ? first_free(state_.vectors, pairs_) : -1;
      if ((!on_tensor || tensor >= 0) && (!on_vector || vector >= 0)) {
        add(ready.op, ready_s, tensor, vector);
      }
    }
    if (op.may_spread) add_spread(ready.op, ready_s);
  }

 private:
  void add(std::int32_t op, double start_s, std::int32_t tensor, std::int32_t vector) {
    if (tensor >= 0) start_s = std::max(start_s, state_.tensors[static_cast<std::size_t>(tensor)]);
    if (vector >= 0) start_s = std::max(start_s, state_.vectors[static_cast<std::size_t>(vector)]);
    const double takes_s = block_.operators[static_cast<std::size_t>(op)].work.one_core_s;
    moves_.push_back({op, false, tensor, vector, start_s, start_s + takes_s});
  }
  void add_spread(std::int32_t op, double start_s) {
    const CoreOperator& work = block_.operators[static_cast<std::size_t>(op)].work;
    if (block_.rule == AllCoresRule::alone) {
      start_s = std::max(start_s, state_.latest_s);
    } else {
      if (needs_tensor_core(work.kind)) start_s = std::max(start_s, state_.tensor_s);
      if (needs_vector_core(work.kind)) start_s = std::max(start_s, state_.vector_s);
    }
    moves_.push_back({op, true, -1, -1, start_s, start_s + work.all_cores_s});
  }

  const CoreBlock& block_;
  const BlockState& state_;
  std::size_t pairs_;
  std::vector<CoreMove>& moves_;
};

/// Cores that are free before anything can begin are free then, and those that are interchangeable
/// are in one order.
void put_in_order(const CoreBlock& block, bool paired, BlockState& state) {
  for (double& free_s : state.tensors) free_s = std::max(free_s, state.begun_s);
  for (double& free_s : state.vectors) free_s = std::max(free_s, state.begun_s);
  const std::size_t pairs = paired ? block.cores.pairs : 0;
  for (std::size_t i = 1; i < pairs; ++i) {  // By insertion: one has changed.
    for (std::size_t j = i; j > 0 && std::pair(state.tensors[j], state.vectors[j]) <
                                         std::pair(state.tensors[j - 1], state.vectors[j - 1]);
         --j) {
      std::swap(state.tensors[j], state.tensors[j - 1]);
      std::swap(state.vectors[j], state.vectors[j - 1]);
    }
  }
  std::sort(state.tensors.begin() + static_cast<std::ptrdiff_t>(pairs), state.tensors.end());
  std::sort(state.vectors.begin() + static_cast<std::ptrdiff_t>(pairs), state.vectors.end());
}

}  // namespace

BlockState initial_state(const CoreBlock& block) {
  BlockState state;
  state.tensors.assign(block.cores.tensor, 0);
  state.vectors.assign(block.cores.vector, 0);
  return state;
}

void list_moves(const CoreBlock& block, const BlockState& state,
                std::span<const ReadyOperator> ready, bool paired, std::vector<CoreMove>& moves) {
  moves.clear();
  MoveLister lister(block, state, paired, moves);
  for (const ReadyOperator& op : ready) lister.list(op);
}

void keep_needed(const CoreBlock& block, const BlockState& state, std::vector<CoreMove>& moves) {
  const CoreMove* soonest = nullptr;
  const CoreMove* harmless = nullptr;
  for (const CoreMove& move : moves) {
    if (move.all) continue;
    if (soonest == nullptr || move.end_s < soonest->end_s) soonest = &move;
    const bool counted = move.tensor >= 0 || move.vector >= 0;
    if (!counted && move.end_s <= state.latest_s && block.rule == AllCoresRule::alone &&
        (harmless == nullptr || move.start_s < harmless->start_s)) {
      harmless = &move;
    }
  }
  if (soonest == nullptr) return;
  const CoreMove first = *soonest;
  const CoreMove free = harmless != nullptr ? *harmless : CoreMove{.op = -1};
  std::erase_if(moves, [&](const CoreMove& move) {
    if (free.op >= 0 && move.start_s >= free.start_s) return move.op != free.op || move.all;
    return move.op != first.op && move.start_s >= first.end_s;
  });
}

void make_move(const CoreBlock& block, const CoreMove& move, bool paired, BlockState& state) {
  const BlockOperator& op = block.operators[static_cast<std::size_t>(move.op)];
  const bool own_kind = block.rule == AllCoresRule::own_kind;
  state.begun_s = move.all && !own_kind ? move.end_s : move.start_s;
  state.latest_s = std::max(state.latest_s, move.end_s);
  if (own_kind && needs_tensor_core(op.work.kind)) {
    state.tensor_s = std::max(state.tensor_s, move.end_s);
  }
  if (own_kind && needs_vector_core(op.work.kind)) {
    state.vector_s = std::max(state.vector_s, move.end_s);
  }
  if (own_kind) {
    state.tensor_s = std::max(state.tensor_s, state.begun_s);
    state.vector_s = std::max(state.vector_s, state.begun_s);
  }
  if (move.all && own_kind && needs_tensor_core(op.work.kind)) {
    std::fill(state.tensors.begin(), state.tensors.end(), move.end_s);
  }
  if (move.all && own_kind && needs_vector_core(op.work.kind)) {
    std::fill(state.vectors.begin(), state.vectors.end(), move.end_s);
  }
  if (move.tensor >= 0) state.tensors[static_cast<std::size_t>(move.tensor)] = move.end_s;
  if (move.vector >= 0) state.vectors[static_cast<std::size_t>(move.vector)] = move.end_s;
  put_in_order(block, paired, state);
  std::erase_if(state.running,
                [&](const RunningOperator& running) { return running.end_s <= state.begun_s; });
  if (!op.later.empty() && move.end_s > state.begun_s) {
    const auto at = std::find_if(state.running.begin(), state.running.end(),
                                 [&](const RunningOperator& other) { return other.op > move.op; });
    state.running.insert(at, {move.op, move.end_s});
  }
}

}  // namespace braid
