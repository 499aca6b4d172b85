#include "braid/chip/grown_sets.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

/// Members of a set, by the class under test.
std::set<std::size_t> members(const GrownSets& sets, std::uint32_t id, std::size_t size) {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < size; ++i) {
    if (sets.has(id, i)) found.insert(i);
  }
  return found;
}

TEST(GrownSetsTest, EqualSetsHaveOneNumber) {
  for (const std::size_t size : {1U, 6U, 12U, 64U, 65U, 130U}) {
    GrownSets sets(size);
    std::vector<std::set<std::size_t>> known = {{}};
    std::map<std::set<std::size_t>, std::uint32_t> numbers = {{{}, 0}};
    std::mt19937_64 dice(size);
    for (int i = 0; i < 5000; ++i) {
      const auto id = static_cast<std::uint32_t>(dice() % known.size());
      const std::size_t member = dice() % size;
      if (known[id].contains(member)) continue;
      std::set<std::size_t> larger = known[id];
      larger.insert(member);
      const auto [entry, fresh] =
          numbers.try_emplace(larger, static_cast<std::uint32_t>(known.size()));
      ASSERT_EQ(sets.with(id, member), entry->second);
      if (fresh) known.push_back(larger);
      ASSERT_EQ(sets.count(), known.size());
    }
    for (std::uint32_t id = 0; id < known.size(); ++id) {
      ASSERT_EQ(members(sets, id, size), known[id]);
      std::set<std::size_t> listed;
      sets.set(id).for_each([&](std::size_t i) { listed.insert(i); });
      ASSERT_EQ(listed, known[id]);
    }
  }
}

}  // namespace
}  // namespace braid
