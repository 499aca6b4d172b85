#include "braid/chip/frontier_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "braid/base/infinity.h"

namespace braid {
namespace {

/// A run of the greedy search.
class Growth {
 public:
  explicit Growth(const std::vector<std::vector<std::uint32_t>>& near)
      : near_(near), left_(near.size()), done_(near.size()), is_open_(near.size()) {}

  /// True when it has fewer subsets than `order`, which it then replaces.
  bool run(std::uint32_t first, std::mt19937_64* dice, FrontierOrder& order, std::int64_t& steps) {
    const std::size_t count = near_.size();
    for (std::size_t i = 0; i < count; ++i) left_[i] = near_[i].size();
    done_.assign(count, 0);
    is_open_.assign(count, 0);
    open_.clear();
    FrontierOrder found;
    std::size_t width = 0;
    for (std::uint32_t next = first;; next = best_open(dice)) {
      width = static_cast<std::size_t>(static_cast<std::int64_t>(width) + change(next));
      take(next);
      found.nodes.push_back(next);
      ++steps;
      found.widest = std::max(found.widest, width);
      found.subsets += std::ldexp(1, static_cast<int>(width));
      if (found.subsets >= order.subsets) return false;
      if (found.nodes.size() == count) break;
      if (!open_.empty()) continue;
      const auto other = std::find(done_.begin(), done_.end(), 0);
      open(static_cast<std::uint32_t>(other - done_.begin()));
    }
    order = std::move(found);
    return true;
  }

 private:
  /// By how much the frontier grows with the node.
  std::int64_t change(std::uint32_t node) const {
    std::int64_t wider = left_[node] > 0 ? 1 : 0;
    for (const std::uint32_t other : near_[node]) {
      if (done_[other] != 0 && left_[other] == 1) --wider;
    }
    return wider;
  }

  void open(std::uint32_t node) {
    if (is_open_[node] != 0) return;
    is_open_[node] = 1;
    open_.push_back(node);
  }

  void take(std::uint32_t node) {
    done_[node] = 1;
    is_open_[node] = 1;
    open_.erase(std::remove(open_.begin(), open_.end(), node), open_.end());
    for (const std::uint32_t other : near_[node]) {
      --left_[other];
      open(other);
    }
  }

  std::uint32_t best_open(std::mt19937_64* dice) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::uint32_t best = open_.front();
    std::uint64_t ties = 0;
    for (const std::uint32_t node : open_) {
      const std::int64_t wider = change(node);
      if (wider > least) continue;
      ties = wider < least ? 1 : ties + 1;
      if (wider < least || (dice != nullptr && (*dice)() % ties == 0)) best = node;
      least = wider;
    }
    return best;
  }

  const std::vector<std::vector<std::uint32_t>>& near_;
  std::vector<std::size_t> left_;  ///< Neighbours that are not done.
  std::vector<char> done_, is_open_;
  std::vector<std::uint32_t> open_;  ///< Neighbours of those done, in the order they came up.
};

}  // namespace

FrontierOrder frontier_order(const std::vector<std::vector<std::uint32_t>>& near,
                             std::int64_t most_steps) {
  FrontierOrder best;
  if (near.empty()) return best;
  best.subsets = kInfinity;
  Growth growth(near);
  std::mt19937_64 dice(1);
  std::int64_t steps = 0;
  for (std::uint32_t first = 0; first < near.size(); ++first) {
    growth.run(first, nullptr, best, steps);
    if (steps >= most_steps) return best;
  }
  while (steps < most_steps) {
    growth.run(static_cast<std::uint32_t>(dice() % near.size()), &dice, best, steps);
  }
  return best;
}

}  // namespace braid
