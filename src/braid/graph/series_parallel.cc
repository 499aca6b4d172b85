#include "braid/graph/series_parallel.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "braid/base/index.h"

namespace braid {
namespace {

/// A node of the tree while it is built, with two children.
struct Pair {
  SpNode::Kind kind = SpNode::Kind::edge;
  std::int32_t source = 0;
  std::int32_t target = 0;
  std::int32_t first = -1;  ///< The edge's index in the graph for an edge.
  std::int32_t second = -1;
};

/// The edges at one side of a node: the exclusive or of their numbers is the edge if there is one.
struct Side {
  std::int32_t count = 0;
  std::int32_t exclusive_or = 0;
  void toggle(std::int32_t edge, int change) {
    count += change;
    exclusive_or ^= edge;
  }
};

class Reducer {
 public:
  Reducer(std::size_t nodes, std::int32_t source, std::int32_t sink)
      : in_(nodes), out_(nodes), source_(source), sink_(sink) {}

  void add(const Pair& pair) {
    const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.source)) << 32 |
                     static_cast<std::uint32_t>(pair.target);
    auto number = static_cast<std::int32_t>(pairs_.size());
    pairs_.push_back(pair);
    const auto [between, is_new] = edge_between_.try_emplace(key, number);
    if (!is_new) {
      remove(between->second);
      pairs_.push_back({.kind = SpNode::Kind::parallel,
                        .source = pair.source,
                        .target = pair.target,
                        .first = between->second,
                        .second = number});
      between->second = ++number;
    }
    out_[at(pair.source)].toggle(number, 1);
    in_[at(pair.target)].toggle(number, 1);
    ++live_;
    last_ = number;
  }

  /// Replaces series pairs until there is none. True when one edge from source to sink is left.
  bool reduce() {
    std::vector<std::int32_t> waiting;
    for (std::size_t node = in_.size(); node-- > 0;) {
      waiting.push_back(static_cast<std::int32_t>(node));
    }
    while (!waiting.empty()) {
      const std::int32_t node = waiting.back();
      waiting.pop_back();
      if (node == source_ || node == sink_) continue;
      if (in_[at(node)].count != 1 || out_[at(node)].count != 1) continue;
      const std::int32_t before = in_[at(node)].exclusive_or;
      const std::int32_t after = out_[at(node)].exclusive_or;
      if (before == after) continue;  // A loop.
      const Pair joined{.kind = SpNode::Kind::series,
                        .source = pairs_[at(before)].source,
                        .target = pairs_[at(after)].target,
                        .first = before,
                        .second = after};
      forget(before);
      forget(after);
      add(joined);
      waiting.push_back(joined.source);
      waiting.push_back(joined.target);
    }
    return live_ == 1 && pairs_[at(last_)].source == source_ && pairs_[at(last_)].target == sink_;
  }

  std::vector<std::int32_t> nodes_left() const {
    std::vector<std::int32_t> left;
    for (std::size_t node = 0; node < in_.size(); ++node) {
      if (in_[node].count + out_[node].count > 0) left.push_back(static_cast<std::int32_t>(node));
    }
    return left;
  }

  /// The tree with runs of equal kind merged into one node, children before parents.
  SpTree tree() const {
    SpTree tree;
    struct PathNode {
      SpNode node;
      std::vector<std::int32_t> to_do;  ///< Children, last first.
    };
    std::vector<PathNode> path;
    const auto open = [&](std::int32_t number) {
      const Pair& pair = pairs_[at(number)];
      PathNode opened{
          .node = {.kind = pair.kind, .source = pair.source, .target = pair.target, .children = {}},
          .to_do = {}};
      if (pair.kind == SpNode::Kind::edge) {
        opened.node.edge = pair.first;
      } else {
        opened.to_do = merged_children(number);
      }
      path.push_back(std::move(opened));
    };
    open(last_);
    while (true) {
      if (!path.back().to_do.empty()) {
        const std::int32_t child = path.back().to_do.back();
        path.back().to_do.pop_back();
        open(child);
        continue;
      }
      tree.push_back(std::move(path.back().node));
      path.pop_back();
      if (path.empty()) return tree;
      path.back().node.children.push_back(static_cast<std::int32_t>(tree.size() - 1));
    }
  }

 private:
  /// Takes an edge out of the sides of its ends.
  void remove(std::int32_t edge) {
    out_[at(pairs_[at(edge)].source)].toggle(edge, -1);
    in_[at(pairs_[at(edge)].target)].toggle(edge, -1);
    --live_;
  }
  /// As remove, for good.
  void forget(std::int32_t edge) {
    const Pair& pair = pairs_[at(edge)];
    edge_between_.erase(static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.source)) << 32 |
                        static_cast<std::uint32_t>(pair.target));
    remove(edge);
  }

  /// Children of a pair through all pairs of its kind below it, last first.
  std::vector<std::int32_t> merged_children(std::int32_t number) const {
    const SpNode::Kind kind = pairs_[at(number)].kind;
    std::vector<std::int32_t> children;
    std::vector<std::int32_t> waiting{number};
    while (!waiting.empty()) {
      const std::int32_t child = waiting.back();
      waiting.pop_back();
      const Pair& pair = pairs_[at(child)];
      if (pair.kind == kind) {
        waiting.push_back(pair.first);
        waiting.push_back(pair.second);
      } else {
        children.push_back(child);
      }
    }
    return children;
  }

  std::vector<Pair> pairs_;
  std::vector<Side> in_;
  std::vector<Side> out_;
  std::unordered_map<std::uint64_t, std::int32_t> edge_between_;
  std::int32_t source_;
  std::int32_t sink_;
  std::int32_t live_ = 0;
  std::int32_t last_ = -1;
};

}  // namespace

SeriesParallel series_parallel(std::size_t nodes,
                               std::span<const std::pair<std::int32_t, std::int32_t>> edges,
                               std::int32_t source, std::int32_t sink) {
  Reducer reducer(nodes, source, sink);
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    assert(at(edges[edge].first) < nodes && at(edges[edge].second) < nodes);
    reducer.add({.kind = SpNode::Kind::edge,
                 .source = edges[edge].first,
                 .target = edges[edge].second,
                 .first = static_cast<std::int32_t>(edge)});
  }
  if (!edges.empty() && reducer.reduce()) return {.tree = reducer.tree(), .offending = {}};
  return {.tree = std::nullopt, .offending = reducer.nodes_left()};
}

}  // namespace braid
