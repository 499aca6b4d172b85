#include "braid/graph/series_parallel.h"

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;

/// Checks a tree's form and that its leaves are exactly the edges.
void expect_tree_of(const SpTree& tree, const Edges& edges, std::int32_t source,
                    std::int32_t sink) {
  std::set<std::int32_t> used;
  std::set<std::int32_t> adopted;
  for (std::size_t at = 0; at < tree.size(); ++at) {
    const SpNode& node = tree[at];
    if (node.kind == SpNode::Kind::edge) {
      EXPECT_TRUE(node.children.empty());
      EXPECT_EQ(std::pair(node.source, node.target), edges[static_cast<std::size_t>(node.edge)]);
      EXPECT_TRUE(used.insert(node.edge).second);
      continue;
    }
    ASSERT_GE(node.children.size(), 2U);
    std::int32_t from = node.source;
    for (const std::int32_t child_id : node.children) {
      ASSERT_LT(static_cast<std::size_t>(child_id), at);
      EXPECT_TRUE(adopted.insert(child_id).second);
      const SpNode& child = tree[static_cast<std::size_t>(child_id)];
      EXPECT_NE(child.kind, node.kind);
      EXPECT_EQ(child.source, from);
      if (node.kind == SpNode::Kind::series) {
        from = child.target;
      } else {
        EXPECT_EQ(child.target, node.target);
      }
    }
    if (node.kind == SpNode::Kind::series) {
      EXPECT_EQ(from, node.target);
    }
  }
  EXPECT_EQ(used.size(), edges.size());
  EXPECT_EQ(adopted.size(), tree.size() - 1);
  EXPECT_EQ(tree.back().source, source);
  EXPECT_EQ(tree.back().target, sink);
}

TEST(SeriesParallel, RandomOnesAreRecognised) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    // Grown from one edge by doubling edges and by putting nodes on them.
    Edges edges{{0, 1}};
    std::int32_t nodes = 2;
    const auto steps = random() % 80;
    for (std::uint64_t step = 0; step < steps; ++step) {
      auto& edge = edges[random() % edges.size()];
      if (random() % 2 == 0) {
        const auto copy = edge;
        edges.push_back(copy);
      } else {
        const std::int32_t target = edge.second;
        edge.second = nodes;
        edges.emplace_back(nodes++, target);
      }
    }
    std::shuffle(edges.begin(), edges.end(), random);
    const SeriesParallel result = series_parallel(static_cast<std::size_t>(nodes), edges, 0, 1);
    ASSERT_TRUE(result.tree.has_value());
    EXPECT_TRUE(result.offending.empty());
    expect_tree_of(*result.tree, edges, 0, 1);
  }
}

TEST(SeriesParallel, WheatstoneBridgeIsRefusedAndNamed) {
  // 0 → 1 → (bridge 2, 3, 4, 5) → 6
  const Edges edges{{0, 1}, {1, 2}, {2, 3}, {2, 4}, {3, 4}, {3, 5}, {4, 5}, {5, 6}};
  const SeriesParallel result = series_parallel(7, edges, 0, 6);
  EXPECT_FALSE(result.tree.has_value());
  EXPECT_EQ(result.offending, (std::vector<std::int32_t>{0, 2, 3, 4, 5, 6}));
}

TEST(SeriesParallel, DegenerateGraphsAreRefused) {
  EXPECT_FALSE(series_parallel(2, Edges{}, 0, 1).tree.has_value());
  EXPECT_FALSE(series_parallel(3, Edges{{0, 1}, {0, 2}}, 0, 1).tree.has_value());
  EXPECT_FALSE(series_parallel(2, Edges{{1, 0}}, 0, 1).tree.has_value());
  EXPECT_FALSE(series_parallel(3, Edges{{0, 1}, {2, 2}}, 0, 1).tree.has_value());
  EXPECT_FALSE(series_parallel(4, Edges{{0, 1}, {2, 3}, {3, 2}}, 0, 1).tree.has_value());
}

/// Series-parallel by definition: tries every division of the edges.
class ByDefinition {
 public:
  explicit ByDefinition(const Edges& edges) : edges_(edges) {}

  bool holds(std::uint32_t mask, std::int32_t s, std::int32_t t) {
    if (std::popcount(mask) == 1) {
      return edges_[static_cast<std::size_t>(std::countr_zero(mask))] == std::pair(s, t);
    }
    const auto [known, is_new] = known_.try_emplace({mask, s, t}, false);
    if (!is_new) return known->second;
    bool found = false;
    for (std::uint32_t part = (mask - 1) & mask; part != 0 && !found; part = (part - 1) & mask) {
      const std::uint32_t rest = mask ^ part;
      const std::uint32_t shared = nodes_of(part) & nodes_of(rest);
      if (shared == ((1U << s) | (1U << t))) found = holds(part, s, t) && holds(rest, s, t);
      if (!found && std::popcount(shared) == 1) {
        const std::int32_t middle = std::countr_zero(shared);
        found = middle != s && middle != t && holds(part, s, middle) && holds(rest, middle, t);
      }
    }
    return known_[{mask, s, t}] = found;
  }

 private:
  std::uint32_t nodes_of(std::uint32_t mask) const {
    std::uint32_t nodes = 0;
    for (; mask != 0; mask &= mask - 1) {
      const auto& [u, v] = edges_[static_cast<std::size_t>(std::countr_zero(mask))];
      nodes |= (1U << u) | (1U << v);
    }
    return nodes;
  }
  const Edges& edges_;
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, bool> known_;
};

TEST(SeriesParallel, EqualsTheDefinitionOnSmallDags) {
  std::mt19937_64 random(5);
  int recognised = 0;
  for (int round = 0; round < 1500; ++round) {
    const auto nodes = static_cast<std::int32_t>(2 + random() % 4);
    Edges edges;
    for (std::int32_t v = 1; v < nodes; ++v) {
      for (std::int32_t u = 0; u < v; ++u) {
        if (random() % 100 < 55 && edges.size() < 8) edges.emplace_back(u, v);
      }
    }
    if (edges.empty()) continue;
    const auto all = (1U << edges.size()) - 1;
    const SeriesParallel result =
        series_parallel(static_cast<std::size_t>(nodes), edges, 0, nodes - 1);
    EXPECT_EQ(result.tree.has_value(), ByDefinition(edges).holds(all, 0, nodes - 1));
    if (result.tree) {
      expect_tree_of(*result.tree, edges, 0, nodes - 1);
      ++recognised;
    }
  }
  EXPECT_GT(recognised, 100);
}

}  // namespace
}  // namespace braid
