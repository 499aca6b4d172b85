#include "braid/chip/cores/block_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/chip/cores/block_layer.h"
#include "braid/chip/cores/ready_operators.h"

namespace braid {
namespace {

constexpr std::size_t kFirstWidth = 8, kWidthStep = 8;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Makes moves from the start of a block on.
class Replay {
 public:
  explicit Replay(const CoreBlock& block)
      : block_(block),
        state_(initial_state(block)),
        begun_(block.operators.size()),
        fused_(block.fused),
        finder_(block) {}

  /// Makes the first move for which `wanted(move)`.
  template <typename Wanted>
  void make(const Wanted& wanted) {
    list_moves(block_, state_, finder_.find(begun_, state_), fused_ > 0, listed_);
    const CoreMove move = *std::find_if(listed_.begin(), listed_.end(), wanted);
    const auto op = static_cast<std::size_t>(move.op);
    if (block_.fused > 0 && block_.operators[op].work.kind == CoreKind::fused) --fused_;
    make_move(block_, move, fused_ > 0, state_);
    begun_.set(op);
    moves_.push_back(move);
  }
  /// All that is left, each where it takes least.
  void make_all() {
    for (std::size_t i = 0; i < block_.operators.size(); ++i) {
      if (begun_.test(i)) continue;
      make([&](const CoreMove& move) {
        return move.op == static_cast<std::int32_t>(i) &&
               move.all == block_.operators[i].may_spread;
      });
    }
  }
  const std::vector<CoreMove>& moves() const { return moves_; }
  double makespan_s() const { return state_.latest_s; }

 private:
  const CoreBlock& block_;
  BlockState state_;
  Bitset begun_;
  std::size_t fused_;
  ReadyFinder finder_;
  std::vector<CoreMove> listed_, moves_;
};

/// One search with layers of a width.
class LayeredSearch {
 public:
  LayeredSearch(const CoreBlock& block, BlockSolution& best, std::int64_t most_work)
      : block_(block),
        best_(best),
        most_work_(most_work),
        layer_(block),
        next_(block),
        finder_(block) {}

  /// Improves the best solution; returns what nothing that was cut takes less than, infinite where
  /// nothing was cut that could be better; nullopt where the work ran out.
  std::optional<double> run(std::size_t width) {
    steps_.clear();
    layer_.clear();
    BlockLabel root;
    root.begun = Bitset(block_.operators.size());
    root.fused = block_.fused;
    root.bound_s = block_.bound_s;
    std::vector<double> rest_s;
    for (const MeanBound& bound : block_.bounds) {
      double sum_s = 0;
      for (const double cost_s : bound.cost_s) sum_s += cost_s;
      rest_s.push_back(sum_s);
    }
    for (const BlockOperator& op : block_.operators) root.serial_s += op.shortest_s;
    layer_.add(std::move(root), initial_state(block_), rest_s);
    double cut_s = kInfinity;
    for (std::size_t begun = 0; begun <= block_.operators.size() && layer_.size() > 0; ++begun) {
      next_.clear();
      for (std::size_t i = 0; i < layer_.size(); ++i) {
        if (best_.work >= most_work_) return std::nullopt;
        steps_.push_back(layer_.label(i));
        steps_.back().begun = Bitset();
        expand(layer_.label(i));
      }
      cut_s = std::min(cut_s, next_.cut_to(width));
      std::swap(layer_, next_);
    }
    return cut_s;
  }

 private:
  bool is_hopeless(double bound_s) const { return is_proven(bound_s, best_.makespan_s); }

  void expand(const BlockLabel& label) {
    if (is_hopeless(label.bound_s)) return;
    layer_.read(label, state_, rest_s_);
    if (state_.latest_s + label.serial_s < best_.makespan_s) {
      keep(static_cast<std::int32_t>(steps_.size()) - 1);
    }
    const std::vector<ReadyOperator>& ready = finder_.find(label.begun, state_);
    list_moves(block_, state_, ready, label.fused > 0, moves_);
    drop_early_spreads(label);
    drop_alike(label, ready);
    keep_needed(block_, state_, moves_);
    best_.work += static_cast<std::int64_t>(moves_.size());
    begun_ = label.begun;
    for (const CoreMove& move : moves_) try_move(label, move, ready);
  }

  /// Under AllCoresRule::alone, what runs alone may as well wait until something that comes after
  /// it is to begin before the next runs alone; and what nothing comes after, until the end.
  void drop_early_spreads(const BlockLabel& label) {
    if (block_.rule != AllCoresRule::alone) return;
    const bool owes = label.together && label.owed.size() > 0;
    std::erase_if(moves_, [&](const CoreMove& move) {
      return move.all &&
             (owes || block_.operators[static_cast<std::size_t>(move.op)].later.empty());
    });
  }

  /// Of operators that are alike from now on, the one that is ready first goes first. It must do
  /// for what is owed what the other would.
  void drop_alike(const BlockLabel& label, const std::vector<ReadyOperator>& ready) {
    hidden_.clear();
    for (const ReadyOperator& second : ready) {
      const BlockOperator& op = block_.operators[static_cast<std::size_t>(second.op)];
      if (op.alike < 0) continue;
      for (const ReadyOperator& first : ready) {
        const BlockOperator& other = block_.operators[static_cast<std::size_t>(first.op)];
        if (other.alike != op.alike || first.op == second.op) continue;
        if (first.ready_s > second.ready_s ||
            (first.ready_s == second.ready_s && first.op > second.op)) {
          continue;
        }
        if (label.owed.size() > 0 && !(label.owed & op.before).is_subset_of(other.before)) {
          continue;
        }
        hidden_.push_back(second.op);
        break;
      }
    }
    if (hidden_.empty()) return;
    std::erase_if(moves_, [&](const CoreMove& move) {
      return std::find(hidden_.begin(), hidden_.end(), move.op) != hidden_.end();
    });
  }

  void note_owed(const BlockLabel& label, const CoreMove& move, BlockLabel& child) {
    if (block_.rule != AllCoresRule::alone) return;
    child.together = !move.all;
    child.owed = label.owed;
    if (move.all) {
      if (child.owed.size() == 0) child.owed = Bitset(block_.operators.size());
      child.owed.set(static_cast<std::size_t>(move.op));
    } else if (child.owed.size() > 0) {
      child.owed -= block_.operators[static_cast<std::size_t>(move.op)].before;
      if (!child.owed.any()) child.owed = Bitset();
    }
  }

  void try_move(const BlockLabel& label, const CoreMove& move,
                const std::vector<ReadyOperator>& ready) {
    const auto op = static_cast<std::size_t>(move.op);
    const BlockOperator& moved = block_.operators[op];
    if (is_hopeless(move.end_s + moved.after_s)) return;
    BlockLabel child;
    child.fused = label.fused;
    if (block_.fused > 0 && moved.work.kind == CoreKind::fused) --child.fused;
    after_ = state_;
    make_move(block_, move, child.fused > 0, after_);
    child.bound_s = std::max(label.bound_s, bound_after(move, ready));
    if (is_hopeless(child.bound_s)) return;
    child.parent = static_cast<std::int32_t>(steps_.size()) - 1;
    child.op = move.op;
    child.all = move.all;
    child.tensor = move.tensor;
    child.vector = move.vector;
    child.serial_s = label.serial_s - moved.shortest_s;
    note_owed(label, move, child);
    begun_.set(op);
    child.begun = begun_;
    child.hash = begun_.hash();
    begun_.reset(op);
    next_.add(std::move(child), after_, rest_after_s_);
  }

  /// What goes on from `after_` takes at least so much. Fills in rest_after_s_.
  double bound_after(const CoreMove& move, const std::vector<ReadyOperator>& ready) {
    const auto moved = static_cast<std::size_t>(move.op);
    double bound_s = std::max(after_.latest_s, move.end_s + block_.operators[moved].after_s);
    const double tensor_s = after_.tensors.empty() ? 0 : least_of(after_.tensors);
    const double vector_s = after_.vectors.empty() ? 0 : least_of(after_.vectors);
    for (const ReadyOperator& other : ready) {
      if (other.op == move.op) continue;
      const BlockOperator& op = block_.operators[static_cast<std::size_t>(other.op)];
      double start_s = std::max(other.ready_s, after_.begun_s);
      if (needs_tensor_core(op.work.kind)) start_s = std::max(start_s, tensor_s);
      if (needs_vector_core(op.work.kind)) start_s = std::max(start_s, vector_s);
      bound_s = std::max(bound_s, start_s + op.shortest_s + op.after_s);
    }
    const double mean_tensor_s = mean_of(after_.tensors);
    const double mean_vector_s = mean_of(after_.vectors);
    rest_after_s_ = rest_s_;
    for (std::size_t b = 0; b < block_.bounds.size(); ++b) {
      const MeanBound& bound = block_.bounds[b];
      rest_after_s_[b] -= bound.cost_s[moved];
      double sum_s = rest_after_s_[b] + bound.tensor * mean_tensor_s +
                     bound.vector * mean_vector_s + bound.chains * after_.begun_s;
      for (const RunningOperator& running : after_.running) {
        sum_s +=
            bound.through[static_cast<std::size_t>(running.op)] * (running.end_s - after_.begun_s);
      }
      bound_s = std::max(bound_s, sum_s);
    }
    return bound_s;
  }

  static double least_of(const std::vector<double>& values) {
    return *std::min_element(values.begin(), values.end());
  }

  /// Makes all moves up to a step again, and puts what is left behind them one by one.
  void keep(std::int32_t last) {
    std::vector<std::int32_t> steps;
    for (std::int32_t at = last; at > 0; at = step(at).parent) steps.push_back(at);
    Replay replay(block_);
    for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
      const BlockLabel& made = step(*at);
      replay.make([&](const CoreMove& move) {
        return move.op == made.op && move.all == made.all && move.tensor == made.tensor &&
               move.vector == made.vector;
      });
    }
    replay.make_all();
    best_.moves = replay.moves();
    best_.makespan_s = replay.makespan_s();
  }
  const BlockLabel& step(std::int32_t at) const { return steps_[static_cast<std::size_t>(at)]; }

  const CoreBlock& block_;
  BlockSolution& best_;
  std::int64_t most_work_;
  BlockLayer layer_, next_;
  std::vector<BlockLabel> steps_;  ///< All that were expanded, without their operators.
  ReadyFinder finder_;
  // Of the label that is expanded, and of the move that is tried.
  BlockState state_, after_;
  Bitset begun_;
  std::vector<double> rest_s_, rest_after_s_;
  std::vector<CoreMove> moves_;
  std::vector<std::int32_t> hidden_;
};

}  // namespace

BlockSolution search_block(const CoreBlock& given, std::int64_t most_work) {
  BlockSolution best = list_schedule(given);
  if (is_proven(best.bound_s, best.makespan_s)) return best;
  CoreBlock block = given;
  std::vector<std::int32_t> order;
  for (const CoreMove& move : best.moves) order.push_back(move.op);
  add_bounds_along(order, block);
  best.bound_s = std::min(block.bound_s, best.makespan_s);
  for (std::size_t width = kFirstWidth;; width *= kWidthStep) {
    if (is_proven(best.bound_s, best.makespan_s)) break;
    const std::optional<double> cut_s = LayeredSearch(block, best, most_work).run(width);
    if (!cut_s) break;
    best.bound_s = std::max(best.bound_s, std::min(*cut_s, best.makespan_s));
  }
  if (is_proven(best.bound_s, best.makespan_s)) best.bound_s = best.makespan_s;
  return best;
}

}  // namespace braid
