#include "braid/validate/run_rates.h"

#include <gtest/gtest.h>

#include "braid/validate/measured_time.h"
#include "braid/validate/run_model.h"

namespace braid {
namespace {

/// Rates of a run of 64 samples on 16 devices in 2 s.
MeasuredRun rated(std::int64_t seq_len) {
  MeasuredRun run;
  run.model = "llama-3-8b";
  run.devices = 16;
  run.seq_len = seq_len;
  const double flops = reported_flops(*model_of(run).graph, 1, Recompute::none, false);
  run.iteration_time_s = 2;
  run.tokens_per_s_per_device = 64.0 * static_cast<double>(seq_len) / (16 * 2);
  run.model_tflops_per_device =
      run.tokens_per_s_per_device * flops / static_cast<double>(seq_len) / 1e12;
  run.seq_len = 0;
  return run;
}

TEST(RunRates, TellSequenceLengthAndBatch) {
  for (const std::int64_t seq_len : {1024, 8192, 131072}) {
    const MeasuredRun told = with_told_by_rates(rated(seq_len));
    EXPECT_EQ(told.seq_len, seq_len);
    EXPECT_EQ(told.global_batch, 64);
  }
  // Google's sample log of Llama 3.1 8B on 128 chips of TPU v6e: 4194304 tokens of 8192 each.
  MeasuredRun log;
  log.model = "Llama3.1-8B-MaxText";
  log.devices = 128;
  log.iteration_time_s = 4.602;
  log.tokens_per_s_per_device = 7119.648;
  log.model_tflops_per_device = 412.319;
  const MeasuredRun told = with_told_by_rates(log);
  EXPECT_EQ(told.seq_len, 8192);
  EXPECT_EQ(told.global_batch, 512);
}

TEST(RunRates, LeaveOpenWhatTheyDoNotTell) {
  MeasuredRun run = rated(4096);
  run.model_tflops_per_device *= 1.2;  // No length gives this.
  EXPECT_EQ(with_told_by_rates(run).seq_len, 0);
  run = rated(4096);
  run.model = "unheard of";
  EXPECT_EQ(with_told_by_rates(run).seq_len, 0);
  run = rated(4096);
  run.seq_len = 4096;
  run.iteration_time_s *= 1.01;  // 64.64 samples.
  EXPECT_EQ(with_told_by_rates(run).global_batch, 0);
}

TEST(RunRates, WhatIsSaidStays) {
  MeasuredRun run = rated(4096);
  run.seq_len = 2048;
  run.global_batch = 8;
  const MeasuredRun told = with_told_by_rates(run);
  EXPECT_EQ(told.seq_len, 2048);
  EXPECT_EQ(told.global_batch, 8);
}

TEST(RunRates, ARankIsTakenToRunOneMicroBatch) {
  MeasuredRun run;
  run.seq_len = 512;
  run.micro_batch = 32;
  run.dp = 256;
  run.pp = 1;
  EXPECT_EQ(with_told_by_rates(run).global_batch, 8192);
  run.pp = 2;
  EXPECT_EQ(with_told_by_rates(run).global_batch, 0);
  run.pp = 1;
  run.micro_batch = std::int64_t{1} << 50;
  run.dp = std::int64_t{1} << 50;
  EXPECT_EQ(with_told_by_rates(run).global_batch, 0);
}

}  // namespace
}  // namespace braid
