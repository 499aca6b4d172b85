#include "braid/planners/uniform/easiest_plan.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/plan_json.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/planners/uniform/uniform_search.h"

#include "planners/every_plan.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// The ease of a uniform plan, by what its file says.
Ease stated_ease(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  Ease ease;
  ease.offload = p.offload_optimizer || p.offload_weights || p.offload_activations;
  for (const int degree : {p.tp, p.cp, p.ep, p.pp}) ease.dimensions += degree > 1 ? 1 : 0;
  std::vector<std::int32_t> counts(static_cast<std::size_t>(p.pp * p.vp));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      counts[c * plan.stages.size() + s] =
          static_cast<std::int32_t>(plan.stages[s].chunks[c].layers.size());
    }
  }
  // As many layers to each chunk, but perhaps one more to the ends, which hold embedding and head.
  bool even = true;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const bool is_end = c == 0 || c + 1 == counts.size();
    const std::int32_t inner = counts.size() > 2 ? counts[1] : std::min(counts[0], counts.back());
    even = even && counts[c] >= inner && counts[c] <= inner + (is_end ? 1 : 0);
  }
  const auto layers = static_cast<std::int32_t>(plan.profile.layers.size());
  const bool usual_order = p.order == Parallelism{}.order;
  ease.own_layout = !usual_order || !even ||
                    counts != layers_of_chunks(layers, static_cast<std::int32_t>(counts.size()));
  ease.extreme = p.vp > kMostUsualChunks ||
                 (p.micro_batch > 1 && p.micro_batch * plan.seq_len > kMostUsualTokens);
  return ease;
}

/// A tiny job; most have a network and a host that are so fast that plans differ little in time.
struct EasyCase {
  Graph graph;
  System system;
  Job job;
  BraidSpace space;
};

void fill(EasyCase& c, std::mt19937_64& random, int trial) {
  c.graph = test::tiny_graph(random, pick(random, 1, 4));
  // Micro-batches of more than two samples are extreme then.
  if (trial % 3 == 0) c.graph.seq_len = kMostUsualTokens / 2;
  const double memory_bytes = pick(random, 0, 3) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
  c.system = test::tiny_system(random, pick(random, 2, 4), memory_bytes);
  DeviceGroup& group = c.system.groups.front();
  if (trial % 4 != 0) {
    group.chip.efficiency.kernel_launch_s = 0;
    group.chip.host = Memory{"host", 1e12, 1e8 * pick(random, 1, 100)};
    std::vector<NetworkLevel*> levels = {&group.intra_node};
    for (NetworkLevel& level : c.system.levels) levels.push_back(&level);
    for (NetworkLevel* level : levels) {
      level->bytes_per_s = level->unit_bytes_per_s = 1e8 * pick(random, 1, 1000);
      level->latency_s = 0;
    }
  }
  c.job.graph = &c.graph;
  c.job.global_batch = pick(random, 1, 6);
  c.space.all_devices = trial % 5 == 0;
  if (trial % 2 == 0) {
    // A little less than what the fastest plan would need.
    Memory& memory = c.system.groups.front().chip.memory;
    memory.bytes = 1e12;
    const Outcome roomy = plan_braid(c.job, c.system, c.space, {}, {});
    const double share = pick(random, 50, 99) / 100.0;
    if (!roomy.candidates.empty()) {
      memory.bytes = roomy.candidates.front().metrics.peak_memory_bytes * share;
    }
  }
  c.space.preference = Preference::easiest;
}

// Held against every plan there is: none that is within the limits is easier, and no equally easy
// one that the search looks at is faster.
TEST(EasiestPlan, IsTheEasiestOfAllPlansWithinTheLimits) {
  std::mt19937_64 random(11);
  int offloads_kept = 0, proven = 0;
  for (int trial = 0; trial < 120; ++trial) {
    EasyCase c;
    fill(c, random, trial);
    const Outcome outcome = plan_braid(c.job, c.system, c.space, {}, {});
    if (outcome.candidates.empty()) continue;
    const std::string what = "trial " + std::to_string(trial);
    ASSERT_TRUE(outcome.recommendation) << what;
    const Recommendation& why = *outcome.recommendation;
    const Plan& plan = outcome.candidates.front().plan;
    const double time_s = outcome.candidates.front().metrics.iteration_time_s;
    const double fastest_s = fastest_of(outcome).metrics.iteration_time_s;
    EXPECT_EQ(stated_ease(plan), why.ease) << what;
    EXPECT_EQ(stated_ease(fastest_of(outcome).plan), why.ease_of_fastest) << what;
    double least_without_s = kInfinity, any_without_s = kInfinity;
    std::vector<TimedEase> every;
    test::each_plan(c.job, c.system, c.space, [&](const test::EveryPlan& one) {
      const TimedEase timed{one.time_s, stated_ease(one.plan)};
      if (!timed.ease.offload) any_without_s = std::min(any_without_s, one.time_s);
      if (!one.tried) return;
      if (!timed.ease.offload) least_without_s = std::min(least_without_s, one.time_s);
      every.push_back(timed);
    });
    ASSERT_EQ(why.without_offload_s.has_value(), why.ease_of_fastest.offload) << what;
    if (why.without_offload_s) {
      ASSERT_EQ(*why.without_offload_s == kInfinity, least_without_s == kInfinity) << what;
      if (least_without_s < kInfinity) {
        EXPECT_GE(*why.without_offload_s, any_without_s * (1 - 1e-9)) << what;
      }
    }
    const double without_s = why.without_offload_s.value_or(fastest_s);
    const EaseLimits limits = ease_limits(fastest_s, without_s);
    EXPECT_LE(time_s, limits.most_s * (1 + 1e-9)) << what;
    EXPECT_TRUE(!why.ease.offload || limits.offload) << what;
    offloads_kept += why.ease.offload ? 1 : 0;
    // Where a configuration has too many assignments to go through, what is proven is less.
    if (outcome.status != Status::optimal || !why.of_all) continue;
    ++proven;
    if (least_without_s < kInfinity) {
      EXPECT_LE(without_s, least_without_s * (1 + 1e-9)) << what;
    }
    for (const TimedEase& one : every) {
      if (one.time_s > limits.most_s * (1 - 1e-9) || (one.ease.offload && !limits.offload))
        continue;
      EXPECT_LE(why.ease, one.ease) << what << ": " << one.time_s << " s of " << time_s;
      if (one.ease == why.ease) {
        EXPECT_LE(time_s, one.time_s * (1 + 1e-9)) << what;
      }
    }
  }
  EXPECT_GT(offloads_kept, 10);
  EXPECT_GT(proven, 80);
}

/// As ease_limits(), but with so much room that many tiny plans are within it.
EaseLimits wide_limits(double fastest_s, double without_offload_s) {
  const double most_s = 2.5 * fastest_s;
  if (without_offload_s > most_s) return {true, 1.6 * fastest_s};
  return {false, std::min(1.6 * without_offload_s, most_s)};
}

// With wider limits, so that many plans are within them, every step of the search is needed.
TEST(EasiestPlan, IsTheEasiestWithinWiderLimits) {
  std::mt19937_64 random(14);
  int chosen = 0, offloads_left = 0, proven = 0;
  std::array<int, 3> eased{};  // In dimensions, layout, extremes.
  for (int trial = 0; trial < 200; ++trial) {
    EasyCase c;
    fill(c, random, trial);
    if (trial % 3 != 0 && c.graph.layers.size() > 1) c.space.pp = 2;  // Layers may lie anywhere.
    SearchGround ground(c.job, c.system);
    const Budget endless;
    const Progress none;
    UniformSearch first(ground, c.space, endless, none);
    first.find();
    if (first.best().found().empty()) continue;
    const PartSearch search = [&](const SpacePart& part, double below_s) -> PartResult {
      UniformSearch in_part(ground, part, endless, none, UniformSearch::Aim::best, below_s);
      in_part.find();
      const std::vector<FoundPlan>& found = in_part.best().found();
      PartResult result{std::nullopt, is_proven(in_part.bound_s(), in_part.best().best_s())};
      if (!found.empty()) result.fastest = found.front();
      return result;
    };
    const FoundPlan fastest = first.best().found().front();
    const EasiestPlan easiest = easiest_plan(ground.chain, fastest, c.space, search, wide_limits);
    if (!easiest.proven || !is_proven(first.bound_s(), fastest.time_s)) continue;
    ++proven;
    const Ease ease = ease_of(ground.chain, easiest.plan);
    const Ease of_fastest = ease_of(ground.chain, fastest);
    const EaseLimits limits =
        wide_limits(fastest.time_s, easiest.without_offload_s.value_or(fastest.time_s));
    const std::string what = "trial " + std::to_string(trial);
    EXPECT_LE(easiest.plan.time_s, limits.most_s * (1 + 1e-9)) << what;
    EXPECT_TRUE(limits.offload || !ease.offload) << what;
    chosen += ease != of_fastest ? 1 : 0;
    offloads_left += of_fastest.offload && !ease.offload ? 1 : 0;
    if (ease.offload == of_fastest.offload) {
      eased[0] += ease.dimensions < of_fastest.dimensions ? 1 : 0;
      eased[1] += ease.own_layout < of_fastest.own_layout ? 1 : 0;
      eased[2] += ease.extreme < of_fastest.extreme ? 1 : 0;
    }
    test::each_plan(c.job, c.system, c.space, [&](const test::EveryPlan& one) {
      const Ease other = stated_ease(one.plan);
      if (!one.tried || one.time_s > limits.most_s * (1 - 1e-9)) return;
      if (other.offload && !limits.offload) return;
      EXPECT_LE(ease, other) << what << ": " << one.time_s << " s of " << easiest.plan.time_s;
      if (other == ease) {
        EXPECT_LE(easiest.plan.time_s, one.time_s * (1 + 1e-9)) << what;
      }
    });
  }
  EXPECT_GT(proven, 80);
  EXPECT_GT(chosen, 20);
  EXPECT_GT(offloads_left, 3);
  for (const int times : eased)
    EXPECT_GT(times, 3) << eased[0] << ' ' << eased[1] << ' ' << eased[2];
}

// The fastest plan is the one that is found when easy ones are not preferred, bit for bit, and the
// proof is the same.
TEST(EasiestPlan, LeavesTheFastestAsItIs) {
  std::mt19937_64 random(12);
  for (int trial = 0; trial < 120; ++trial) {
    EasyCase c;
    fill(c, random, trial);
    c.space.top = pick(random, 1, 4);
    const Outcome easiest = plan_braid(c.job, c.system, c.space, {}, {});
    c.space.preference = Preference::fastest;
    const Outcome fastest = plan_braid(c.job, c.system, c.space, {}, {});
    ASSERT_EQ(easiest.candidates.size(), fastest.candidates.size()) << trial;
    EXPECT_FALSE(fastest.recommendation);
    EXPECT_EQ(easiest.status, fastest.status);
    EXPECT_EQ(easiest.objective, fastest.objective);
    EXPECT_EQ(easiest.search_bound_s, fastest.search_bound_s);
    EXPECT_EQ(easiest.work, fastest.work);
    EXPECT_EQ(easiest.evaluated, fastest.evaluated);
    if (fastest.candidates.empty()) continue;
    EXPECT_EQ(to_text(to_json(fastest_of(easiest).plan)),
              to_text(to_json(fastest.candidates.front().plan)))
        << trial;
    // Behind the plan come the fastest and the best of other classes, in order of their times.
    const bool is_chosen = easiest.recommendation->fastest.has_value();
    for (std::size_t i = 1; i < easiest.candidates.size(); ++i) {
      const double before_s = easiest.candidates[i - 1].metrics.iteration_time_s;
      if (i > 1) {
        EXPECT_LE(before_s, easiest.candidates[i].metrics.iteration_time_s) << trial;
      }
    }
    if (is_chosen && easiest.candidates.size() > 1) {
      EXPECT_EQ(easiest.candidates[1].metrics.iteration_time_s, fastest.objective) << trial;
    }
  }
}

TEST(EasiestPlan, LimitsPartsOfTheSpace) {
  SpaceOptions space;
  space.vp = Degrees({1, 2, 16}, 12);
  const SpacePart part = space_within({false, 2, false, false}, 8192, space);
  EXPECT_FALSE(part.allow_offload);
  EXPECT_EQ(part.most_dimensions, 2);
  EXPECT_FALSE(part.can.uneven_stages || part.can.data_outermost || part.can.auto_sharding);
  EXPECT_TRUE(part.vp.allows(2));
  EXPECT_FALSE(part.vp.allows(12));
  EXPECT_TRUE(part.micro_batch.allows(8));
  EXPECT_FALSE(part.micro_batch.allows(16));
  const SpacePart all = space_within({true, kPlanDimensions, true, true}, 8192, space);
  EXPECT_EQ(all.vp, space.vp);
  EXPECT_TRUE(all.can == space.can && all.allow_offload && all.micro_batch.is_any());
}

// From where the search of all stopped it goes on to what a search of the part alone finds.
TEST(EasiestPlan, FindsTheFastestWithoutOffloadAsASearchOfItsOwn) {
  std::mt19937_64 random(29);
  const Budget endless;
  const Progress none;
  int offloads = 0;
  for (int trial = 0; trial < 300; ++trial) {
    EasyCase c;
    fill(c, random, trial);
    if (!c.system.groups.front().chip.host) continue;
    SearchGround ground(c.job, c.system);
    ground.keeps_bounds = ground.keeps_aside = true;
    UniformSearch search(ground, c.space, endless, none);
    search.find();
    ground.keeps_bounds = false;
    if (search.best().found().empty()) continue;
    const bool offloaded = ease_of(ground.chain, search.best().found().front()).offload;
    offloads += offloaded ? 1 : 0;
    search.go_on_without_offload();
    SpaceOptions part = c.space;
    part.allow_offload = false;
    part.top = 1;
    SearchGround own_ground(c.job, c.system);
    UniformSearch own(own_ground, part, endless, none);
    own.find();
    const std::vector<FoundPlan>& found = search.best().found();
    ASSERT_EQ(found.size(), own.best().found().size()) << trial;
    EXPECT_EQ(is_proven(search.bound_s(), search.best().best_s()),
              is_proven(own.bound_s(), own.best().best_s()))
        << trial;
    if (found.empty()) continue;
    EXPECT_EQ(found.front().time_s, own.best().found().front().time_s) << trial;
    EXPECT_EQ(found.front().configuration, own.best().found().front().configuration) << trial;
  }
  EXPECT_GT(offloads, 10);
}

// A search that stops for its budget says nothing of what it did not see.
TEST(EasiestPlan, KeepsToTheBudget) {
  std::mt19937_64 random(13);
  int stopped = 0;
  for (int trial = 0; trial < 150; ++trial) {
    EasyCase c;
    fill(c, random, trial);
    const Outcome outcome = plan_braid(c.job, c.system, c.space, Budget{3}, {});
    if (outcome.candidates.empty()) continue;
    const Recommendation& why = *outcome.recommendation;
    if (outcome.status == Status::optimal) continue;
    ++stopped;
    if (why.ease_of_fastest.offload) {
      EXPECT_NE(why.without_offload_s, kInfinity) << trial;
    }
  }
  EXPECT_GT(stopped, 5);
}

}  // namespace
}  // namespace braid
