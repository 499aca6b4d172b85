#include "braid/evaluate/steepest_steps.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

/// Sets of choices at random heights, some of which do not fit.
struct RandomWalk {
  struct State {
    Choices made = 0;
    std::int64_t height = 0;
    bool is_fit = true;
  };
  std::vector<std::int64_t> heights;
  std::vector<bool> is_fit;
  std::vector<bool> is_there;
  mutable int looked_at = 0;

  RandomWalk(std::mt19937& random, int choices, bool with_gaps) {
    for (Choices made = 0; made < choice_bit(static_cast<std::size_t>(choices)); ++made) {
      heights.push_back(static_cast<std::int64_t>(random() % 8));
      is_fit.push_back(random() % 3 != 0);
      is_there.push_back(!with_gaps || random() % 3 != 0);
    }
    is_there.front() = is_there.back() = true;
  }
  Choices all() const { return static_cast<Choices>(heights.size() - 1); }

  std::optional<State> after(Choices made) const {
    ++looked_at;
    if (!is_there[made]) return std::nullopt;
    return State{made, heights[made], is_fit[made]};
  }
  static bool is_better(const State& a, const State& b) { return a.height < b.height; }
  static bool may_be_next(Choices /*made*/, Choices /*next*/) { return true; }
  static std::int64_t rise(const State& a, const State& b) {
    return std::max<std::int64_t>(0, b.height - a.height);
  }
  static bool fits(const State& state) { return state.is_fit; }
};

/// The sum of the rises, and how many states do not fit.
std::pair<std::int64_t, int> cost_of(const RandomWalk& walk,
                                     const std::vector<Step<RandomWalk::State>>& steps) {
  std::pair<std::int64_t, int> cost;
  RandomWalk::State here = *walk.after(0);
  for (const auto& step : steps) {
    cost.first += RandomWalk::rise(here, step.after);
    cost.second += step.after.is_fit ? 0 : 1;
    here = step.after;
  }
  return cost;
}

TEST(LeastRises, IsTheLeastOfAllOrders) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const int choices = 1 + static_cast<int>(random() % 6);
    const RandomWalk walk(random, choices, /*with_gaps=*/false);
    std::vector<std::size_t> order(static_cast<std::size_t>(choices));
    std::iota(order.begin(), order.end(), 0U);
    std::pair<std::int64_t, int> least{std::numeric_limits<std::int64_t>::max(), 0};
    do {
      std::vector<Step<RandomWalk::State>> steps;
      Choices made = 0;
      for (const std::size_t choice : order) {
        made |= choice_bit(choice);
        steps.push_back({choice_bit(choice), *walk.after(made)});
      }
      least = std::min(least, cost_of(walk, steps));
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(cost_of(walk, LeastRises(walk).steps(walk.all())), least);
  }
}

TEST(LeastRises, EndsWhereAllIsChosenAndIsNoWorseThanTheSteepest) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomWalk walk(random, 1 + static_cast<int>(random() % 6), /*with_gaps=*/true);
    const auto steps = LeastRises(walk).steps(walk.all());
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back().after.made, walk.all());
    Choices made = 0;
    for (const auto& step : steps) {
      EXPECT_EQ(made & step.next, 0U);
      made |= step.next;
      EXPECT_EQ(step.after.made, made);
    }
    EXPECT_LE(cost_of(walk, steps), cost_of(walk, SteepestSteps(walk).steps(walk.all())));
  }
}

TEST(RememberingWalk, LooksAtEachStateOnce) {
  std::mt19937 random(5);
  const RandomWalk walk(random, 6, /*with_gaps=*/true);
  const RememberingWalk remembering(walk);
  const auto steps = LeastRises(remembering).steps(walk.all());
  EXPECT_LE(walk.looked_at, 64);
  EXPECT_EQ(cost_of(walk, steps), cost_of(walk, LeastRises(walk).steps(walk.all())));
}

}  // namespace
}  // namespace braid
