#include "braid/machine/fit_chip.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/machine/system_text.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/operator_estimate.h"
#include "braid/system/system.h"

#include "base/error_text.h"

namespace braid {
namespace {

using testing::HasSubstr;

constexpr double kCache_bytes = 8 << 20;

Chip made_up_chip() {
  Chip chip;
  chip.name = "here-device";
  chip.peaks = {{Dtype::f32, 80e9}};
  chip.vector_flops_per_s = 80e9;
  chip.compute_units = 2;
  chip.memory = {"main memory", 8e9, 9e9};
  Efficiency& e = chip.efficiency;
  e.matmul_peak_fraction = 0.9;
  e.vector_peak_fraction = 0.2;
  e.attention_peak_fraction = 0.3;
  e.memory_peak_fraction = 0.95;
  e.memory_half_bytes = 3e4;
  e.kernel_launch_s = 2e-6;
  e.tile_m = 8;
  e.tile_n = 32;
  e.tile_k = 1;
  return chip;
}

/// As if each operator took what the model says for a chip.
std::vector<MeasuredOperator> timed_on(const Chip& chip, bool gradients = false) {
  const Execution alone;
  std::vector<MeasuredOperator> measured;
  for (SampleOperator& each : sample_operators(4 * kCache_bytes)) {
    const Precision precision = parse_precision("fp32");
    const Graph fed = behind_a_layer(each.graph);
    const OperatorEstimate estimate(fed, alone, precision, chip, matmul_peak_in(chip, precision));
    const OperatorWork work = layer_work(fed, 1).front();
    const OperatorTimes times = estimate.times(fed.operators.back(), work);
    measured.push_back({std::move(each), times.forward_s, gradients ? times.backward_s() : 0});
  }
  return measured;
}

Chip bare_chip() {
  Chip bare;
  bare.compute_units = 2;
  bare.memory.bytes = 8e9;
  return bare;
}

TEST(FitChip, FindsTheChipThatTheTimesAreOf) {
  const Chip chip = made_up_chip();
  const FittedChip fit = fit_chip(bare_chip(), timed_on(chip), kCache_bytes);
  EXPECT_LT(mean_error(fit.operators), 0.002);
  EXPECT_NEAR(fit.chip.efficiency.kernel_launch_s, chip.efficiency.kernel_launch_s, 2e-8);
  const double rate = chip.peaks.front().matmul_flops_per_s * chip.efficiency.matmul_peak_fraction;
  EXPECT_NEAR(fit.chip.peaks.front().matmul_flops_per_s * fit.chip.efficiency.matmul_peak_fraction,
              rate, 0.01 * rate);
  const double bandwidth = chip.memory.bytes_per_s * chip.efficiency.memory_peak_fraction;
  EXPECT_NEAR(fit.chip.memory.bytes_per_s * fit.chip.efficiency.memory_peak_fraction, bandwidth,
              0.01 * bandwidth);
}

TEST(FitChip, LayersBehindOthersAreGraphsWhoseInputsHaveGradients) {
  for (const SampleOperator& each : sample_operators(1 << 16)) {
    const Graph fed = behind_a_layer(each.graph);
    EXPECT_NO_THROW(check_graph(fed, each.name));
    const OperatorWork work = layer_work(fed, 1).front();
    EXPECT_EQ(work.forward, layer_work(each.graph, 0).front().forward) << each.name;
  }
}

TEST(FitChip, CountsGradientsWhereTheyWereMeasured) {
  const Chip chip = made_up_chip();
  std::vector<MeasuredOperator> measured = timed_on(chip, true);
  const FittedChip fit = fit_chip(bare_chip(), measured, kCache_bytes);
  EXPECT_LT(mean_error(fit.operators), 0.002);
  // All but sums, whose gradients are handed on.
  const auto sums = std::count_if(measured.begin(), measured.end(), [](const auto& each) {
    return each.operation.name.starts_with("sum");
  });
  EXPECT_EQ(std::ssize(fit.operators), 2 * std::ssize(measured) - sums);
  EXPECT_EQ(fit.operators[1].name, fit.operators[0].name + ", gradients");
  // Gradients that take twice as long make the chip slower than forward passes say.
  for (MeasuredOperator& each : measured) each.backward_s *= 2;
  const FittedChip slower = fit_chip(bare_chip(), measured, kCache_bytes);
  const auto rate_of = [](const FittedChip& of) {
    return of.chip.peaks.front().matmul_flops_per_s * of.chip.efficiency.matmul_peak_fraction;
  };
  EXPECT_LT(rate_of(slower), 0.9 * rate_of(fit));
  EXPECT_GT(rate_of(slower), 0.4 * rate_of(fit));
}

/// One wild time in twelve does not move the figures far.
TEST(FitChip, StandsWildTimes) {
  const Chip chip = made_up_chip();
  std::vector<MeasuredOperator> measured = timed_on(chip);
  for (std::size_t i = 5; i < measured.size(); i += 12) measured[i].time_s *= 4;
  const FittedChip fit = fit_chip(bare_chip(), measured, kCache_bytes);
  const double rate = chip.peaks.front().matmul_flops_per_s * chip.efficiency.matmul_peak_fraction;
  EXPECT_NEAR(fit.chip.peaks.front().matmul_flops_per_s * fit.chip.efficiency.matmul_peak_fraction,
              rate, 0.15 * rate);
}

TEST(FitChip, NeedsGemmsAndSums) {
  std::vector<MeasuredOperator> measured = timed_on(made_up_chip());
  EXPECT_NO_THROW(fit_chip(bare_chip(), measured, 1e12));
  std::vector<MeasuredOperator> gemms = measured;
  std::erase_if(
      gemms, [](const MeasuredOperator& each) { return each.operation.name.starts_with("sum"); });
  EXPECT_THAT(error_text([&] { fit_chip(bare_chip(), gemms, kCache_bytes); }), HasSubstr("no sum"));
  std::erase_if(measured, [](const MeasuredOperator& each) {
    return each.operation.name.starts_with("GEMM");
  });
  EXPECT_THAT(error_text([&] { fit_chip(bare_chip(), measured, kCache_bytes); }),
              HasSubstr("no GEMM"));
}

TEST(SystemText, IsReadAsTheMachineWasMeasured) {
  MeasuredMachine machine;
  machine.facts = {"A processor, 4 cores", 4, 16e9, kCache_bytes};
  machine.split = {2, 2};
  machine.device = fit_chip(bare_chip(), timed_on(made_up_chip()), kCache_bytes);
  machine.link = {12e-6, 2.5e9, 0.1};
  machine.libraries = "a library 1.0";
  machine.messages = "messages over a wire";
  const TemporaryFolder folder;
  const std::string file = folder / "here.yaml";
  write_file(file, system_text(machine, "here"));
  const System system = load_system(file);
  EXPECT_EQ(system.device_count, 2);
  const DeviceGroup& group = system.groups.front();
  const Chip& fitted = machine.device.chip;
  const auto expect_near = [](double read, double written) {
    EXPECT_NEAR(read, written, 1e-5 * std::abs(written));
  };
  expect_near(*matmul_peak(group.chip, Dtype::f32), fitted.peaks.front().matmul_flops_per_s);
  expect_near(group.chip.memory.bytes_per_s, fitted.memory.bytes_per_s);
  expect_near(group.chip.memory.bytes, fitted.memory.bytes);
  const Efficiency& read = group.chip.efficiency;
  expect_near(read.matmul_peak_fraction, fitted.efficiency.matmul_peak_fraction);
  expect_near(read.vector_peak_fraction, fitted.efficiency.vector_peak_fraction);
  expect_near(read.attention_peak_fraction, fitted.efficiency.attention_peak_fraction);
  expect_near(read.memory_peak_fraction, fitted.efficiency.memory_peak_fraction);
  expect_near(read.memory_half_bytes, fitted.efficiency.memory_half_bytes);
  expect_near(read.kernel_launch_s, fitted.efficiency.kernel_launch_s);
  EXPECT_EQ(read.tile_n, fitted.efficiency.tile_n);
  expect_near(group.intra_node.bytes_per_s, 2.5e9);
  expect_near(group.intra_node.latency_s, 12e-6);
  EXPECT_FALSE(group.chip.host.has_value());
}

}  // namespace
}  // namespace braid
