#include "braid/explore/hysteresis.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/explore/system_search.h"

#include "explore/small_space.h"

namespace braid {
namespace {

using ::testing::ElementsAre;

std::vector<Architecture> of_areas(const std::vector<double>& areas_um2) {
  std::vector<Architecture> all;
  for (const double area : areas_um2) {
    all.emplace_back();
    all.back().area_um2 = area;
  }
  return all;
}

TEST(Hysteresis, BucketsAreOfFallingArea) {
  const std::vector<Architecture> all = of_areas({10'000, 35'000, 19'999, 39'999.9, 9'999.9});
  EXPECT_THAT(area_buckets(all, 10'000),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2), ElementsAre(4)));
}

TEST(Hysteresis, ConvergesWhereSoManyMaximaDoNotRise) {
  const std::vector<double> maxima = {3, 5, 4, 4, 1};
  EXPECT_TRUE(is_converged(maxima, 4));
  EXPECT_FALSE(is_converged(maxima, 5));
  EXPECT_FALSE(is_converged(maxima, 6));
  EXPECT_TRUE(is_converged(std::vector<double>{2}, 1));
}

// 9 is best of all and behind three buckets that get no better.
TEST(Hysteresis, StopsBeforeTheBest) {
  const std::vector<Architecture> all = of_areas({6e4, 5e4, 4e4, 3e4, 2e4, 2.5e4, 1e4});
  const std::vector<double> reached = {1, 4, 3, 3, 9, 2, 5};
  const auto value = [&](std::uint32_t i) { return reached[i]; };
  const AreaWalk three = walk_by_area(all, {.buckets = 3}, value);
  EXPECT_THAT(three.seen, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(three.best, 1U);
  EXPECT_EQ(three.value, 4);
  const AreaWalk four = walk_by_area(all, {.buckets = 4}, value);
  EXPECT_THAT(four.seen, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(four.best, 4U);
}

// The rule in the order of its words: go on until the last N are sorted.
TEST(Hysteresis, WalksAsFarAsTheRuleSays) {
  std::mt19937_64 dice(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> areas, reached;
    const std::size_t count = 1 + dice() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      areas.push_back(1e4 * static_cast<double>(count - i) + 1);
      reached.push_back(static_cast<double>(dice() % 6));
    }
    const std::size_t buckets = 1 + dice() % 5;
    std::size_t end = 0;
    for (std::size_t length = buckets; length <= count && end == 0; ++length) {
      bool falls = true;
      for (std::size_t i = length - buckets + 1; i < length; ++i) {
        falls = falls && reached[i - 1] >= reached[i];
      }
      if (falls) end = length;
    }
    if (end == 0) end = count;
    const AreaWalk walk = walk_by_area(of_areas(areas), {.buckets = buckets},
                                       [&](std::uint32_t i) { return reached[i]; });
    EXPECT_EQ(walk.seen.size(), end) << "round " << round;
    EXPECT_EQ(walk.value, *std::max_element(reached.begin(),
                                            reached.begin() + static_cast<std::ptrdiff_t>(end)))
        << "round " << round;
  }
}

TEST(Hysteresis, WithoutAnEndFindsWhatTheSearchFinds) {
  const Space space = space_from(R"(name: small
planner: phaze
search: throughput
degrees: {tp: 1, micro_batch: [2, 4]}
workloads: {gpt: {model: gpt3-125m, global_batch: 16, seq_len: 64}}
architectures: {area: 30 mm2, least_share: 0.7, tensor_cores: [2, 4], vector_cores: [2, 8], width: [64, 128], depth: [64, 64], global_buffer: [4 MiB, 8 MiB]}
networks: {slow: {cluster: phaze-tpuv4-1024}, fast: {cluster: phaze-tpuv4-1024-as-charged}}
devices: 4
)");
  const SystemSearchResult searched = search_systems(space, nullptr);
  const FoundSystem& best = searched.searches.front().best.front();
  const HysteresisFinding all = search_by_hysteresis(space, 0, {.buckets = 1'000'000});
  const std::vector<Architecture>& architectures = systems_of(space).architectures->all;
  EXPECT_EQ(all.walks, 8U);  // Two networks, two micro-batches, activations kept or not.
  EXPECT_EQ(all.architectures, architectures.size());
  EXPECT_EQ(all.value, best.value);
  EXPECT_EQ(all.system.place[kMethodAxis + 2], best.place[kMethodAxis + 2]);
  const HysteresisFinding one = search_by_hysteresis(space, 0, {.buckets = 1});
  EXPECT_EQ(one.architectures, area_buckets(architectures, 10'000).front().size());
  EXPECT_LE(one.value, best.value);
}

}  // namespace
}  // namespace braid
