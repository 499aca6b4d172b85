#include "braid/report/recommendation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_maker.h"

namespace braid {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A plan that is recommended though another one takes this share less.
Outcome with_faster(double share) {
  Parallelism parallel;
  parallel.num_micro_batches = 4;
  Outcome outcome;
  outcome.candidates.push_back({test::made_plan(parallel, 4), {}});
  outcome.candidates.front().metrics.iteration_time_s = 1;
  outcome.recommendation = Recommendation{};
  parallel.offload_optimizer = true;
  Candidate fastest{test::made_plan(parallel, 4), {}};
  fastest.metrics.iteration_time_s = 1 - share;
  outcome.recommendation->fastest = std::move(fastest);
  outcome.recommendation->ease_of_fastest.offload = true;
  return outcome;
}

TEST(RecommendationText, SaysWhatTheFastestGains) {
  EXPECT_THAT(recommendation_text(with_faster(0.02)),
              HasSubstr("The fastest takes 0.9800 s, 2 % less, with MBS 1, off+opt: --fastest"));
}

TEST(RecommendationText, CallsNoGainWhatFourFiguresDoNotShow) {
  const std::string text = recommendation_text(with_faster(1.8e-5));
  EXPECT_THAT(text, HasSubstr("To four figures the fastest, with MBS 1, off+opt, takes no less: "
                              "--fastest gives that."));
  EXPECT_THAT(text, Not(HasSubstr("%")));
}

TEST(RecommendationText, NamesTheOptionWhereNothingSaysWhatIsWithoutOffload) {
  Outcome outcome = with_faster(0);
  outcome.candidates.front() = *outcome.recommendation->fastest;
  outcome.recommendation.reset();
  EXPECT_EQ(recommendation_text(outcome),
            "This plan keeps optimizer state in host memory: --no-offload plans without.\n");
  outcome.recommendation = Recommendation{};
  outcome.recommendation->ease.offload = true;
  outcome.recommendation->without_offload_s = 1.05;
  EXPECT_EQ(recommendation_text(outcome), "Without offload the fastest takes 1.050 s, 5 % more.\n");
  outcome.recommendation->without_offload_s = 2.134;
  EXPECT_EQ(recommendation_text(outcome),
            "Without offload the fastest takes 2.134 s, 113 % more.\n");
}

}  // namespace
}  // namespace braid
