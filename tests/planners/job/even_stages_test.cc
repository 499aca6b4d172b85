#include "braid/planners/job/even_stages.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

/// The longest of the stages' paths, from the definition.
double longest_path_s(const InterleavedLoads& loads, const Ends& ends) {
  double longest_s = 0;
  for (int stage = 0; stage < loads.pp; ++stage) {
    double path_s = 0;
    std::int32_t begin = 0;
    for (std::size_t chunk = 0; chunk < ends.size(); begin = ends[chunk++]) {
      double chunk_s = 0;
      for (std::int32_t l = begin; l < ends[chunk]; ++l) chunk_s += loads.layer_s[at(l)];
      const auto of = static_cast<int>(chunk % at(loads.pp));
      if (of == stage) path_s += static_cast<double>(loads.num_micro_batches) * chunk_s;
      if (loads.fills_in_order && chunk < at(stage)) path_s += chunk_s;
    }
    longest_s = std::max(longest_s, path_s);
  }
  return longest_s;
}

void each_cut(std::int32_t layers, std::size_t chunks, Ends& ends,
              const std::function<void(const Ends&)>& visit) {
  if (ends.size() + 1 == chunks) {
    ends.push_back(layers);
    visit(ends);
    ends.pop_back();
    return;
  }
  const auto left = static_cast<std::int32_t>(chunks - ends.size());
  for (std::int32_t end = (ends.empty() ? 0 : ends.back()) + 1; end <= layers - left + 1; ++end) {
    ends.push_back(end);
    each_cut(layers, chunks, ends, visit);
    ends.pop_back();
  }
}

Ends even_ends(std::int32_t layers, std::int32_t chunks) {
  Ends ends;
  for (std::int32_t c = 1; c <= chunks; ++c) ends.push_back(layers * c / chunks);
  return ends;
}

TEST(EvenStages, MovesLayersToTheStageWithoutTheHead) {
  std::vector<double> layer_s(48, 1.0);
  layer_s.push_back(4);
  Ends ends = {12, 24, 36, 49};
  even_stages({layer_s, 2, 1000, true}, ends);
  EXPECT_EQ(ends, (Ends{14, 24, 36, 49}));
}

TEST(EvenStages, LeavesOneRoundAlone) {
  const std::vector<double> layer_s = {1, 1, 1, 9};
  Ends ends = {2, 4};
  even_stages({layer_s, 2, 8, true}, ends);
  EXPECT_EQ(ends, (Ends{2, 4}));
}

TEST(EvenStages, NeverLengthensTheLongestPathAndKeepsTheLastRound) {
  std::mt19937_64 random(3);
  int shorter = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const auto pp = static_cast<int>(test::pick(random, 2, 5));
    const auto vp = static_cast<int>(test::pick(random, 2, 4));
    const auto layers = static_cast<std::int32_t>(test::pick(random, pp * vp, 40));
    std::vector<double> layer_s;
    for (int l = 0; l < layers; ++l) {
      layer_s.push_back(static_cast<double>(test::pick(random, 1, 6)));
    }
    const InterleavedLoads loads{layer_s, pp, pp * test::pick(random, 1, 6),
                                 test::pick(random, 0, 1) == 0};
    const Ends before = even_ends(layers, pp * vp);
    Ends ends = before;
    even_stages(loads, ends);
    ASSERT_EQ(ends.size(), before.size());
    ASSERT_TRUE(std::equal(ends.end() - pp - 1, ends.end(), before.end() - pp - 1));
    for (std::size_t c = 0; c < ends.size(); ++c) ASSERT_GT(ends[c], c == 0 ? 0 : ends[c - 1]);
    const double now_s = longest_path_s(loads, ends);
    ASSERT_LE(now_s, longest_path_s(loads, before) * kAboveTolerance);
    if (now_s < longest_path_s(loads, before) * kBelowTolerance) ++shorter;
  }
  EXPECT_GT(shorter, 500);
}

// Blocks that are alike between an embedding and a head: what evening out reaches, held against
// every assignment whose last round is the same.
TEST(EvenStages, IsAsGoodAsAnyAssignmentOfAlikeBlocks) {
  std::mt19937_64 random(4);
  int compared = 0;
  double worst = 1;
  for (int trial = 0; trial < 300; ++trial) {
    const auto pp = static_cast<int>(test::pick(random, 2, 3));
    const int vp = 2;
    const auto layers = static_cast<std::int32_t>(test::pick(random, 2 * pp * vp, 14));
    std::vector<double> layer_s(at(layers), 4.0);
    layer_s.front() = static_cast<double>(test::pick(random, 0, 6));
    layer_s.back() = static_cast<double>(test::pick(random, 1, 14));
    const InterleavedLoads loads{layer_s, pp, pp * test::pick(random, 4, 16), true};
    Ends ends = even_ends(layers, pp * vp);
    const Ends last(ends.end() - pp - 1, ends.end());
    double least_s = kInfinity;
    Ends part;
    each_cut(layers, at(pp * vp), part, [&](const Ends& any) {
      if (!std::equal(last.begin(), last.end(), any.end() - pp - 1)) return;
      least_s = std::min(least_s, longest_path_s(loads, any));
    });
    even_stages(loads, ends);
    worst = std::max(worst, longest_path_s(loads, ends) / least_s);
    ++compared;
  }
  EXPECT_GT(compared, 100);
  EXPECT_LT(worst, 1.02);
}

}  // namespace
}  // namespace braid
