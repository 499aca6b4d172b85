#include "braid/dataflow/kernel_stages.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"

namespace braid {
namespace {

StageJob random_job(std::mt19937_64& dice, std::size_t kernels) {
  StageJob job;
  const auto seconds = [&dice](std::uint64_t most) {
    return 1e-6 * static_cast<double>(dice() % (most + 1));
  };
  const std::size_t first_backward = dice() % 3 == 0 ? dice() % (kernels + 1) : kernels;
  for (std::size_t i = 0; i < kernels; ++i) {
    job.kernels.push_back({seconds(20), seconds(20), seconds(12), i >= first_backward});
    for (std::size_t reads = 0; i > 0 && reads < dice() % 3; ++reads) {
      // Outputs that begin at a kernel, and some that end at one: what goes back.
      const auto from = static_cast<std::int32_t>(dice() % i), to = static_cast<std::int32_t>(i);
      const bool back = dice() % 4 == 0;
      const auto count = static_cast<std::int32_t>(kernels);
      job.tensors.push_back({from, to, back ? count + to : from});
    }
  }
  for (std::size_t output = 0; output < 2 * kernels; ++output) {
    job.message_s.push_back(seconds(15));
  }
  job.stages = static_cast<std::int64_t>(dice() % 4 + 1);
  job.overlap = static_cast<PartitionOverlap>(dice() % 3);
  job.share_messages = dice() % 2 == 0;
  return job;
}

double slowest_s(const StageJob& job, const std::vector<std::int32_t>& stage_of) {
  double slowest = 0;
  for (const StageTime& stage : stage_times(job, stage_of)) {
    slowest = std::max(slowest, stage.time_s);
  }
  return slowest;
}

bool is_valid(const StageJob& job, const std::vector<std::int32_t>& stage_of) {
  const StageHalves halves = stage_halves(job);
  for (std::size_t i = 0; i < job.kernels.size(); ++i) {
    const std::int64_t stage = stage_of[i];
    if (stage < 0 || stage >= job.stages) return false;
    if (job.kernels[i].backward ? stage < halves.backward_begin : stage >= halves.forward_end) {
      return false;
    }
  }
  return std::all_of(job.tensors.begin(), job.tensors.end(), [&](const StageTensor& tensor) {
    return stage_of[static_cast<std::size_t>(tensor.from)] <=
           stage_of[static_cast<std::size_t>(tensor.to)];
  });
}

double best_of_all_s(const StageJob& job) {
  double best = kInfinity;
  std::vector<std::int32_t> stage_of(job.kernels.size(), 0);
  for (bool more = true; more;) {
    if (is_valid(job, stage_of)) best = std::min(best, slowest_s(job, stage_of));
    more = false;
    for (std::size_t i = 0; i < stage_of.size() && !more; ++i) {
      more = ++stage_of[i] < job.stages;
      if (!more) stage_of[i] = 0;
    }
  }
  return best;
}

TEST(KernelStages, SameAsTryingAllShardings) {
  std::mt19937_64 dice(7);
  for (int round = 0; round < 1500; ++round) {
    const StageJob job = random_job(dice, dice() % 6 + 1);
    const KernelStages stages = find_stages(job);
    ASSERT_TRUE(is_valid(job, stages.stage_of)) << round;
    EXPECT_DOUBLE_EQ(slowest_s(job, stages.stage_of), stages.time_s);
    EXPECT_NEAR(stages.time_s, best_of_all_s(job), 1e-15) << round;
    EXPECT_TRUE(stages.optimal);
    EXPECT_LE(stages.lower_bound_s, stages.time_s);
  }
}

// What a budget leaves is a partition and a bound.
TEST(KernelStages, BoundsHoldWhereTheBudgetEnds) {
  std::mt19937_64 dice(8);
  int left = 0;
  for (int round = 0; round < 300; ++round) {
    const StageJob job = random_job(dice, dice() % 6 + 4);
    const double best_s = find_stages(job).time_s;
    const KernelStages stages = find_stages(job, static_cast<std::int64_t>(dice() % 20));
    ASSERT_TRUE(is_valid(job, stages.stage_of));
    EXPECT_GE(stages.time_s, best_s * (1 - 1e-9));
    EXPECT_LE(stages.lower_bound_s, best_s * (1 + 1e-9));
    left += stages.optimal ? 0 : 1;
  }
  EXPECT_GT(left, 20);
}

TEST(KernelStages, MoreStagesAreNeverSlower) {
  std::mt19937_64 dice(9);
  for (int round = 0; round < 60; ++round) {
    StageJob job = random_job(dice, 8);
    for (StageKernel& kernel : job.kernels) kernel.backward = false;
    double before_s = kInfinity;
    for (job.stages = 1; job.stages <= 5; ++job.stages) {
      const KernelStages stages = find_stages(job);
      EXPECT_TRUE(stages.optimal);
      EXPECT_LE(stages.time_s, before_s * (1 + 1e-9));
      before_s = stages.time_s;
    }
  }
}

// Three kernels in a row and a tensor past the middle one, by hand: equation 7 and matrix L.
TEST(KernelStages, TensorsAreHandedOnByEveryStageBetween) {
  StageJob job;
  job.kernels = {{4, 1, 2, false}, {1, 1, 1, false}, {2, 6, 0, false}};
  job.message_s = {3, 5, 9};
  job.tensors = {{0, 1, 0}, {1, 2, 1}, {0, 2, 0}};
  job.stages = 3;
  const std::int32_t apart[] = {0, 1, 2};
  std::vector<StageTime> times = stage_times(job, apart);
  EXPECT_EQ(times[0].message_s, 3);
  EXPECT_EQ(times[1].message_s, 8);
  EXPECT_EQ(times[2].message_s, 0);
  EXPECT_EQ(times[0].time_s, 4);
  EXPECT_EQ(times[1].time_s, 8);
  EXPECT_EQ(times[2].time_s, 6);
  job.share_messages = false;
  times = stage_times(job, apart);
  EXPECT_EQ(times[0].message_s, 6);
  EXPECT_EQ(times[0].time_s, 6);
  job.overlap = PartitionOverlap::none;
  EXPECT_EQ(stage_times(job, apart)[0].time_s, 13);
  job.overlap = PartitionOverlap::compute_memory;
  EXPECT_EQ(stage_times(job, apart)[2].time_s, 6);
}

TEST(KernelStages, LargeGraphs) {
  std::mt19937_64 dice(10);
  StageJob job;
  for (std::int32_t i = 0; i < 5000; ++i) {
    job.kernels.push_back({1e-6 * static_cast<double>(dice() % 100 + 1), 0, 0, false});
    job.message_s.push_back(1e-7);
    if (i > 0) job.tensors.push_back({i - 1, i, i - 1});
    if (i > 3 && i % 3 == 0) job.tensors.push_back({i - 3, i, i - 3});
  }
  job.stages = 128;
  const KernelStages stages = find_stages(job);
  ASSERT_TRUE(is_valid(job, stages.stage_of));
  EXPECT_LE(stages.time_s, 1.02 * stages.lower_bound_s);
}

}  // namespace
}  // namespace braid
