#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/chip/cores/block_search.h"
#include "braid/chip/cores/ready_operators.h"

namespace braid {
namespace {

/// Who may be on all cores, and whether the operator that most comes after goes before the one that
/// can start first.
struct ListRule {
  std::vector<bool> spread;
  bool longest_first = false;
};

/// The move that the rule takes; there is one for each ready operator.
const CoreMove& chosen_move(const CoreBlock& block, const ListRule& rule,
                            const std::vector<CoreMove>& moves) {
  const auto left_s = [&](const CoreMove& move) {
    const BlockOperator& op = block.operators[static_cast<std::size_t>(move.op)];
    return op.shortest_s + op.after_s;
  };
  return *std::min_element(moves.begin(), moves.end(), [&](const CoreMove& a, const CoreMove& b) {
    const double left_a = left_s(a);
    const double left_b = left_s(b);
    if (rule.longest_first && left_a != left_b) return left_a > left_b;
    return a.start_s != b.start_s ? a.start_s < b.start_s : left_a > left_b;
  });
}

BlockSolution by_rule(const CoreBlock& block, const ListRule& rule) {
  const std::size_t count = block.operators.size();
  BlockSolution solution;
  BlockState state = initial_state(block);
  Bitset begun(count);
  ReadyFinder finder(block);
  std::vector<CoreMove> moves;
  std::size_t fused = block.fused;
  while (solution.moves.size() < count) {
    list_moves(block, state, finder.find(begun, state), fused > 0, moves);
    std::erase_if(moves, [&](const CoreMove& move) {
      return move.all != rule.spread[static_cast<std::size_t>(move.op)];
    });
    keep_needed(block, state, moves);
    solution.work += static_cast<std::int64_t>(moves.size());
    const CoreMove move = chosen_move(block, rule, moves);
    const auto op = static_cast<std::size_t>(move.op);
    if (block.fused > 0 && block.operators[op].work.kind == CoreKind::fused) --fused;
    make_move(block, move, fused > 0, state);
    begun.set(op);
    solution.moves.push_back(move);
  }
  solution.makespan_s = state.latest_s;
  return solution;
}

}  // namespace

BlockSolution list_schedule(const CoreBlock& block) {
  const std::size_t count = block.operators.size();
  std::vector<ListRule> rules;
  const auto add = [&](std::vector<bool> spread) {
    rules.push_back({spread, false});
    rules.push_back({std::move(spread), true});
  };
  add(std::vector<bool>(count, false));
  std::vector<bool> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = block.operators[i].may_spread;
  add(all);
  for (const MeanBound& bound : block.bounds) add(bound.spread);

  BlockSolution best;
  best.makespan_s = kInfinity;
  std::int64_t work = 0;
  for (const ListRule& rule : rules) {
    BlockSolution solution = by_rule(block, rule);
    work += solution.work;
    if (solution.makespan_s < best.makespan_s) best = std::move(solution);
  }
  best.work = work;
  best.bound_s = std::min(block.bound_s, best.makespan_s);
  return best;
}

}  // namespace braid
