#include "braid/graph/downsets.h"

#include <bit>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/layer_dag.h"

namespace braid {
namespace {

TEST(Bitset, BehavesLikeASet) {
  std::mt19937_64 random(7);
  for (const std::size_t size : {1U, 63U, 64U, 65U, 200U}) {
    for (int round = 0; round < 50; ++round) {
      Bitset a(size);
      Bitset b(size);
      std::set<std::size_t> in_a;
      std::set<std::size_t> in_b;
      for (std::size_t i = 0; i < size / 2 + 1; ++i) {
        const std::size_t x = random() % size;
        const std::size_t y = random() % size;
        a.set(x);
        in_a.insert(x);
        b.set(y);
        in_b.insert(y);
        a.reset(y);
        in_a.erase(y);
      }
      EXPECT_EQ(a.count(), in_a.size());
      EXPECT_EQ(a.any(), !in_a.empty());
      EXPECT_EQ((a | b).count() + (a & b).count(), in_a.size() + in_b.size());
      EXPECT_EQ((a - b).count(), a.count() - (a & b).count());
      EXPECT_EQ(a.intersects(b), (a & b).any());
      EXPECT_EQ(a.is_subset_of(b), (a - b).count() == 0);
      std::set<std::size_t> listed;
      a.for_each([&](std::size_t i) { listed.insert(i); });
      EXPECT_EQ(listed, in_a);
      Bitset again(size);
      for (const std::size_t i : in_a) again.set(i);
      EXPECT_EQ(again, a);
      EXPECT_EQ(again.hash(), a.hash());
    }
  }
}

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;

std::uint64_t mask_of(const Bitset& set) {
  std::uint64_t mask = 0;
  set.for_each([&](std::size_t i) { mask |= std::uint64_t{1} << i; });
  return mask;
}

std::set<std::uint64_t> masks_of(const std::vector<Bitset>& sets) {
  std::set<std::uint64_t> masks;
  for (const Bitset& set : sets) masks.insert(mask_of(set));
  EXPECT_EQ(masks.size(), sets.size()) << "a set is listed twice";
  return masks;
}

std::set<std::uint64_t> differences_of(const std::vector<Bitset>& sets) {
  std::set<std::uint64_t> masks;
  const auto pairs = downset_pairs(sets, sets.back().size(), 1U << 22);
  for (const DownsetPair& pair : pairs.value()) {
    masks.insert(mask_of(sets[pair.outer] - sets[pair.inner]));
  }
  return masks;
}

TEST(Downsets, EqualBruteForceOnRandomDags) {
  std::mt19937_64 random(42);
  for (int round = 0; round < 2200; ++round) {
    const std::size_t nodes = random() % (round < 2000 ? 8 : 11);
    const std::uint64_t density = random() % 100;
    Edges edges;
    std::vector<std::vector<bool>> reach(nodes, std::vector<bool>(nodes, false));
    for (std::size_t v = 0; v < nodes; ++v) {
      for (std::size_t u = 0; u < v; ++u) {
        if (random() % 100 >= density) continue;
        edges.emplace_back(static_cast<std::int32_t>(u), static_cast<std::int32_t>(v));
        reach[u][v] = true;
        for (std::size_t w = 0; w < u; ++w) reach[w][v] = reach[w][v] || reach[w][u];
      }
    }
    std::set<std::uint64_t> ideals;
    std::set<std::uint64_t> convex;
    for (std::uint64_t mask = 0; mask < std::uint64_t{1} << nodes; ++mask) {
      const auto in = [&](std::size_t i) { return (mask >> i & 1) != 0; };
      bool ideal = true;
      bool contiguous = mask != 0;
      for (std::size_t v = 0; v < nodes; ++v) {
        for (std::size_t u = 0; u < v; ++u) {
          if (!reach[u][v]) continue;
          if (in(v) && !in(u)) ideal = false;
          for (std::size_t w = u + 1; w < v; ++w) {
            if (in(u) && in(v) && !in(w) && reach[u][w] && reach[w][v]) contiguous = false;
          }
        }
      }
      if (ideal) ideals.insert(mask);
      if (contiguous) convex.insert(mask);
    }
    const Dag dag = make_dag(nodes, edges);
    const auto sets = downsets(dag, ideals.size());
    ASSERT_TRUE(sets.has_value());
    EXPECT_EQ(masks_of(*sets), ideals);
    EXPECT_EQ(downsets(dag, ideals.size() - 1), std::nullopt);
    EXPECT_EQ(differences_of(*sets), convex);
    if (round % 20 != 0) continue;

    const std::size_t most = 1 + random() % 4;
    std::size_t expected = 0;
    for (const std::uint64_t inner : ideals) {
      for (const std::uint64_t outer : ideals) {
        const auto size = static_cast<std::size_t>(std::popcount(outer & ~inner));
        if ((inner & ~outer) == 0 && size >= 1 && size <= most) ++expected;
      }
    }
    const auto pairs = downset_pairs(*sets, most, expected);
    ASSERT_TRUE(pairs.has_value());
    EXPECT_EQ(pairs->size(), expected);
    if (expected > 0) {
      EXPECT_EQ(downset_pairs(*sets, most, expected - 1), std::nullopt);
    }
  }
}

TEST(Downsets, KnownCounts) {
  Edges chain;
  for (std::int32_t i = 1; i < 100; ++i) chain.emplace_back(i - 1, i);
  EXPECT_EQ(downsets(make_dag(100, chain), 1000)->size(), 101U);
  EXPECT_EQ(downset_pairs(*downsets(make_dag(100, chain), 1000), 100, 10000)->size(), 5050U);
  EXPECT_EQ(downsets(make_dag(12, {}), 5000)->size(), 4096U);
  // 2^100 of them are refused without being made.
  EXPECT_EQ(downsets(make_dag(100, {}), 10000), std::nullopt);
  EXPECT_EQ(downsets(test::layer_dag(gpt({.layers = 9})), 100)->size(), 12U);
}

}  // namespace
}  // namespace braid
