#include "braid/validate/coverage.h"

#include <cmath>

#include <gtest/gtest.h>

#include "braid/trust/interval.h"
#include "braid/validate/run_errors.h"

#include "support/source_path.h"
#include "validate/read_runs.h"

namespace braid {
namespace {

/// Every third run, which is a ninth of the work.
Evidence thinned() {
  Evidence runs;
  for (std::size_t i = 0; i < evidence().size(); i += 3) runs.push_back(evidence()[i]);
  return runs;
}

TEST(Coverage, OfTheProgramsEvidenceIsFourFifths) {
  const std::vector<SourceCoverage> sources = coverage_of(thinned());
  const SourceCoverage& all = sources.back();
  EXPECT_TRUE(all.source.empty());
  EXPECT_GT(all.covered, 0.75);
  EXPECT_LT(all.covered, 0.92);
  EXPECT_LT(all.width, 0.35);
  EXPECT_GT(all.covered_left_out, 0.7);
  EXPECT_LT(all.covered_left_out, 0.92);
  EXPECT_LT(all.width_left_out, 0.5);
  // What is not left out is known better.
  EXPECT_LT(all.width, all.width_left_out);
  for (const SourceCoverage& source : sources) {
    constexpr std::size_t kTelling = 8;
    if (source.runs < kTelling) continue;
    EXPECT_GT(source.covered, 0.65) << source.source;
  }
}

TEST(Coverage, CountsRunsBySource) {
  RunError run = evidence().front();
  run.source = "b";
  run.error = run.left_out = 0.1;
  Evidence runs(4, run);
  runs[3].source = "a";
  runs[3].left_out = 0.5;
  const std::vector<SourceCoverage> sources = coverage_of(runs);
  ASSERT_EQ(sources.size(), 3U);
  EXPECT_EQ(sources[0].source, "a");
  EXPECT_EQ(sources[0].runs, 1U);
  EXPECT_EQ(sources[1].runs, 3U);
  EXPECT_EQ(sources[2].runs, 4U);
  // All errors are the same: the interval ends there. The stranger's own is beyond what others say.
  EXPECT_EQ(sources[1].covered, 1);
  EXPECT_EQ(sources[0].covered_left_out, 0);
  EXPECT_NEAR(sources[1].width, std::exp(0.1) - std::exp(-0.1), 1e-9);
}

TEST(RunErrors, AreOfWhatIsPredicted) {
  const MeasuredRuns input =
      test::read_runs(test::source_path("tests/validate/published_runs.csv"));
  std::vector<MeasuredRun> runs(input.runs.begin(), input.runs.begin() + 3);
  runs[1].hardware = "abacus";
  LeftOut left;
  left.dataset = runs[0].dataset;
  left.errors = {0.25};
  left.rows = {0};
  const Evidence evidence = evidence_of(runs, {left});
  ASSERT_EQ(evidence.size(), 2U);
  EXPECT_NEAR(evidence[0].left_out, -std::log(1.25), 1e-12);
  // Nothing was fitted without the other one.
  EXPECT_EQ(evidence[1].left_out, evidence[1].error);
  const Prediction prediction = predict(runs[0]);
  EXPECT_NEAR(std::exp(evidence[0].error) * prediction.metrics.iteration_time_s,
              prediction.measured_s, 1e-9);
}

}  // namespace
}  // namespace braid
