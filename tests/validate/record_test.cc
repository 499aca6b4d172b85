#include "braid/validate/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"

#include "base/error_text.h"
#include "support/source_path.h"
#include "validate/read_runs.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct RecordCases {
  std::vector<MeasuredRun> runs;
  std::vector<Prediction> predictions;

  Prediction& add(const std::string& dataset, double predicted_s) {
    MeasuredRun run;
    run.dataset = dataset;
    run.line = static_cast<int>(runs.size()) + 2;
    runs.push_back(run);
    Prediction prediction;
    prediction.measured_s = 1;
    prediction.bound_s = 0.5;
    prediction.metrics.iteration_time_s = predicted_s;
    predictions.push_back(prediction);
    return predictions.back();
  }
  std::vector<std::string> worse_than(const std::string& record) const {
    return worse_than_record(record, "r.csv", runs, predictions);
  }
};

RecordCases record_cases() {
  RecordCases cases;
  cases.add("a, \"b\"", 1.1);
  cases.add("a, \"b\"", 0.8).reason = "unknown";
  Prediction& with_memory = cases.add("c", 0.9);
  with_memory.measured_memory_bytes = 100;
  with_memory.metrics.peak_memory_bytes = 104;
  return cases;
}

TEST(Record, HoldsForWhatItWasMadeOf) {
  const RecordCases cases = record_cases();
  const std::string record = accuracy_record(cases.runs, cases.predictions);
  EXPECT_EQ(record,
            "dataset,runs,mean_error,memory_error,not_predicted\n"
            "\"a, \"\"b\"\"\",2,0.1000,,3\n"
            "c,1,0.1000,0.0400,\n");
  EXPECT_THAT(cases.worse_than(record), IsEmpty());
}

TEST(Record, ComplainsOfATenthMore) {
  RecordCases cases = record_cases();
  const std::string record = accuracy_record(cases.runs, cases.predictions);
  cases.predictions[2].metrics.iteration_time_s = 1 - 0.109;
  EXPECT_THAT(cases.worse_than(record), IsEmpty());
  cases.predictions[2].metrics.iteration_time_s = 1 + 0.111;
  EXPECT_THAT(cases.worse_than(record), ElementsAre(HasSubstr("c: the mean error is 11.10 %")));
  cases = record_cases();
  cases.predictions[2].metrics.peak_memory_bytes = 95;
  EXPECT_THAT(cases.worse_than(record), ElementsAre(HasSubstr("of memory")));
}

TEST(Record, ComplainsOfRunsThatFailNowAndOfThoseThatAreGone) {
  RecordCases cases = record_cases();
  const std::string record = accuracy_record(cases.runs, cases.predictions);
  cases.predictions[0].reason = "broken";
  EXPECT_THAT(cases.worse_than(record), ElementsAre(HasSubstr("line 2 is no longer predicted")));
  cases = record_cases();
  cases.runs.pop_back();
  cases.predictions.pop_back();
  EXPECT_THAT(cases.worse_than(record), ElementsAre("c has no runs"));
  cases.add("d", 1);
  EXPECT_THAT(cases.worse_than(record), ElementsAre("d is not recorded", "c has no runs"));
}

TEST(Record, RefusesWhatIsNone) {
  const RecordCases cases = record_cases();
  const auto complaint = [&](const std::string& text) {
    return error_text([&] { static_cast<void>(cases.worse_than(text)); });
  };
  EXPECT_THAT(complaint("a,b\n1,2\n"), HasSubstr("no such column"));
  EXPECT_THAT(complaint("dataset,runs,mean_error,memory_error,not_predicted\nc,1,x,,\n"),
              HasSubstr("is no figure"));
}

/// The gate: rows that the project ships are predicted as well as is recorded beside them.
TEST(PublishedRuns, ArePredictedAsWellAsRecorded) {
  const std::string folder = test::source_path("tests/validate/");
  const std::vector<MeasuredRun> runs = test::read_runs(folder + "published_runs.csv").runs;
  ASSERT_GE(runs.size(), 60U);
  const std::vector<Prediction> predictions = predict(runs);
  EXPECT_THAT(worse_than_record(read_file(folder + "recorded_accuracy.csv"),
                                "recorded_accuracy.csv", runs, predictions),
              IsEmpty());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!predictions[i].predicted()) continue;
    EXPECT_GE(predictions[i].metrics.iteration_time_s, predictions[i].bound_s) << runs[i].line;
    EXPECT_GE(predictions[i].measured_s, predictions[i].bound_s) << runs[i].line;
  }
}

}  // namespace
}  // namespace braid
