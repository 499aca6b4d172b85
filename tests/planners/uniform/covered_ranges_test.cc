#include "braid/planners/uniform/covered_ranges.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

TEST(CoveredRanges, VisitsEachConfigurationOnce) {
  std::mt19937_64 random(61);
  for (int trial = 0; trial < 300; ++trial) {
    CoveredRanges covered;
    std::set<Configuration> met;
    for (int i = 0; i < 30; ++i) {
      ConfigurationRange range;
      range.configuration.tp = pick(random, 1, 2);
      range.configuration.zero = static_cast<Zero>(pick(random, 0, 3));
      range.configuration.vp = pick(random, 1, 40);
      range.most_vp = std::min(40, range.configuration.vp + pick(random, 0, 12));
      std::set<Configuration> expected;
      for (Configuration one = range.configuration; one.vp <= range.most_vp; ++one.vp) {
        if (!met.contains(one)) expected.insert(one);
      }
      std::set<Configuration> visited;
      std::int32_t last = 0;
      covered.add(range, [&](const ConfigurationRange& part) {
        ASSERT_GT(part.configuration.vp, last);
        for (Configuration one = part.configuration; one.vp <= part.most_vp; ++one.vp) {
          visited.insert(one);
        }
        last = part.most_vp;
      });
      ASSERT_EQ(visited, expected);
      met.insert(visited.begin(), visited.end());
    }
  }
}

}  // namespace
}  // namespace braid
