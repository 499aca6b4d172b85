#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/graphpipe/problem.h"

namespace braid {

/// Nodes that can be a stage, and what they cost.
struct GraphPipeShape {
  /// In one strategy (GraphPipeCost), of all nodes together.
  struct Bytes {
    double fixed = 0, gradient = 0, expert_gradient = 0, stash = 0, working = 0;
  };
  std::vector<std::int32_t> nodes;            ///< Of the first copy of everything.
  std::vector<double> forward_s, backward_s;  ///< [strategy · numbers of samples + index in them]
  std::vector<Bytes> bytes;                   ///< [strategy]
  double in_bytes = 0, out_bytes = 0;
};

/// A stage of whole branches of a block.
struct BranchGroup {
  std::vector<int> counts;  ///< Of each class.
  std::int32_t shape = -1;
};

/// A part of a block that a stage outside of it takes in: whole branches, or one end of a branch.
struct Absorption {
  std::vector<int> whole;   ///< [class]: branches taken in whole, the first ones; or empty.
  int partial = -1;         ///< Class of the branch, the first of it, of which …
  int first = 0, last = 0;  ///< … the items [first, last) are left in the block.
  std::vector<BranchGroup> remaining;  ///< Stages of those with whole branches.
};

/// A stage that ends or begins at a place in a series.
struct SeriesStage {
  int to = 0;           ///< Its other end.
  int absorption = -1;  ///< In the block before (after) it; -1: none of it.
  std::int32_t shape = -1;
};

struct SeriesItem {
  std::int32_t node = -1, block = -1;  ///< One of them.
};

/// Items one after the other. All branches of a kind share one series, with the nodes of the first.
struct GraphPipeSeries {
  std::vector<SeriesItem> items;
  std::vector<std::int32_t> nodes;  ///< All, in the order in which copies list theirs.
  /// [e]: stages of the items [to, e); those with a part of the block before, item to - 1.
  std::vector<std::vector<SeriesStage>> ending, closing;
  /// [p], for a block at p: stages of the items [to, p) and a part of the block.
  std::vector<std::vector<SeriesStage>> opening;
};

/// Branches side by side, by class of identical ones.
struct GraphPipeBlock {
  std::vector<std::int32_t> classes;  ///< Series.
  std::vector<int> counts;
  std::vector<std::vector<std::vector<std::int32_t>>> copies;  ///< [class][copy]: nodes.
  std::vector<Absorption> absorptions;
  std::vector<BranchGroup> groups;  ///< Of two branches or more.
};

/// The series-parallel form of a problem with every stage that is series-parallel:
/// * items of a series one after the other;
/// * whole branches of a block, any number of them, among them what such a stage leaves of one:
/// * items of a series right after or right before a block together with whole branches of it, or
///   with the end or beginning of one branch that adjoins them.
struct GraphPipeShapes {
  std::vector<GraphPipeShape> shapes;
  std::vector<GraphPipeSeries> series;  ///< The last one is the whole.
  std::vector<GraphPipeBlock> blocks;
  std::int64_t cuts = 0;  ///< OrderTree::cuts.
};

/// Throws Error when there would be more than a million shapes' nodes to go through.
GraphPipeShapes graphpipe_shapes(const GraphPipeProblem& problem);

}  // namespace braid
