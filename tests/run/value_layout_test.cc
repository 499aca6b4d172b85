#include "braid/run/value_layout.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/index.h"

#include "plan/heterogeneous_plan.h"

namespace braid::test {
namespace {

/// The elements that a rank holds, in the order in which it has them.
std::vector<std::int64_t> elements_of(const ValueLayout& layout, const Shape& shape,
                                      std::size_t rank) {
  const std::span<const std::int64_t> sizes = shape;
  const std::int64_t block = element_count(sizes.subspan(at(layout.axis))) / layout.repeats;
  std::vector<std::int64_t> elements;
  for (std::int64_t b = 0; b < element_count(sizes) / block; ++b) {
    for (const Interval& each : layout.held[rank]) {
      for (std::int64_t i = each.first * block / layout.units; i < each.last * block / layout.units;
           ++i) {
        elements.push_back(b * block + i);
      }
    }
  }
  return elements;
}

TEST(ValueLayout, ReshapingKeepsTheElementsOfEachRank) {
  // [tokens × heads · width] → [1 × tokens × heads × width]; [heads × tokens × width] →
  // [keys × heads per key · tokens × width] and back.
  const ValueLayout columns = even_layout(1, 24, 4);
  const Shape flat{5, 24}, apart{1, 5, 4, 6};
  const auto heads = reshaped_layout(columns, flat, apart);
  ASSERT_TRUE(heads);
  EXPECT_EQ(heads->axis, 2);
  const ValueLayout by_head = even_layout(0, 4, 4);
  const Shape stack{4, 5, 6}, stacked{2, 10, 6};
  const auto shared = reshaped_layout(by_head, stack, stacked);
  ASSERT_TRUE(shared);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(elements_of(columns, flat, r), elements_of(*heads, apart, r));
    EXPECT_EQ(held_shape(*heads, apart, r), (Shape{1, 5, 1, 6}));
    EXPECT_EQ(elements_of(by_head, stack, r), elements_of(*shared, stacked, r));
    // Half of the rows of one head of keys.
    EXPECT_EQ(held_shape(*shared, stacked, r), (Shape{1, 5, 6}));
    EXPECT_FALSE(held_indices(*shared, stacked, r));
  }
  EXPECT_EQ(reshaped_layout(*shared, stacked, stack), by_head);
  EXPECT_FALSE(reshaped_layout(columns, flat, {24, 5}));
}

TEST(ValueLayout, TokensOfHeadsThatShareKeysRepeat) {
  // [heads × tokens × width] by tokens → [keys × heads per key · tokens × width] and back.
  const ValueLayout by_token = even_layout(1, 6, 3);
  const Shape stack{4, 6, 5}, stacked{2, 12, 5};
  const auto shared = reshaped_layout(by_token, stack, stacked);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->axis, 1);
  EXPECT_EQ(shared->repeats, 2);
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(elements_of(by_token, stack, r), elements_of(*shared, stacked, r));
    EXPECT_EQ(held_shape(*shared, stacked, r), (Shape{2, 4, 5}));
  }
  EXPECT_EQ(reshaped_layout(*shared, stacked, stack), by_token);
  EXPECT_FALSE(held_indices(*shared, stacked, 0));
  EXPECT_FALSE(sliced_layout(*shared, 12, {0, 4}));
}

TEST(ValueLayout, SlicesHoldWhatLiesWithinThem) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t size = draw(random, 2, 20);
    ValueLayout layout{1, size, 1, {}};
    for (int r = 0; r < 3; ++r) {
      layout.held.emplace_back();
      for (std::int64_t i = 0; i < size; ++i) {
        if (draw(random, 0, 1) == 0) layout.held.back().push_back({i, i + 1});
      }
    }
    const std::int64_t first = draw(random, 0, static_cast<int>(size) - 1);
    const std::int64_t last = draw(random, static_cast<int>(first) + 1, static_cast<int>(size));
    const auto sliced = sliced_layout(layout, size, {first, last});
    ASSERT_TRUE(sliced);
    for (std::size_t r = 0; r < 3; ++r) {
      std::vector<std::int64_t> expected;
      for (const std::int64_t each : elements_of(layout, {1, size}, r)) {
        if (each >= first && each < last) expected.push_back(each - first);
      }
      EXPECT_EQ(elements_of(*sliced, {1, last - first}, r), expected);
    }
  }
}

TEST(ValueLayout, EvenPartsTileTheDimension) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (std::int64_t size = 1; size <= 12; ++size) {
      const ValueLayout layout = even_layout(0, size, ranks);
      std::int64_t next = 0;
      for (const std::vector<Interval>& held : layout.held) {
        for (const Interval& each : held) {
          EXPECT_EQ(each.first, next);
          next = each.last;
        }
      }
      EXPECT_EQ(next, size);
      EXPECT_EQ(is_even(layout), size % ranks == 0);
    }
  }
}

}  // namespace
}  // namespace braid::test
