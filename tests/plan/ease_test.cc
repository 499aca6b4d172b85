#include "braid/plan/ease.h"

#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/plan/parallelism.h"

namespace braid {
namespace {

constexpr Ease kPlain{false, 2, false, false};
constexpr Ease kOffloaded{true, 1, false, false};

TEST(Ease, ComparesWhatCountsMostFirst) {
  EXPECT_LT((Ease{false, 5, true, true}), (Ease{true, 0, false, false}));
  EXPECT_LT((Ease{false, 1, true, true}), (Ease{false, 2, false, false}));
  EXPECT_LT((Ease{false, 1, false, true}), (Ease{false, 1, true, false}));
  EXPECT_LT((Ease{false, 1, false, false}), (Ease{false, 1, false, true}));
}

TEST(Ease, IsThatOfAForm) {
  Parallelism form;
  EXPECT_EQ(ease_of(form, false, 8192), Ease{});
  form.tp = form.pp = form.ep = 2;
  form.vp = kMostUsualChunks;
  form.offload_activations = true;
  EXPECT_EQ(ease_of(form, true, 8192), (Ease{true, 3, true, false}));
  form.vp = kMostUsualChunks + 1;
  EXPECT_TRUE(ease_of(form, true, 8192).extreme);
}

TEST(Ease, CountsMicroBatchesByTokens) {
  EXPECT_EQ(most_usual_micro_batch(8192), 8);
  EXPECT_EQ(most_usual_micro_batch(512), 128);
  EXPECT_EQ(most_usual_micro_batch(1 << 20), 1);  // One sample cannot be less.
  Parallelism images;
  images.micro_batch = 1 << 20;
  EXPECT_FALSE(ease_of(images, false, 0).extreme);
}

TEST(Ease, OffloadHasToGainMoreThanItsLimit) {
  EXPECT_EQ(easiest_of(std::vector<TimedEase>{{100, kOffloaded}, {102.9, kPlain}}), 1u);
  EXPECT_EQ(easiest_of(std::vector<TimedEase>{{100, kOffloaded}, {103.1, kPlain}}), 0u);
  EXPECT_FALSE(ease_limits(100, 102.9).offload);
  EXPECT_TRUE(ease_limits(100, 103.1).offload);
  EXPECT_TRUE(ease_limits(100, kInfinity).offload);
}

// Both limits together are no more than the larger one.
TEST(Ease, EasierPlansKeepToTheLimits) {
  EXPECT_DOUBLE_EQ(ease_limits(100, 100).most_s, 101);
  EXPECT_DOUBLE_EQ(ease_limits(100, 101).most_s, 102.01);
  EXPECT_DOUBLE_EQ(ease_limits(100, 102.5).most_s, 103);
  EXPECT_DOUBLE_EQ(ease_limits(100, kInfinity).most_s, 101);
  const Ease easier{false, 1, false, false};
  EXPECT_EQ(easiest_of(std::vector<TimedEase>{{100, kPlain}, {100.9, easier}}), 1u);
  EXPECT_EQ(easiest_of(std::vector<TimedEase>{{100, kPlain}, {101.1, easier}}), 0u);
  EXPECT_EQ(easiest_of(std::vector<TimedEase>{{100.9, easier}, {100, kPlain}, {100.5, easier}}),
            2u);
}

}  // namespace
}  // namespace braid
