#include "braid/validate/measured_run.h"

#include <gtest/gtest.h>

#include "base/error_text.h"

namespace braid {
namespace {

TEST(MeasuredRuns, ReadsWhatARowSays) {
  const MeasuredRuns read = parse_measured_runs(
      "dataset,hardware,n_accel,tp,vp,iter_time_s,mfu_pct,peak_mem_gib,colour\n"
      "a,dgx-h100,16,8,n/a,1.25,41.5,2,red\n"
      "b,dgx-h100,4,1/1/2,,,50,,\n",
      "r.csv");
  ASSERT_EQ(read.runs.size(), 2U);
  EXPECT_EQ(read.ignored_columns, std::vector<std::string>{"colour"});
  const MeasuredRun& run = read.runs[0];
  EXPECT_EQ(run.line, 2);
  EXPECT_EQ(run.dataset, "a");
  EXPECT_EQ(run.devices, 16);
  EXPECT_EQ(run.tp, 8);
  EXPECT_EQ(run.vp, 0);
  EXPECT_DOUBLE_EQ(run.iteration_time_s, 1.25);
  EXPECT_DOUBLE_EQ(run.mfu, 0.415);
  EXPECT_DOUBLE_EQ(run.peak_memory_bytes, 2147483648.0);
  EXPECT_EQ(read.runs[1].lists, std::vector<std::string>{"tp"});
  EXPECT_EQ(read.runs[1].tp, 0);
}

TEST(MeasuredRuns, BadRowsNameFileLineAndColumn) {
  const auto message = [](const std::string& field) {
    return error_text(
        [&] { parse_measured_runs("hardware,tp,iter_time_s\nx,1,1\nx," + field + "\n", "r.csv"); });
  };
  EXPECT_EQ(message("two,1"),
            "r.csv:3: tp: 'two' is not a number; leave the field empty if it is unknown");
  EXPECT_EQ(message("-2,1"),
            "r.csv:3: tp: '-2' is not positive; leave the field empty if it is unknown");
  EXPECT_EQ(message("1.5,1"), "r.csv:3: tp: '1.5' is not a count; give a whole number");
  EXPECT_EQ(message("1,nan"),
            "r.csv:3: iter_time_s: 'nan' is not a number; leave the field empty if it is unknown");
  EXPECT_EQ(message("1,0"),
            "r.csv:3: iter_time_s: '0' is not positive; leave the field empty if it is unknown");
  EXPECT_EQ(message("1,1e20"), "r.csv:3: iter_time_s: '1e20' is out of range");
}

TEST(MeasuredRuns, NeedsHardwareAndAFigureOfSpeed) {
  EXPECT_EQ(error_text([] { parse_measured_runs("tp,iter_time_s\n1,1\n", "r.csv"); }),
            "r.csv:1: hardware: there is no such column; name the cluster of each run in it, such "
            "as dgx-h100");
  EXPECT_EQ(error_text([] { parse_measured_runs("hardware,tp\nx,1\n", "r.csv"); }),
            "r.csv:1: iter_time_s: no column says how fast the runs were; give iter_time_s or "
            "tokens_per_s_per_accel");
}

TEST(MeasuredRuns, GroupsByAnyColumnOfTextOrCounts) {
  MeasuredRun run;
  run.dataset = "d";
  run.tp = 4;
  EXPECT_EQ(group_value(run, "dataset"), "d");
  EXPECT_EQ(group_value(run, "tp"), "4");
  EXPECT_EQ(group_value(run, "pp"), "");
  EXPECT_EQ(error_text([&] { group_value(run, "datset"); }),
            "--by: runs cannot be grouped by 'datset'; did you mean 'dataset'?");
}

}  // namespace
}  // namespace braid
