#include "braid/validate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/validate/cross_validate.h"

namespace braid {
namespace {

/// Runs of small models whose products, memory and network matter in different shares, "measured"
/// on a machine of which `truth` holds.
CalibrationRuns made_up_runs(const Achieved& truth) {
  std::vector<MeasuredRun> rows;
  for (const std::int64_t hidden : {1024, 4096}) {
    for (const std::int64_t micro_batch : {1, 8}) {
      for (const std::int64_t tp : {1, 4}) {
        MeasuredRun run;
        run.dataset = hidden == 1024 ? "small" : "large";
        run.hardware = "dgx-a100";
        run.devices = 8;
        run.model = "GPT";
        run.layers = 4;
        run.hidden = hidden;
        run.heads = 16;
        run.seq_len = 1024;
        run.micro_batch = micro_batch;
        run.tp = tp;
        run.global_batch = 8 / tp * micro_batch;
        run.iteration_time_s = 1;
        rows.push_back(run);
      }
    }
  }
  CalibrationRuns runs = runs_by_chip(rows).front();
  for (PreparedRun& run : runs.runs) {
    System system = run.system;
    apply(truth, system);
    run.measured_s = metrics_of(run, system).iteration_time_s;
  }
  return runs;
}

TEST(Calibrate, FindsTheFiguresThatRunsWereMadeWith) {
  Achieved truth = achieved_of(load_system("dgx-a100:8"));
  truth.matmul = 0.6;
  truth.memory = 0.7;
  truth.host_operator_s = 40e-6;
  const CalibrationRuns runs = made_up_runs(truth);
  ASSERT_EQ(runs.runs.size(), 8U);
  const ChipCalibration fit = calibrate_chip(runs);
  EXPECT_EQ(fit.chip, "a100-sxm-80gb");
  EXPECT_GT(fit.mape_before, 0.08);
  EXPECT_LT(fit.mape_after, 0.02);
  EXPECT_NEAR(fit.after.matmul, truth.matmul, 0.04);
  EXPECT_NEAR(fit.after.memory, truth.memory, 0.08);
  EXPECT_NEAR(fit.after.host_operator_s, truth.host_operator_s, 5e-6);
}

TEST(Calibrate, LeavesWhatIsRightAlone) {
  const Achieved truth = achieved_of(load_system("dgx-a100:8"));
  const ChipCalibration fit = calibrate_chip(made_up_runs(truth));
  EXPECT_LT(fit.mape_before, 1e-9);
  EXPECT_LT(fit.mape_after, 1e-9);
  EXPECT_DOUBLE_EQ(fit.after.matmul, truth.matmul);
}

TEST(Calibrate, CrossValidatesByDataset) {
  Achieved truth = achieved_of(load_system("dgx-a100:8"));
  truth.matmul = 0.55;
  const std::vector<LeftOut> left_out = cross_validate({made_up_runs(truth)});
  ASSERT_EQ(left_out.size(), 2U);
  EXPECT_EQ(left_out[0].dataset, "large");
  EXPECT_EQ(left_out[1].dataset, "small");
  for (const LeftOut& left : left_out) {
    EXPECT_EQ(left.runs, 4U);
    // Four runs do not tell all eight figures: the others stay what they are everywhere.
    EXPECT_LT(left.mape, 0.3);
    EXPECT_LT(left.mape_fitted, left.mape);
    EXPECT_LT(left.mape_alone, 0.05);
    EXPECT_LT(left.mape_dozen, 0);  // Too few runs.
  }
}

/// Runs of one dataset with large products on eight devices, "measured" where these reach `matmul`
/// of the peak and all else is as in cross_validate()'s common figures.
CalibrationRuns gemms_on(const std::string& hardware, double matmul, const std::string& dataset) {
  std::vector<MeasuredRun> rows;
  for (const std::int64_t hidden : {4096, 6144, 8192}) {
    MeasuredRun run;
    run.dataset = dataset;
    run.hardware = hardware;
    run.devices = 8;
    run.model = "GPT";
    run.precision = "bf16";
    run.layers = 2;
    run.hidden = hidden;
    run.heads = 32;
    run.seq_len = 2048;
    run.micro_batch = 8;
    run.tp = 1;
    run.global_batch = 64;
    run.iteration_time_s = 1;
    rows.push_back(run);
  }
  CalibrationRuns runs = runs_by_chip(rows).front();
  for (PreparedRun& run : runs.runs) {
    System system = run.system;
    Achieved truth = achieved_of(system);
    truth.matmul = matmul;
    truth.attention = 0.4;
    truth.memory = 0.85;
    apply(truth, system);
    run.measured_s = metrics_of(run, system).iteration_time_s;
  }
  return runs;
}

TEST(Calibrate, ChipsOfOneGenerationAreAlike) {
  // Nothing but the left-out runs tells of GB200: B200 does, not H100.
  const std::vector<LeftOut> left_out =
      cross_validate({gemms_on("dgx-b200", 0.8, "others"), gemms_on("GB200", 0.8, "own"),
                      gemms_on("dgx-h100", 0.4, "others")});
  ASSERT_EQ(left_out.size(), 2U);
  EXPECT_EQ(left_out[1].dataset, "own");
  EXPECT_EQ(left_out[1].by_analogy, 3U);
  EXPECT_LT(left_out[1].mape, 0.1);
}

TEST(Calibrate, ChipsWithoutAHostAreNotLikeOthers) {
  // The common share of the peak in products is 0.65.
  const std::vector<LeftOut> left_out =
      cross_validate({gemms_on("dgx-h100", 0.35, "others"), gemms_on("TPU v5p", 0.65, "own")});
  ASSERT_EQ(left_out.size(), 2U);
  EXPECT_EQ(left_out[1].dataset, "own");
  EXPECT_EQ(left_out[1].by_analogy, 3U);
  EXPECT_LT(left_out[1].mape, 0.05);
}

}  // namespace
}  // namespace braid
