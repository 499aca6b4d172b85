#include "braid/search/downset_lattice.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(OrderLattice, AreDownsetsInTheirOrder) {
  std::mt19937_64 random(1);
  std::size_t fewer = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t nodes = 1 + random() % 9;
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    for (std::int32_t a = 0; a < static_cast<std::int32_t>(nodes); ++a) {
      for (std::int32_t b = a + 1; b < static_cast<std::int32_t>(nodes); ++b) {
        if (random() % 4 == 0) edges.emplace_back(a, b);
      }
    }
    const Dag dag = make_dag(nodes, edges);
    const std::vector<Bitset> all = *downsets(dag, 1000);
    const std::vector<Bitset> some = order_lattice(dag).sets;
    auto from = all.begin();
    for (const Bitset& set : some) {
      from = std::find(from, all.end(), set);
      ASSERT_NE(from, all.end()) << i;
      ++from;
    }
    EXPECT_EQ(some.front(), all.front());
    EXPECT_EQ(some.back(), all.back());
    // One node after another is a way through.
    EXPECT_GT(some.size(), nodes);
    EXPECT_LE(some.size(), 4 * nodes + 1);
    if (some.size() < all.size()) ++fewer;
  }
  EXPECT_GT(fewer, 50U);
}

TEST(OrderLattice, AreAllOfAChain) {
  const std::vector<std::pair<std::int32_t, std::int32_t>> edges = {{0, 1}, {1, 2}, {2, 3}};
  const Dag chain = make_dag(4, edges);
  EXPECT_EQ(order_lattice(chain).sets, downset_lattice(chain, 10)->sets);
}

TEST(DownsetLattice, SaysWhetherItHasAll) {
  const Dag free = make_dag(5, {});
  const auto all = downset_lattice(free, 32);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->size(), 32U);
  EXPECT_TRUE(all->complete);
  EXPECT_FALSE(downset_lattice(free, 31).has_value());
  EXPECT_FALSE(order_lattice(free).complete);
  const DownsetLattice uncut = uncut_lattice(5);
  EXPECT_FALSE(uncut.complete);
  EXPECT_EQ(uncut.sets, (std::vector<Bitset>{all->sets.front(), all->sets.back()}));
}

}  // namespace
}  // namespace braid
