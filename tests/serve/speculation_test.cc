#include "braid/serve/speculation.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "serve/published_speculation.h"
#include "serve/serving_fixture.h"

namespace braid {
namespace {

/// Tokens of one round, drafted and judged one by one: of each token's successors the first that is
/// accepted goes on.
int drawn_tokens(const Speculation& of, std::mt19937_64& random) {
  std::bernoulli_distribution accepted(of.acceptance);
  int tokens = 1;
  for (std::int64_t depth = 0; depth < of.draft_tokens; ++depth) {
    bool any = false;
    for (std::int64_t i = 0; i < of.width; ++i) any = accepted(random) || any;
    if (!any) break;
    ++tokens;
  }
  return tokens;
}

TEST(Speculation, ExpectationIsThatOfDrawnRounds) {
  std::mt19937_64 random(5);
  constexpr int kRounds = 20000;
  for (const double acceptance : {0.0, 0.3, 0.8, 1.0}) {
    for (const std::int64_t depth : {1, 3, 6}) {
      for (const std::int64_t width : {1, 2, 3}) {
        const Speculation of{acceptance, depth, width};
        double sum = 0, squares = 0;
        for (int i = 0; i < kRounds; ++i) {
          const double tokens = drawn_tokens(of, random);
          sum += tokens;
          squares += tokens * tokens;
        }
        const double mean = sum / kRounds;
        const double deviation =
            std::sqrt(std::max(squares / kRounds - mean * mean, 0.0) / kRounds);
        EXPECT_NEAR(expected_tokens(of), mean, 4.5 * deviation + 1e-9)
            << acceptance << ' ' << depth << ' ' << width;
      }
    }
  }
}

TEST(Speculation, ClosedFormAndLaws) {
  for (const double a : {0.1, 0.5, 0.9}) {
    double before = 1;
    for (std::int64_t k = 1; k <= 10; ++k) {
      const Speculation sequence{a, k, 1}, tree{a, k, 2};
      EXPECT_NEAR(expected_tokens(sequence), (1 - std::pow(a, k + 1)) / (1 - a), 1e-12);
      EXPECT_GT(expected_tokens(sequence), before);
      before = expected_tokens(sequence);
      EXPECT_LT(before, 1 / (1 - a));
      EXPECT_GT(expected_tokens(tree), before);
      // DFModel's line counts tokens after a rejected one.
      EXPECT_GE(test::linear_expected_tokens(sequence), before - 1e-12);
      EXPECT_DOUBLE_EQ(drafted_tokens(sequence), static_cast<double>(k));
      EXPECT_DOUBLE_EQ(drafted_tokens(tree), std::exp2(k + 1) - 2);
    }
  }
  EXPECT_DOUBLE_EQ(expected_tokens({1, 4, 1}), 5);
  EXPECT_DOUBLE_EQ(expected_tokens({0, 4, 1}), 1);
  EXPECT_DOUBLE_EQ(test::linear_expected_tokens({1, 4, 1}), 5);
  EXPECT_DOUBLE_EQ(test::linear_expected_tokens({0.4, 1, 1}), expected_tokens({0.4, 1, 1}));
}

TEST(Speculation, DraftsMustSpeakTheTargetsTokens) {
  const ServedModel target = load_served_model("llama-3-70b"),
                    draft = load_served_model("llama-3-8b");
  EXPECT_NO_THROW(check_draft(draft, target, 4096));
  EXPECT_THROW(check_draft(draft, target, 10000), Error);
  EXPECT_THROW(check_draft(load_served_model("llama-2-7b"), target, 1024), Error);
}

/// What a round takes, from models of the target and of the draft alone.
TEST(Speculation, RoundIsDraftStepsAndOneOfTheTarget) {
  const test::ServingFixture target("llama-3-70b", "dgx-h100:8", "vllm");
  const test::ServingFixture small("llama-3-8b", "dgx-h100:8", "vllm");
  const ServingLayout layout{8, 1, 1, 8, 1, 1};
  const DraftModel draft{&small.model, serving_format(small.model, "fp8"), {0.7, 3, 1}};
  Worker drafted = target.worker("fp8", layout);
  drafted.draft = &draft;
  const StepModel both(drafted), alone(target.worker("fp8", layout)),
      drafting(small.worker("fp8", layout));
  const StepShape shape{16, 2000, 0, 0, 0};
  StepShape judged = shape;
  judged.drafted = 3;
  const double kernels_s = alone.parts(judged).kernels() + 3 * drafting.parts(shape).kernels();
  EXPECT_NEAR(both.parts(shape).kernels(), kernels_s / both.step_tokens(), 1e-12);
  // The target's step with four tokens of each sequence takes longer than one, and less than four.
  EXPECT_GT(alone.parts(judged).kernels(), alone.parts(shape).kernels());
  EXPECT_LT(alone.parts(judged).kernels(), 4 * alone.parts(shape).kernels());
  EXPECT_GT(both.time(shape) * both.step_tokens(), alone.time(shape));
}

}  // namespace
}  // namespace braid
