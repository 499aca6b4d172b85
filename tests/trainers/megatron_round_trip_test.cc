#include <set>
#include <string>

#include <gtest/gtest.h>

#include "round_trip.h"

namespace braid {
namespace {

TEST(MegatronRoundTrip, ReadingWhatExportWroteGivesThePlanBitForBit) {
  std::set<std::string> models;
  int written = 0;
  for (const test::RoundTripCase& one : test::round_trip_cases()) {
    const test::RoundTripOutcome outcome = test::round_trip(one, "megatron", "megatron");
    if (!outcome.refused.empty()) continue;
    EXPECT_EQ(outcome.difference, "") << name_of(one);
    models.insert(one.model);
    ++written;
  }
  // Decoders of text are all written in some configuration.
  EXPECT_GE(models.size(), 50U);
  EXPECT_GE(written, 500);
}

}  // namespace
}  // namespace braid
