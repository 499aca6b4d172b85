#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/base/pareto_front.h"
#include "braid/planners/graphpipe/problem.h"

namespace braid {

/// How a partial plan came about. Choices are kept in one list and name each other by their places.
struct GraphPipeChoice {
  enum class Kind : std::uint8_t { stage, block, part, partial, group, remaining };
  Kind kind = Kind::stage;
  std::int32_t what = -1;  ///< Shape; block; class of a whole or partial branch; group of
                           ///< the block or the absorption.
  std::int32_t group = 0, samples = 0;  ///< Of a stage: indices in groups and device_samples …
  std::int32_t strategy = 0;            ///< … and in strategies.
  std::int32_t absorption = -1;         ///< Of a block.
  std::int32_t inner = -1;              ///< Of a block its first part; of a part its own plan.
  std::int32_t next = -1;               ///< What was there before: the stages behind, other parts.
};

/// A partial plan of everything from some place on.
struct GraphPipeLabel {
  std::int32_t devices = 0;  ///< Weighed (graphpipe_weights).
  std::int32_t choice = -1;
  /// Most copies that its first stages have, and the most that a stage before them may have: places
  /// in GraphPipeRuns::copies.
  std::int32_t copies = 0, allowed = kMostGraphPipeStrategies;
  /// What a stage before it adds to its own passes: from the start of a micro-batch's first forward
  /// pass to the end of its last backward pass, …
  double round_s = 0;
  /// … and inside a block of branches the longest path out to what is behind the block and the
  /// longest path back from there, whose own round is behind_s.
  double out_s = 0, back_s = 0, behind_s = -kInfinity;
  bool inside = false;
  bool empty = true;                                        ///< Nothing is behind, nor in it.
  std::array<std::int64_t, kMostMixedGroups> samples{};     ///< In flight there, for each group.
  std::array<std::int32_t, kMostGraphPipePools> of_pool{};  ///< Devices of each kind.
};

/// Whether there are no more of any kind.
inline bool within(const std::array<std::int32_t, kMostGraphPipePools>& some,
                   const std::array<std::int32_t, kMostGraphPipePools>& most) {
  bool inside = true;
  for (std::size_t p = 0; p < kMostGraphPipePools; ++p) inside &= some[p] <= most[p];
  return inside;
}

/// The Pareto-optimal partial plans of one place.
using GraphPipeFrontier = std::vector<GraphPipeLabel>;

/// How partial plans compare: by devices of each kind, by copies that they have and allow, and by
/// what they have in flight for each of `groups` micro-batch sizes (`table`) or by how long a
/// micro-batch takes to their end and back. Of plans of the branches of one block the paths out and
/// back count too, but only if asked (`full`): a plan with a shorter round and longer paths may be
/// the worse one beside another.
///
/// That is exact: the round R that a stage sees (planners/graphpipe/in_flight.h) is the longest of
/// paths out to some stage y, y's turn and paths back. Where plans stand beside each other before a
/// common plan, both ways may lead into that one through either, or stay within one of them: of the
/// block R = max(R₁, R₂, out + back + behind), with the longer path out of both and the longer path
/// back. A stage adds its passes to R, out and back, and raises R to its own turn; a transfer adds
/// itself to all. So everything grows with everything, and none of it depends on how plans behind
/// the block came by their R. Longest paths of difference constraints may also turn back at a stage
/// A to a later micro-batch, F_s → y → B_A → F_A → z → B_s, but in series-parallel stages those are
/// no longer: of the paths out s → y and A → z, or of the paths back y → A and z → s, two meet at
/// the end of the smallest block that A and the path around it are in, and with their ends swapped
/// there the path falls into one of the above and a round of A, for which A's own count has room.
class GraphPipeRanking {
 public:
  GraphPipeRanking(std::size_t groups, bool table, std::size_t pools)
      : groups_(groups), table_(table), pools_(pools) {}

  void compare_in_full(bool full) { full_ = full; }

  bool no_worse(const GraphPipeLabel& a, const GraphPipeLabel& b) const {
    if (a.devices > b.devices || a.copies > b.copies || a.allowed < b.allowed) return false;
    if (pools_ > 1 && !within(a.of_pool, b.of_pool)) return false;
    if (!table_) {
      return a.round_s <= b.round_s && (!full_ || (a.out_s <= b.out_s && a.back_s <= b.back_s));
    }
    for (std::size_t g = 0; g < groups_; ++g) {
      if (a.samples[g] > b.samples[g]) return false;
    }
    return true;
  }

  bool is_useless(const GraphPipeLabel& label, const GraphPipeFrontier& frontier) const {
    return is_dominated(frontier, label, Order{*this});
  }

  /// Adds a plan that is not useless in place of those that it makes so.
  void insert(const GraphPipeLabel& label, GraphPipeFrontier& frontier) const {
    put_in_front(frontier, label, Order{*this});
  }

  /// Of plans side by side everything is the most of both, but devices add up and what both allow
  /// is allowed.
  GraphPipeLabel join(const GraphPipeLabel& a, const GraphPipeLabel& b) const {
    GraphPipeLabel both = a;
    both.devices += b.devices;
    for (std::size_t p = 0; p < kMostGraphPipePools; ++p) both.of_pool[p] += b.of_pool[p];
    both.copies = std::max(a.copies, b.copies);
    both.allowed = std::min(a.allowed, b.allowed);
    both.out_s = std::max(a.out_s, b.out_s);
    both.back_s = std::max(a.back_s, b.back_s);
    both.behind_s = std::max(a.behind_s, b.behind_s);
    both.empty = a.empty && b.empty;
    both.round_s = std::max({a.round_s, b.round_s, both.out_s + both.behind_s + both.back_s});
    for (std::size_t g = 0; g < groups_; ++g) {
      both.samples[g] = std::max(a.samples[g], b.samples[g]);
    }
    return both;
  }

  /// As good in everything as whichever of some plans, at least one, is best in it. Where it is
  /// useless they all are, joined to another plan or not.
  GraphPipeLabel ideal(const GraphPipeFrontier& frontier) const {
    GraphPipeLabel best = frontier.front();
    for (const GraphPipeLabel& label : frontier) {
      best.devices = std::min(best.devices, label.devices);
      for (std::size_t p = 0; p < kMostGraphPipePools; ++p) {
        best.of_pool[p] = std::min(best.of_pool[p], label.of_pool[p]);
      }
      best.copies = std::min(best.copies, label.copies);
      best.allowed = std::max(best.allowed, label.allowed);
      best.out_s = std::min(best.out_s, label.out_s);
      best.back_s = std::min(best.back_s, label.back_s);
      best.round_s = std::min(best.round_s, label.round_s);
      for (std::size_t g = 0; g < groups_; ++g) {
        best.samples[g] = std::min(best.samples[g], label.samples[g]);
      }
    }
    return best;
  }

 private:
  struct Order {
    const GraphPipeRanking& ranking;
    bool operator()(const GraphPipeLabel& a, const GraphPipeLabel& b) const {
      return ranking.no_worse(a, b);
    }
  };

  std::size_t groups_;
  bool table_;
  std::size_t pools_;
  bool full_ = false;
};

}  // namespace braid
