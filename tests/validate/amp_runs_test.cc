#include "braid/validate/amp_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/plan/direct_plan.h"
#include "braid/system/links.h"
#include "braid/validate/accuracy.h"
#include "braid/validate/predict.h"
#include "braid/verify/verify.h"

#include "base/reference_files.h"
#include "validate/read_runs.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHead =
    "experiment,gbs,amp_rank,mbs,tp,dp,pp,num_microbatches,partition,measured_s,status\n";

MeasuredRuns read(const std::string& rows) { return parse_measured_runs(kHead + rows, "amp.csv"); }

std::string message(const std::string& rows) {
  try {
    static_cast<void>(read(rows));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AmpRuns, CutsBecomeLayersOfStages) {
  const MeasuredRuns input = read(
      "homogeneous,32,3,1,1,4,4,8,0 9 15 21 30,1.2,ok\n"
      "het_model,64,0,1,1,4,4,16,0 12 44 49 56,1.09,ok\n"
      "het_cluster,32,4,2,2,4,2,4,0 15 30,inf,failed_oom_or_crash\n");
  ASSERT_EQ(input.runs.size(), 3U);
  const MeasuredRun& gpt = input.runs[0];
  // The embedding and seven blocks; six; six; five blocks and the head.
  EXPECT_THAT(gpt.stage_layers, ElementsAre(8, 6, 6, 6));
  EXPECT_EQ(gpt.pp, 4);
  EXPECT_EQ(gpt.global_batch, 32);
  EXPECT_EQ(gpt.iteration_time_s, 1.2);
  EXPECT_THAT(input.runs[1].stage_layers, ElementsAre(10, 11, 5, 5));
  EXPECT_EQ(input.runs[2].failure, "failed_oom_or_crash");
  EXPECT_EQ(predict(input.runs[2]).reason, "the run did not finish: failed_oom_or_crash");
}

TEST(AmpRuns, SaysWhatIsWrong) {
  EXPECT_THAT(message("homogenous,32,3,1,1,4,4,8,0 30,1.2,ok\n"), HasSubstr("homogeneous"));
  EXPECT_THAT(message("homogeneous,32,3,1,1,4,4,8,0 x 30,1.2,ok\n"), HasSubstr("'x'"));
  EXPECT_THAT(message("homogeneous,32,3,1,1,4,4,8,0 30,soon,ok\n"), HasSubstr("'soon'"));
}

/// Stages of both types: each layer takes as long as on the slowest of the stage's devices.
TEST(AmpRuns, MixedClustersArePlannedAndSound) {
  const MeasuredRuns input = read(
      "het_cluster,32,3,1,1,4,4,8,0 9 15 21 30,1.2,ok\n"
      "het_cluster,32,3,1,1,8,2,4,0 15 30,1.2,ok\n");
  for (const MeasuredRun& run : input.runs) {
    const PreparedRun prepared = prepare(run);
    ASSERT_EQ(prepared.reason, "");
    ASSERT_EQ(prepared.system.groups.size(), 2U);
    const Plan plan = plan_of(prepared, prepared.system);
    for (const Stage& stage : plan.stages) {
      const bool on_t4 = placement_of(prepared.system, stage.devices.back()).group == 1;
      for (const std::int32_t option : stage.chunks[0].options) EXPECT_EQ(option, on_t4 ? 1 : 0);
    }
    EXPECT_GT(predict(run).metrics.iteration_time_s, prepared.bound_s);
    EXPECT_EQ(predict(run).chip, "v100-sxm-16gb + t4");
  }
  // V100s in place of the T4s are faster, T4s in place of the V100s slower.
  MeasuredRun run = input.runs[0];
  const double mixed_s = predict(run).metrics.iteration_time_s;
  run.hardware = "p3.8xlarge:4nodes";
  EXPECT_LT(predict(run).metrics.iteration_time_s, mixed_s);
}

TEST(AmpRuns, PublishedStrategiesAreRanked) {
  const std::string file = reference_file("reference/amp/measured.csv");
  if (file.empty()) GTEST_SKIP() << "reference data not present";
  const MeasuredRuns input = test::read_runs(file);
  const std::vector<Prediction> predictions = predict(input.runs);
  const auto groups = accuracy_by(input.runs, predictions, {"dataset"});
  for (const AccuracyGroup& group : groups) {
    EXPECT_EQ(group.accuracy.ranked, group.accuracy.predicted);
    EXPECT_GT(group.accuracy.spearman, 0.85) << group.values.front();
    EXPECT_EQ(group.accuracy.predicted_below_bound, 0U);
  }
}

}  // namespace
}  // namespace braid
