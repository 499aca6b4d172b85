#include "braid/search/one_f_one_b_turns.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/schedule/pipeline_time.h"
#include "braid/search/partition.h"

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;

/// Whole times, so that sums are exact.
struct TurningPipeline {
  std::vector<double> forward_s, backward_s, handover_s;
  std::int64_t micro_batches = 1;

  std::int64_t depth(std::size_t stage) const {
    return static_cast<std::int64_t>(forward_s.size() - stage);
  }
  double time_s(std::size_t stage) const { return forward_s[stage] + backward_s[stage]; }
  double way_behind_s(std::size_t stage) const {
    double way_s = 0;
    for (std::size_t s = stage + 1; s < forward_s.size(); ++s) {
      way_s += time_s(s) + 2 * handover_s[s - 1];
    }
    return way_s;
  }
  double next_s(std::size_t stage) const {
    return stage + 1 < forward_s.size() ? time_s(stage + 1) + 2 * handover_s[stage] : 0;
  }
  double way_s() const { return time_s(0) + way_behind_s(0); }
  OneFOneBTurns turns(std::size_t stage) const {
    return OneFOneBTurns::of(depth(stage), micro_batches);
  }
  double excess_s(std::size_t stage) const {
    return turns(stage).excess_s(forward_s[stage], backward_s[stage], way_behind_s(stage),
                                 next_s(stage));
  }
  double chain_excess_s(std::size_t stage) const {
    return turns(stage).chain_excess_s(forward_s[stage], backward_s[stage], way_behind_s(stage));
  }
  double simulated_s(bool sends_block = false) const {
    Pipeline pipeline;
    pipeline.pp = static_cast<int>(forward_s.size());
    pipeline.num_micro_batches = micro_batches;
    pipeline.forward_s = forward_s;
    pipeline.backward_s = backward_s;
    pipeline.sync.resize(forward_s.size());
    for (std::int32_t s = 1; s < pipeline.pp; ++s) {
      pipeline.transfers.push_back({s - 1, s, handover_s[static_cast<std::size_t>(s) - 1]});
    }
    if (sends_block) hold_for_sends(pipeline);
    PipelineWorkspace workspace;
    return pipeline_time_s(pipeline, workspace);
  }
};

TurningPipeline turning_pipeline(std::mt19937_64& random) {
  TurningPipeline made;
  const int stages = pick(random, 1, 6);
  const bool handovers = pick(random, 0, 1) == 1;
  const bool alike = pick(random, 0, 3) == 0;
  for (int s = 0; s < stages; ++s) {
    const bool as_before = s > 0 && alike;
    made.forward_s.push_back(as_before ? made.forward_s[0] : pick(random, 0, 12));
    made.backward_s.push_back(as_before ? made.backward_s[0] : pick(random, 0, 20));
    if (s > 0) made.handover_s.push_back(handovers ? pick(random, 0, 9) : 0);
  }
  made.micro_batches = pick(random, 1, 20);
  return made;
}

TEST(OneFOneBTurns, NoPathIsLongerThanTheSimulatedTime) {
  std::mt19937_64 random(61);
  int reached = 0, paired = 0, stayed = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const TurningPipeline pipeline = turning_pipeline(random);
    const double more_s = pipeline.simulated_s() - pipeline.way_s();
    double chain_s = 0, longest_s = 0;
    for (std::size_t s = 0; s < pipeline.forward_s.size(); ++s) {
      ASSERT_LE(pipeline.excess_s(s), more_s) << trial << ' ' << s;
      chain_s = std::max(chain_s, pipeline.chain_excess_s(s));
      longest_s = std::max(longest_s, pipeline.excess_s(s));
      const OneFOneBTurns turns = pipeline.turns(s);
      const double staying_s =
          std::max(turns.staying_s(pipeline.forward_s[s], pipeline.backward_s[s]),
                   turns.staying_s(pipeline.backward_s[s], pipeline.forward_s[s]));
      const double pairing_s =
          turns.pairing_s(pipeline.time_s(s), pipeline.way_behind_s(s), pipeline.next_s(s));
      stayed += staying_s == more_s && pipeline.chain_excess_s(s) < more_s ? 1 : 0;
      paired += pairing_s == more_s && pipeline.chain_excess_s(s) < more_s ? 1 : 0;
    }
    ASSERT_EQ(one_f_one_b_path_s(pipeline.forward_s, pipeline.backward_s, pipeline.handover_s,
                                 pipeline.micro_batches),
              pipeline.way_s() + chain_s)
        << trial;
    ASSERT_LE(one_f_one_b_path_s(pipeline.forward_s, pipeline.backward_s,
                                 Handovers(pipeline.handover_s, true), pipeline.micro_batches),
              pipeline.simulated_s(true))
        << trial;
    reached += longest_s == more_s ? 1 : 0;
  }
  // Each path is at times the longest there is.
  EXPECT_GT(reached, 10000);
  EXPECT_GT(paired, 100);
  EXPECT_GT(stayed, 1000);
}

TEST(OneFOneBTurns, WeakerCasesAreNoLonger) {
  std::mt19937_64 random(62);
  for (int trial = 0; trial < 50000; ++trial) {
    const OneFOneBTurns turns = OneFOneBTurns::of(pick(random, 1, 7), pick(random, 1, 25));
    const double forward_s = pick(random, 0, 12), backward_s = pick(random, 0, 20);
    const double time_s = forward_s + backward_s;
    const double next_s = turns.pairs > 0 ? pick(random, 0, 40) : 0;
    const double below_s = next_s + pick(random, 0, 80);
    const double all_s = turns.excess_s(forward_s, backward_s, below_s, next_s);
    EXPECT_LE(turns.chain_excess_s(forward_s, backward_s, below_s), all_s) << trial;
    EXPECT_LE(turns.rising_excess_s(forward_s, backward_s, below_s), all_s) << trial;
    EXPECT_LE(turns.turning_excess_s(time_s, below_s, next_s), all_s) << trial;
    EXPECT_LE(turns.diving_s(time_s, below_s), turns.turning_excess_s(time_s, below_s, next_s));
    // The paths that end with the last way up are all where forward passes are the longer ones, and
    // pairs are never longer where the next stage is not known.
    EXPECT_EQ(turns.turning_excess_s(time_s, below_s, 0), turns.diving_s(time_s, below_s));
    if (forward_s < backward_s) continue;
    EXPECT_EQ(turns.rising_excess_s(forward_s, backward_s, below_s),
              turns.excess_s(forward_s, backward_s, below_s, 0));
  }
}

TEST(OneFOneBTurns, SomeStageHasTheLeastExcessOfAllSplits) {
  std::mt19937_64 random(63);
  int met = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const TurningPipeline pipeline = turning_pipeline(random);
    double all_s = 0, slowest_s = 0, share = 1, chain_s = 0;
    for (std::size_t s = 0; s < pipeline.forward_s.size(); ++s) {
      const double time_s = pipeline.time_s(s);
      all_s += time_s;
      slowest_s = std::max(slowest_s, time_s);
      if (time_s > 0) share = std::min(share, pipeline.backward_s[s] / time_s);
      chain_s = std::max(chain_s, pipeline.chain_excess_s(s));
    }
    const auto stages = static_cast<std::int64_t>(pipeline.forward_s.size());
    const double least_s = OneFOneBTurns::least_chain_excess_s(stages, pipeline.micro_batches,
                                                               all_s, slowest_s, share);
    ASSERT_LE(least_s, chain_s * (1 + 1e-12)) << trial;
    met += least_s == chain_s ? 1 : 0;
    for (std::size_t s = 0; s < pipeline.forward_s.size(); ++s) {
      // Any stage in front of others, of which the least is known.
      const std::int64_t deepest =
          std::min(pipeline.micro_batches, pipeline.depth(s) + pick(random, 0, 2));
      const double below_s = pipeline.way_behind_s(s) - pick(random, 0, 1);
      if (deepest < pipeline.depth(s) || below_s < 0) continue;
      ASSERT_LE(OneFOneBTurns::least_excess_s(deepest, pipeline.micro_batches, pipeline.time_s(s),
                                              share, below_s),
                pipeline.excess_s(s) * (1 + 1e-12))
          << trial << ' ' << s;
    }
  }
  EXPECT_GT(met, 4000);
}

}  // namespace
}  // namespace braid
