#include "braid/planners/job/degrees.h"

#include <algorithm>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/planners/mixed/mixed_planner.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"

#include "planners/two_kinds.h"

namespace braid {
namespace {

using test::pick;

TEST(Degrees, SayTheSameInEveryWay) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int> list;
    for (int i = pick(random, 0, 5); i > 0; --i) list.push_back(pick(random, 1, 12));
    const int most = pick(random, 0, 2) == 0 ? Degrees::kNoLimit : pick(random, 1, 14);
    const Degrees degrees(list, most);
    std::vector<int> allowed;
    for (int value = 1; value <= 20; ++value) {
      const bool is_listed =
          list.empty() || std::find(list.begin(), list.end(), value) != list.end();
      EXPECT_EQ(degrees.allows(value), is_listed && value <= most);
      if (degrees.allows(value)) allowed.push_back(value);
    }
    std::vector<int> all(20);
    for (int value = 1; value <= 20; ++value) all[static_cast<std::size_t>(value) - 1] = value;
    EXPECT_EQ(degrees.among(all), allowed);
    std::vector<int> of_runs;
    int last_end = -1;
    for (const auto& [first, last] : degrees.runs(1, 20)) {
      EXPECT_GT(first, last_end + 1);
      last_end = last;
      for (int value = first; value <= last; ++value) of_runs.push_back(value);
    }
    EXPECT_EQ(of_runs, allowed);
    for (int bound = 0; bound <= 20; ++bound) {
      const auto above = std::upper_bound(allowed.begin(), allowed.end(), bound);
      EXPECT_EQ(degrees.at_most(bound), above == allowed.begin() ? 0 : *(above - 1));
      const auto from = std::lower_bound(allowed.begin(), allowed.end(), bound);
      if (from != allowed.end() && bound > 0) {
        EXPECT_EQ(degrees.at_least(bound), *from);
      }
    }
    EXPECT_EQ(degrees.is_any(), list.empty() && most == Degrees::kNoLimit);
    const bool one = most == 1 || (!list.empty() && allowed.size() == 1);
    EXPECT_EQ(degrees.single().has_value(), one && !allowed.empty());
  }
  EXPECT_EQ(Degrees({4, 2, 2}, 3).text(), "2, 4, at most 3");
  EXPECT_EQ(Degrees().text(), "");
}

constexpr Degrees SpaceOptions::*kEachDegree[] = {
    &SpaceOptions::tp, &SpaceOptions::pp, &SpaceOptions::dp,         &SpaceOptions::cp,
    &SpaceOptions::ep, &SpaceOptions::vp, &SpaceOptions::micro_batch};

using Planner = std::function<Outcome(const Job&, const System&, const SpaceOptions&)>;

/// The least time with each of the values alone; infinite: none has a plan. False in `proven` where
/// one is not.
double best_of_singles(const Planner& planner, const Job& job, const System& system,
                       SpaceOptions space, Degrees SpaceOptions::*degree, bool& proven) {
  constexpr int kMost = 16;
  const Degrees list = space.*degree;
  double least_s = kInfinity;
  for (const int value : list.among([&] {
         std::vector<int> all;
         for (int v = 1; v <= kMost; ++v) all.push_back(v);
         return all;
       }())) {
    space.*degree = value;
    try {
      const Outcome one = planner(job, system, space);
      proven = proven && one.status != Status::feasible;
      if (!one.candidates.empty()) least_s = std::min(least_s, one.objective);
    } catch (const Error&) {
      continue;  // The job does not allow the value at all.
    }
  }
  return least_s;
}

/// Lists and limits are the union of their values: the best of a list is the best of the best with
/// each value alone, and what is proven of one is proven of the other.
void expect_lists_are_unions(const Planner& planner, bool mixed, int trials) {
  std::mt19937_64 random(5);
  int found = 0, several = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 2, 6));
    const double memory_bytes = pick(random, 0, 2) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
    const System system = mixed ? test::two_kinds(random, 2, 2, memory_bytes)
                                : test::tiny_system(random, 1 << pick(random, 0, 3), memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = 1 << pick(random, 0, 4);
    SpaceOptions space;
    space.allow_offload = false;
    const std::size_t which = static_cast<std::size_t>(trial) % std::size(kEachDegree);
    Degrees SpaceOptions::*const degree = kEachDegree[which];
    if (mixed && degree == &SpaceOptions::vp) continue;
    // Another restriction beside it, now and then.
    if (pick(random, 0, 2) == 0 && degree != &SpaceOptions::pp) space.pp = Degrees({}, 2);
    std::vector<int> values;
    for (int value = 1; value <= 8; ++value) {
      if (pick(random, 0, 1) == 0) values.push_back(value);
    }
    if (values.empty()) values = {1};
    const bool limit = pick(random, 0, 3) == 0 && !mixed;
    space.*degree = limit ? Degrees({}, values.back()) : Degrees(values);
    Outcome list;
    try {
      list = planner(job, system, space);
    } catch (const Error&) {
      list.status = Status::infeasible;
    }
    bool proven = list.status != Status::feasible;
    const double single_s = best_of_singles(planner, job, system, space, degree, proven);
    const double list_s = list.candidates.empty() ? kInfinity : list.objective;
    if (single_s == kInfinity || list_s == kInfinity) {
      EXPECT_EQ(list_s, single_s) << trial << " degree " << which << " " << (space.*degree).text();
      continue;
    }
    ++found;
    several += values.size() > 1 ? 1 : 0;
    if (!proven) continue;
    // Where ways to deal layers out are left out, those that are found depend on where changes
    // start.
    const double share = list.assignments_bound_s > 0 ? 0.01 : 1e-9;
    EXPECT_NEAR(list_s, single_s, share * single_s)
        << trial << " degree " << which << " " << (space.*degree).text();
    if (list.status != Status::optimal) continue;
    EXPECT_LE(list.search_bound_s, list_s * (1 + 1e-9));
  }
  EXPECT_GT(found, trials / 3);
  EXPECT_GT(several, trials / 4);
}

TEST(Degrees, ListsAreTheUnionOfTheirValues) {
  expect_lists_are_unions(
      [](const Job& job, const System& system, const SpaceOptions& space) {
        return plan_braid(job, system, space, {}, {});
      },
      false, 420);
}

TEST(Degrees, ListsAreTheUnionOfTheirValuesForTheExhaustiveWalk) {
  expect_lists_are_unions(
      [](const Job& job, const System& system, const SpaceOptions& space) {
        return plan_exhaustively(job, system, space, {}, {});
      },
      false, 140);
}

TEST(Degrees, ListsAreTheUnionOfTheirValuesOnMixedClusters) {
  expect_lists_are_unions(
      [](const Job& job, const System& system, const SpaceOptions& space) {
        return plan_mixed(job, system, space, {}, {});
      },
      true, 70);
}

}  // namespace
}  // namespace braid
