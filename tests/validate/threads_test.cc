#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/base/parallel.h"
#include "braid/validate/calibrate.h"
#include "braid/validate/cross_validate.h"
#include "braid/validate/predict.h"

namespace braid {
namespace {

/// Runs of small models, some of which cannot be predicted.
std::vector<MeasuredRun> runs_of_many_kinds(int count) {
  std::vector<MeasuredRun> runs;
  for (int n = 0; n < count; ++n) {
    MeasuredRun run;
    run.dataset = n % 2 == 0 ? "even" : "odd";
    run.hardware = n % 3 == 0 ? "dgx-a100" : "dgx-h100";
    if (n % 7 == 6) run.hardware = "abacus";
    run.devices = 8;
    run.model = "GPT";
    run.precision = "bf16";
    run.layers = 4 + n % 5;
    run.hidden = 1024;
    run.heads = 16;
    run.seq_len = 512;
    run.micro_batch = 1 + n % 2;
    run.tp = 1 << n % 3;
    run.global_batch = 8 / run.tp * run.micro_batch * 2;
    run.iteration_time_s = 0.01 * (n + 1);
    runs.push_back(run);
  }
  return runs;
}

/// `text()` for each number of threads.
template <typename Text>
void expect_the_same_at_any_thread_count(const Text& text) {
  const int before = thread_count();
  set_thread_count(1);
  const std::string alone = text();
  EXPECT_FALSE(alone.empty());
  for (const int threads : {2, 8}) {
    set_thread_count(threads);
    EXPECT_EQ(text(), alone) << threads;
  }
  set_thread_count(before);
}

TEST(ValidateThreads, PredictionsAreTheSame) {
  const std::vector<MeasuredRun> runs = runs_of_many_kinds(24);
  expect_the_same_at_any_thread_count([&] {
    std::string text;
    for (const Prediction& p : predict(runs)) {
      text += fmt::format("{:a} {:a} {:a} {:a} {}\n", p.measured_s, p.bound_s,
                          p.metrics.iteration_time_s, p.metrics.peak_memory_bytes, p.reason);
    }
    return text;
  });
}

TEST(ValidateThreads, CalibrationsAreTheSame) {
  const std::vector<MeasuredRun> runs = runs_of_many_kinds(8);
  expect_the_same_at_any_thread_count([&] {
    std::string text;
    for (const CalibrationRuns& of_chip : runs_by_chip(runs)) {
      const ChipCalibration fit = calibrate_chip(of_chip);
      text += fmt::format("{} {} {:a} {:a} {:a} {:a}\n", fit.chip, fit.runs, fit.mape_before,
                          fit.mape_after, fit.after.matmul, fit.after.host_operator_s);
      for (const LeftOut& left : cross_validate({of_chip})) {
        text += fmt::format("  {} {:a}\n", left.dataset, left.mape);
      }
    }
    return text;
  });
}

}  // namespace
}  // namespace braid
