#include "braid/trust/interval.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/trust/likeness.h"

namespace braid {
namespace {

JobTraits usual_job() {
  JobTraits job;
  job.chip = "h100-sxm";
  job.trainer = "megatron";
  job.format = "bf16";
  job.devices = 64;
  job.parameters = 7e9;
  job.tokens = 4e6;
  job.micro_batch_tokens = 8192;
  job.tp = 4;
  job.dp = 16;
  job.mfu = 0.4;
  return job;
}

RunError run_of(const char* source, const JobTraits& traits, double error, double left_out) {
  RunError run;
  run.source = source;
  run.model = "model";
  run.traits = traits;
  run.error = error;
  run.left_out = left_out;
  return run;
}

/// Sources with an offset each, on jobs that are not quite alike. One figure, the mean offset, is
/// fitted to all sources, or to all but one.
Evidence drawn_evidence(unsigned seed, int sources, int runs) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> offsets;
  double sum = 0;
  for (int s = 0; s < sources; ++s) {
    offsets.push_back(0.1 * normal(random));
    sum += offsets.back();
  }
  Evidence evidence;
  for (int s = 0; s < sources; ++s) {
    const double offset = offsets[static_cast<std::size_t>(s)];
    for (int r = 0; r < runs; ++r) {
      JobTraits job = usual_job();
      job.devices = std::exp2(std::uniform_int_distribution<int>(3, 8)(random));
      job.parameters *= std::exp2(normal(random));
      const double own = offset + 0.05 * normal(random);
      evidence.push_back(run_of(std::to_string(s).c_str(), job, own - sum / sources,
                                own - (sum - offset) / (sources - 1)));
    }
  }
  return evidence;
}

TEST(Likeness, IsADistance) {
  const JobTraits a = usual_job();
  JobTraits b = a;
  EXPECT_EQ(distance_of(a, a), 0);
  b.devices = 128;
  b.chip = "h100-pcie";
  EXPECT_GT(distance_of(a, b), 0);
  EXPECT_EQ(distance_of(a, b), distance_of(b, a));
  EXPECT_EQ(kind_distance(a, b), 0.5);
  b.chip = "tpu-v5e";
  const double other_chip = distance_of(a, b);
  b.trainer = "maxtext";
  EXPECT_GT(distance_of(a, b), other_chip);
}

TEST(Likeness, VariantsOfAChipHaveItsModel) {
  const auto distance = [](const char* a, const char* b) {
    JobTraits one = usual_job(), other = one;
    one.chip = a;
    other.chip = b;
    return kind_distance(one, other);
  };
  EXPECT_EQ(distance("a100-sxm-40gb", "a100-sxm-80gb"), 0.5);
  EXPECT_EQ(distance("rtx-2080", "rtx-2080-ti"), 0.5);
  for (const auto& [a, b] : {std::pair("tpu-v5e", "tpu-v5p"), std::pair("rtx-2080", "rtx-3090"),
                             std::pair("b200", "gb200"), std::pair("titan-rtx", "rtx-2080"),
                             std::pair("sn10", "sn30")}) {
    EXPECT_EQ(distance(a, b), 2) << a << " and " << b;
  }
}

TEST(TimeInterval, NothingIsKnownWithoutEvidence) {
  EXPECT_FALSE(time_interval(usual_job(), {}).has_value());
}

TEST(TimeInterval, IsTheQuantileOfManyRunsJustAlike) {
  Evidence runs;
  for (int i = 1; i <= 1000; ++i) {
    runs.push_back(run_of("one", usual_job(), i % 2 == 0 ? i * 1e-3 : -i * 1e-3, 0.5));
  }
  const auto interval = time_interval(usual_job(), runs);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(std::log(interval->high), 0.8, 0.002);
  EXPECT_NEAR(interval->low * interval->high, 1, 1e-12);
}

TEST(TimeInterval, ReachesTheLeftOutErrorsFarFromAllRuns) {
  Evidence runs;
  for (int i = 0; i < 50; ++i) runs.push_back(run_of("one", usual_job(), 0.01, 0.3));
  for (int i = 0; i < 50; ++i) runs.push_back(run_of("two", usual_job(), 0.01, 0.3));
  JobTraits far = usual_job();
  EXPECT_NEAR(std::log(time_interval(far, runs)->high), 0.01, 1e-9);
  far.chip = "tpu-v7";
  far.trainer = "maxtext";
  far.devices = 4096;
  EXPECT_NEAR(std::log(time_interval(far, runs)->high), 0.3, 1e-9);
}

TEST(TimeInterval, OneSourceDoesNotTellOfOthersWhatItTellsOfItself) {
  Evidence runs;
  JobTraits other = usual_job();
  other.chip = "a100-sxm-80gb";
  for (int i = 0; i < 100; ++i) {
    runs.push_back(run_of("one", other, 0.01, i < 95 ? 0.05 : 0.4));
  }
  // Half of what counts is the source that the job would be, as far off as the worst run.
  JobTraits far = usual_job();
  far.devices = 4096;
  EXPECT_NEAR(std::log(time_interval(far, runs)->high), 0.4, 1e-9);
}

TEST(TimeInterval, HoldsFourFifthsOfRunsLeftOut) {
  int inside = 0, inside_left_out = 0, count = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Evidence runs = drawn_evidence(seed, 8, 12);
    for (const RunError& run : runs) {
      const auto near =
          time_interval(run.traits, runs, [&](const RunError& other) { return &other != &run; });
      const auto far = time_interval(
          run.traits, runs, [&](const RunError& other) { return other.source != run.source; });
      ++count;
      inside += std::abs(run.error) <= std::log(near->high) ? 1 : 0;
      inside_left_out += std::abs(run.left_out) <= std::log(far->high) ? 1 : 0;
    }
  }
  EXPECT_GT(inside, 0.75 * count);
  EXPECT_LT(inside, 0.97 * count);
  EXPECT_GT(inside_left_out, 0.7 * count);
  EXPECT_LT(inside_left_out, 0.97 * count);
}

TEST(TimeInterval, DoesNotDependOnTheOrderOfTheRuns) {
  Evidence runs = drawn_evidence(3, 5, 10);
  const auto before = time_interval(usual_job(), runs);
  std::reverse(runs.begin(), runs.end());
  EXPECT_NEAR(before->high, time_interval(usual_job(), runs)->high, 1e-12);
}

TEST(MemoryInterval, NeedsRunsOfTheTrainer) {
  Evidence runs;
  for (int i = 0; i < 20; ++i) {
    RunError run = run_of("one", usual_job(), 0, 0);
    run.memory = true;
    run.memory_error = 0.001 * i;
    runs.push_back(run);
  }
  const auto interval = memory_interval(usual_job(), runs);
  ASSERT_TRUE(interval);
  // 0.8 of the weight of 21.
  EXPECT_NEAR(std::log(interval->high), 0.016, 1e-9);
  JobTraits other = usual_job();
  other.trainer = "torchtitan";
  EXPECT_FALSE(memory_interval(other, runs).has_value());
  runs.resize(3);
  EXPECT_FALSE(memory_interval(usual_job(), runs).has_value());
}

}  // namespace
}  // namespace braid
