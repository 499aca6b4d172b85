#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "round_trip.h"

// What is written for torchtitan (TOML and recipe) and DeepSpeed reads back as the plan, over the
// whole zoo.

namespace braid {
namespace {

/// Runs all cases after `adapt`; the models that were written.
template <typename Adapt>
std::set<std::string> written_models(const std::string& trainer, const std::string& target,
                                     const Adapt& adapt) {
  std::set<std::string> models;
  for (test::RoundTripCase one : test::round_trip_cases()) {
    adapt(one);
    const test::RoundTripOutcome outcome = test::round_trip(one, trainer, target);
    if (!outcome.refused.empty()) continue;
    EXPECT_EQ(outcome.difference, "") << target << ": " << name_of(one);
    models.insert(one.model);
  }
  return models;
}

TEST(TorchtitanRoundTrip, ReadingTheTomlGivesThePlanBitForBit) {
  const auto models = written_models("torchtitan", "torchtitan", [](test::RoundTripCase& one) {
    one.stated.parallel.offload_optimizer = false;
  });
  EXPECT_EQ(models.size(), 9U);
}

TEST(TorchtitanRoundTrip, ReadingTheRecipeGivesThePlanBitForBit) {
  const auto models =
      written_models("torchtitan-recipe", "torchtitan-recipe", [](test::RoundTripCase& one) {
        one.stated.parallel.offload_optimizer = false;
        one.stated.parallel.whole_experts =
            one.stated.parallel.tp > 1 && one.stated.parallel.ep > 1;
      });
  EXPECT_EQ(models.size(), 9U);
}

TEST(DeepspeedRoundTrip, ReadingTheJsonGivesThePlanBitForBit) {
  const auto models = written_models("deepspeed", "deepspeed", [](test::RoundTripCase& one) {
    Parallelism& p = one.stated.parallel;
    p.sequence_parallel = false;
    p.vp = 1;
    p.schedule = ScheduleKind::one_f_one_b;
    // Without ZeRO gradients have the weights' format, and the file has no TF32.
    if (p.zero == Zero::none) p.zero = Zero::optimizer;
    if (one.precision == "tf32") one.precision = "fp32";
    if (one.precision == "fp8") one.precision = "bf16";
  });
  EXPECT_GE(models.size(), 50U);
}

}  // namespace
}  // namespace braid
