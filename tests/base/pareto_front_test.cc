#include "braid/base/pareto_front.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Label = std::pair<int, int>;

bool no_worse(const Label& a, const Label& b) { return a.first <= b.first && a.second <= b.second; }

TEST(ParetoFront, HoldsThoseThatNoneDominates) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Label> all, front;
    for (int i = 0; i < 30; ++i) {
      const Label label(static_cast<int>(random() % 12), static_cast<int>(random() % 12));
      all.push_back(label);
      if (!is_dominated(front, label, no_worse)) put_in_front(front, label, no_worse);
    }
    std::vector<Label> expected;  // Of equal ones the first.
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool beaten = false;
      for (std::size_t j = 0; j < all.size(); ++j) {
        beaten = beaten || (no_worse(all[j], all[i]) && (all[j] != all[i] || j < i));
      }
      if (!beaten) expected.push_back(all[i]);
    }
    ASSERT_EQ(front, expected) << round;
  }
}

TEST(ParetoFront, LeavesWhatIsBeforeItsBegin) {
  std::vector<Label> labels = {{5, 5}, {6, 6}, {1, 9}};
  put_in_front(labels, {2, 2}, no_worse, 1);
  EXPECT_EQ(labels, (std::vector<Label>{{5, 5}, {1, 9}, {2, 2}}));
}

}  // namespace
}  // namespace braid
