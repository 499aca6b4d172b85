#include "braid/machine/measure_operators.h"

#include <set>

#include <gtest/gtest.h>

#include "braid/frontend/graph_program.h"

namespace braid {
namespace {

TEST(SampleOperators, AreProgramsOfOneOperatorEach) {
  const std::vector<SampleOperator> samples = sample_operators(1 << 24);
  std::set<std::string> names;
  for (const SampleOperator& each : samples) {
    EXPECT_EQ(each.graph.operators.size(), 1U) << each.name;
    EXPECT_NO_THROW(static_cast<void>(program_from_graph(each.graph))) << each.name;
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
}

/// Without a library the reference kernels are measured, on every device.
TEST(MeasureOperators, TimesWhatRunsOnAllDevices) {
  std::vector<SampleOperator> samples = sample_operators(1 << 14);
  std::erase_if(samples, [](const SampleOperator& each) {
    return each.name != "GEMM 16 x 64 x 64" && !each.name.starts_with("sum");
  });
  ASSERT_EQ(samples.size(), 3U);
  MeasureOptions options;
  options.samples = 3;
  const OperatorMeasurements measured = measure_operators(samples, {}, {2, 1}, options);
  EXPECT_TRUE(measured.unmeasured.empty());
  ASSERT_EQ(measured.operators.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(measured.operators[i].operation.name, samples[i].name);
    EXPECT_GT(measured.operators[i].time_s, 0);
  }
}

}  // namespace
}  // namespace braid
