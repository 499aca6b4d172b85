#include "braid/validate/maxtext_scripts.h"

#include <utility>

#include <gtest/gtest.h>

#include "braid/validate/hardware.h"
#include "braid/validate/predict.h"
#include "braid/validate/run_model.h"
#include "braid/validate/run_trainer.h"

namespace braid {
namespace {

MeasuredRun maxtext_run(const char* model, const char* hardware, std::int64_t devices) {
  MeasuredRun run;
  run.framework = "MaxText";
  run.model = model;
  run.hardware = hardware;
  run.devices = devices;
  run.model_tflops_per_device = 100;
  return run;
}

TEST(MaxtextScripts, ModelsHaveTheirSizes) {
  const KnownModel sixteen = scaled_maxtext(16);
  EXPECT_EQ(sixteen.layers, 32);
  EXPECT_EQ(sixteen.hidden, 4096);
  EXPECT_EQ(sixteen.heads, 64);
  EXPECT_EQ(sixteen.ffn, 28672);
  for (std::int64_t scale = 2; scale <= 1024; scale *= 2) {
    MeasuredRun run;
    run.model = "MaxText-" + std::to_string(scale) + "B";
    run.seq_len = 2048;
    const RunModel model = model_of(run);
    ASSERT_TRUE(model.graph) << model.reason;
    const double billions = static_cast<double>(parameter_count(*model.graph)) / 1e9;
    EXPECT_NEAR(billions / static_cast<double>(scale), 1, 0.1) << run.model;
  }
  EXPECT_FALSE(known_model("MaxText-48B"));
}

TEST(MaxtextScripts, SayWhatTheRowDoesNot) {
  const MeasuredRun run = with_maxtext_script(maxtext_run("MaxText-128B", "TPU v5e", 512));
  EXPECT_EQ(run.seq_len, 2048);
  EXPECT_EQ(run.global_batch, 512);
  EXPECT_EQ(run.tp, 16);
  EXPECT_EQ(run.recompute, "selective");
  MeasuredRun own = maxtext_run("MaxText-128B", "TPU v5e", 512);
  own.seq_len = 4096;
  own.global_batch = 1024;
  own.tp = 8;
  own.recompute = "full";
  own = with_maxtext_script(own);
  EXPECT_EQ(own.seq_len, 4096);
  EXPECT_EQ(own.global_batch, 1024);
  EXPECT_EQ(own.tp, 8);
  EXPECT_EQ(own.recompute, "full");
  // No script for that chip, and devices that its degree does not divide.
  EXPECT_EQ(with_maxtext_script(maxtext_run("MaxText-16B", "TPU v5p", 64)).seq_len, 0);
  EXPECT_EQ(with_maxtext_script(maxtext_run("MaxText-128B", "TPU v5e", 40)).seq_len, 0);
  EXPECT_EQ(with_maxtext_script(maxtext_run("llama-2-7b", "TPU v5e", 256)).seq_len, 0);
}

TEST(MaxtextScripts, StepsAreOneMicroBatch) {
  MeasuredRun run = maxtext_run("MaxText-16B", "TPU v5e", 64);
  run.global_batch = 64 * 48;
  const Prediction prediction = predict(run);
  ASSERT_TRUE(prediction.predicted()) << prediction.reason;
  EXPECT_EQ(prediction.parallel.num_micro_batches, 1);
  EXPECT_EQ(prediction.parallel.micro_batch, 48);
}

TEST(MaxtextScripts, NotesSayHowManySlices) {
  MeasuredRun run = maxtext_run("MaxText-64B", "TPU v5p", 128);
  const auto nodes = [&](const char* notes) {
    run.notes = notes;
    const System system = system_of(run).system;
    EXPECT_EQ(system.device_count, 128);
    return system.groups[0].nodes;
  };
  EXPECT_EQ(nodes(""), 1);
  EXPECT_EQ(nodes("1x v5p-256; chips = cores/2"), 1);
  EXPECT_EQ(nodes("3x v5p-256"), 1);  // Does not divide the devices.
  EXPECT_EQ(nodes("0x v5p-256"), 1);
  EXPECT_EQ(nodes("99999999999x v5p-256"), 1);
  ASSERT_EQ(nodes("2x v5p-128; chips = cores/2"), 2);
  const System system = system_of(run).system;
  EXPECT_EQ(system.groups[0].devices_per_node, 64);
  EXPECT_EQ(system.groups[0].intra_node.size, 64);
  EXPECT_EQ(system.groups[0].intra_node.torus_dims, (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_DOUBLE_EQ(system.levels[0].bytes_per_s, 6.25e9);
  EXPECT_DOUBLE_EQ(system.levels[0].unit_bytes_per_s, 64 * 6.25e9);
  EXPECT_EQ(system.levels[0].rails, 16);
  // Slices of no power of two stay whole.
  run.devices = 96;
  EXPECT_EQ(system_of(run).system.groups[0].devices_per_node, 48);
}

/// Slices run alike and sum their gradients at the end: twice (n - 1) / n of each chip's share of
/// the gradients over its share of the network, at 0.8 of the rate.
TEST(MaxtextScripts, SlicesAreReplicasThatSumTheirGradientsLast) {
  const auto iteration = [](std::int64_t devices) {
    const Prediction prediction = predict(maxtext_run("MaxText-64B", "TPU v5e", devices));
    EXPECT_TRUE(prediction.predicted()) << prediction.reason;
    return std::pair{prediction.metrics.iteration_time_s, prediction.metrics.peak_memory_bytes};
  };
  const auto [one_s, one_bytes] = iteration(256);
  MeasuredRun named;
  named.model = "MaxText-64B";
  named.seq_len = 2048;
  const double gradient_bytes = 4 * static_cast<double>(parameter_count(*model_of(named).graph));
  for (const std::int64_t slices : {2, 8, 32}) {
    const auto [time_s, bytes] = iteration(256 * slices);
    const double others = static_cast<double>(slices - 1) / static_cast<double>(slices);
    const double sum_s = 2 * others * gradient_bytes / 256 / (0.8 * 25e9 / 8);
    EXPECT_NEAR(time_s - one_s, sum_s, 0.05 * sum_s) << slices;
    EXPECT_EQ(bytes, one_bytes);
  }
}

}  // namespace
}  // namespace braid
