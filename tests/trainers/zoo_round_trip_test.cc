#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "round_trip.h"

// What is written for torchtitan (TOML and recipe), DeepSpeed, Megatron-Bridge, MaxText and
// Accelerate reads back as the plan, over the whole zoo.

namespace braid {
namespace {

/// Runs all cases, or those on one cluster, after `adapt`; the models that were written.
template <typename Adapt>
std::set<std::string> written_models(const std::string& trainer, const std::string& target,
                                     const Adapt& adapt, const std::string& cluster = "") {
  std::set<std::string> models;
  for (test::RoundTripCase one : test::round_trip_cases()) {
    if (!one.cluster.starts_with(cluster)) continue;
    adapt(one);
    const test::RoundTripOutcome outcome = test::round_trip(one, trainer, target);
    if (!outcome.refused.empty()) continue;
    EXPECT_EQ(outcome.difference, "") << target << ": " << name_of(one);
    models.insert(one.model);
  }
  return models;
}

/// ZeRO as torchtitan has it: without pipelines each micro-batch scatters its gradients.
void set_titan_zero(Parallelism& p) {
  if (p.pp == 1 && p.zero == Zero::optimizer) p.zero = Zero::gradients;
}

TEST(TorchtitanRoundTrip, ReadingTheTomlGivesThePlanBitForBit) {
  const auto models = written_models("torchtitan", "torchtitan", [](test::RoundTripCase& one) {
    one.stated.parallel.offload_optimizer = false;
    set_titan_zero(one.stated.parallel);
  });
  EXPECT_GE(models.size(), 9U);
}

TEST(TorchtitanRoundTrip, ReadingTheRecipeGivesThePlanBitForBit) {
  const auto models =
      written_models("torchtitan-recipe", "torchtitan-recipe", [](test::RoundTripCase& one) {
        one.stated.parallel.offload_optimizer = false;
        set_titan_zero(one.stated.parallel);
        one.stated.parallel.whole_experts =
            one.stated.parallel.tp > 1 && one.stated.parallel.ep > 1;
      });
  EXPECT_GE(models.size(), 9U);
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

TEST(BridgeRoundTrip, ReadingTheScriptGivesThePlanBitForBit) {
  const auto models = written_models(
      "megatron-bridge", "megatron-bridge",
      [](test::RoundTripCase& one) {
        if (one.precision == "tf32") one.precision = "bf16";
      },
      "dgx-h100");
  EXPECT_GE(models.size(), 50U);
}

TEST(MaxtextRoundTrip, ReadingTheYamlGivesThePlanBitForBit) {
  const auto models = written_models("maxtext", "maxtext", [](test::RoundTripCase& one) {
    Parallelism& p = one.stated.parallel;
    p.pp = p.cp = p.vp = 1;
    p.schedule = ScheduleKind::one_f_one_b;
    p.zero = p.zero == Zero::none ? Zero::none : Zero::parameters;
    p.sequence_parallel = p.tp > 1;
    p.whole_experts = false;
    if (p.ep > 1) p.zero = Zero::parameters;
    if (one.precision == "tf32") one.precision = "fp32";
    if (one.precision == "fp16") one.precision = "bf16";
  });
  EXPECT_EQ(models.size(), 19U);
}

TEST(AccelerateRoundTrip, ReadingTheYamlGivesThePlanBitForBit) {
  const auto adapt = [](test::RoundTripCase& one) {
    Parallelism& p = one.stated.parallel;
    p.pp = p.ep = p.vp = 1;
    p.schedule = ScheduleKind::one_f_one_b;
    if (p.zero == Zero::optimizer) p.zero = Zero::gradients;
    if (p.recompute == Recompute::selective) p.recompute = Recompute::full;
    p.sequence_parallel = p.whole_experts = p.offload_optimizer = false;
    if (one.precision == "tf32") one.precision = "fp32";
  };
  const auto models = written_models("accelerate", "accelerate", adapt, "dgx-h100");
  EXPECT_GE(models.size(), 50U);
}

}  // namespace
}  // namespace braid
