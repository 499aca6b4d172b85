#include "braid/graph/series_parallel_order.h"

#include <algorithm>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;
using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;
using Relation = std::vector<std::vector<bool>>;  // [before][after]

Relation order_of(std::size_t nodes, const Edges& edges) {
  Relation before(nodes, std::vector<bool>(nodes, false));
  for (const auto& [u, v] : edges)
    before[static_cast<std::size_t>(u)][static_cast<std::size_t>(v)] = true;
  for (std::size_t k = 0; k < nodes; ++k) {
    for (std::size_t i = 0; i < nodes; ++i) {
      for (std::size_t j = 0; j < nodes; ++j) {
        if (before[i][k] && before[k][j]) before[i][j] = true;
      }
    }
  }
  return before;
}

std::vector<std::int32_t> nodes_of(const OrderTree& tree, std::size_t index) {
  const OrderPart& part = tree.parts[index];
  if (part.kind == OrderPart::Kind::node) return {part.node};
  std::vector<std::int32_t> nodes;
  for (const std::int32_t child : part.children) {
    const auto inner = nodes_of(tree, static_cast<std::size_t>(child));
    nodes.insert(nodes.end(), inner.begin(), inner.end());
  }
  return nodes;
}

/// The order that the tree says.
Relation order_of(const OrderTree& tree, std::size_t nodes) {
  Relation before(nodes, std::vector<bool>(nodes, false));
  for (std::size_t p = 0; p < tree.parts.size(); ++p) {
    const OrderPart& part = tree.parts[p];
    if (part.kind != OrderPart::Kind::series) continue;
    std::vector<std::int32_t> earlier;
    for (const std::int32_t child : part.children) {
      const auto inner = nodes_of(tree, static_cast<std::size_t>(child));
      for (const std::int32_t u : earlier) {
        for (const std::int32_t v : inner) {
          before[static_cast<std::size_t>(u)][static_cast<std::size_t>(v)] = true;
        }
      }
      earlier.insert(earlier.end(), inner.begin(), inner.end());
    }
  }
  return before;
}

void expect_alternating(const OrderTree& tree, std::size_t nodes) {
  std::vector<std::int32_t> all = nodes_of(tree, tree.parts.size() - 1);
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), nodes);
  for (std::size_t v = 0; v < nodes; ++v) ASSERT_EQ(all[v], static_cast<std::int32_t>(v));
  for (std::size_t p = 0; p < tree.parts.size(); ++p) {
    const OrderPart& part = tree.parts[p];
    ASSERT_NE(part.children.size(), 1U);
    for (const std::int32_t child : part.children) {
      ASSERT_LT(child, static_cast<std::int32_t>(p));
      ASSERT_NE(tree.parts[static_cast<std::size_t>(child)].kind, part.kind);
    }
  }
}

/// Whether four nodes stand as a < c, b < c, b < d and otherwise apart: what no series-parallel
/// order has (Valdes, Tarjan & Lawler 1982).
bool has_n(const Relation& before) {
  const std::size_t n = before.size();
  const auto apart = [&](std::size_t u, std::size_t v) { return !before[u][v] && !before[v][u]; };
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t d = 0; d < n; ++d) {
          if (a != b && c != d && before[a][c] && before[b][c] && before[b][d] && apart(a, b) &&
              apart(c, d) && apart(a, d)) {
            return true;
          }
        }
      }
    }
  }
  return false;
}

TEST(SeriesParallelOrder, IsTheDagsOwnExactlyWithoutAnN) {
  std::mt19937_64 random(5);
  int with = 0, without = 0;
  for (int i = 0; i < 400; ++i) {
    const auto nodes = static_cast<std::size_t>(pick(random, 1, 9));
    Edges edges;
    const int density = pick(random, 1, 4);
    for (std::int32_t v = 1; v < static_cast<std::int32_t>(nodes); ++v) {
      for (std::int32_t u = 0; u < v; ++u) {
        if (pick(random, 0, 4) < density) edges.emplace_back(u, v);
      }
    }
    const Relation own = order_of(nodes, edges);
    const OrderTree tree = series_parallel_order(make_dag(nodes, edges));
    expect_alternating(tree, nodes);
    const Relation made = order_of(tree, nodes);
    for (std::size_t u = 0; u < nodes; ++u) {
      for (std::size_t v = 0; v < nodes; ++v) {
        ASSERT_TRUE(made[u][v] || !own[u][v]);
      }
    }
    ASSERT_EQ(tree.cuts == 0, !has_n(own)) << i;
    ASSERT_EQ(made == own, tree.cuts == 0) << i;
    (tree.cuts > 0 ? with : without) += 1;
  }
  EXPECT_GT(with, 50);
  EXPECT_GT(without, 50);
}

TEST(SeriesParallelOrder, OfBranchesThatMeetIsThoseBranches) {
  const OrderTree tree =
      series_parallel_order(make_dag(6, Edges{{0, 1}, {1, 5}, {2, 3}, {3, 5}, {4, 5}}));
  EXPECT_EQ(tree.cuts, 0);
  const OrderPart& root = tree.parts.back();
  ASSERT_EQ(root.kind, OrderPart::Kind::series);
  ASSERT_EQ(root.children.size(), 2U);
  const OrderPart& side = tree.parts[static_cast<std::size_t>(root.children[0])];
  EXPECT_EQ(side.kind, OrderPart::Kind::parallel);
  EXPECT_EQ(side.children.size(), 3U);
}

}  // namespace
}  // namespace braid
