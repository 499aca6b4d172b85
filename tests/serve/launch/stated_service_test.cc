#include "braid/serve/launch/stated_service.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/stated_times.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;
using testing::HasSubstr;

/// The same but for sequences, of which engines take as many in every attention group.
void expect_same(const WorkerPlan& read, const WorkerPlan& planned) {
  EXPECT_EQ(read.engine->name, planned.engine->name);
  EXPECT_EQ(read.format.name, planned.format.name);
  EXPECT_EQ(read.format.cache, planned.format.cache);
  EXPECT_EQ(read.layout, planned.layout);
  EXPECT_EQ(read.workers, planned.workers);
  EXPECT_EQ(read.draft_tokens, planned.draft_tokens);
  EXPECT_EQ(read.limits.chunk_tokens, planned.limits.chunk_tokens);
  const auto groups = static_cast<double>(planned.layout.dp);
  const bool each = planned.engine->name != "sglang";
  const double sequences = planned.limits.sequences;
  EXPECT_EQ(read.limits.sequences, each ? groups * std::ceil(sequences / groups) : sequences);
}

void expect_round_trip(const ServingFixture& with, const ServingJob& job,
                       const std::string& draft) {
  const ServingOutcome found = plan_serving(job);
  ASSERT_TRUE(found.plan);
  const std::string lines =
      launch_lines(*found.plan, {with.model.name, draft, job.input_tokens + job.output_tokens});
  ASSERT_TRUE(is_launch_text(lines));
  const LaunchedService launched = read_launch_lines(lines, "plan.sh");
  EXPECT_TRUE(launched.unknown.empty()) << lines;
  EXPECT_TRUE(launched.notes.empty()) << lines;
  const StatedService stated =
      stated_service(launched, {with.model, with.system.device_count, ""}, "plan.sh");
  EXPECT_EQ(stated.plan.disaggregated, found.plan->disaggregated);
  EXPECT_EQ(stated.plan.devices, found.plan->devices);
  expect_same(stated.plan.decode, found.plan->decode);
  if (found.plan->disaggregated) expect_same(stated.plan.prefill, found.plan->prefill);
  const StatedTimes times = stated_times(stated.plan, job);
  EXPECT_TRUE(times.fits());
  EXPECT_NEAR(times.plan.requests_per_s, found.plan->requests_per_s,
              1e-9 * found.plan->requests_per_s);
  EXPECT_NEAR(times.plan.tpot_s, found.plan->tpot_s, 1e-9);
  EXPECT_NEAR(times.plan.ttft_s, found.plan->ttft_s, 1e-9);
}

TEST(StatedService, IsThePlanWhoseLinesItReads) {
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    for (const char* model : {"llama-3-8b", "llama-3-70b", "deepseek-v3", "qwen3-235b-a22b"}) {
      const ServingFixture with(model, "dgx-h200:16", engine);
      for (const bool disaggregated : {false, true}) {
        SCOPED_TRACE(std::string(engine) + " " + model + (disaggregated ? " disaggregated" : ""));
        ServingJob job = with.job(2048, 256);
        job.aggregated = !disaggregated;
        job.disaggregated = disaggregated;
        expect_round_trip(with, job, "");
      }
    }
  }
}

TEST(StatedService, DraftsAndShardedCachesComeBack) {
  const ServedModel draft = load_served_model("llama-3-8b");
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    SCOPED_TRACE(engine);
    ServingFixture with("llama-3-70b", "dgx-h100:2", engine);
    with.engine.most_sequences = 8;
    ServingJob job = with.job(1024, 128);
    job.disaggregated = false;
    job.tpot_s = 0.03;
    job.draft = {&draft, 0.8, 0};
    expect_round_trip(with, job, "llama-3-8b");
  }
  // Groups, stages and sharded caches that no plan above may have.
  const ServingFixture with("deepseek-v3", "dgx-h200:32", "vllm");
  ServingPlan plan;
  plan.decode = {
      &with.engine, serving_format(with.model, "fp8"), {4, 2, 2, 1, 8, 2}, 2, {4096, 48}, 0};
  plan.decode.workers = 2;
  const LaunchedService launched = read_launch_lines(launch_lines(plan, {"m", "", 4096}), "f");
  const StatedService stated = stated_service(launched, {with.model, 32, ""}, "f");
  expect_same(stated.plan.decode, plan.decode);
}

TEST(StatedService, DataParallelismOfDenseModelsIsCopies) {
  const ServedModel dense = load_served_model("llama-3-8b");
  const LaunchedService launched = read_launch_lines("vllm serve m -tp 2 -dp 4", "f");
  const StatedService stated = stated_service(launched, {dense, 8, "fp8"}, "f");
  EXPECT_EQ(stated.plan.decode.workers, 4);
  EXPECT_EQ(stated.plan.decode.layout.devices(), 2);
  EXPECT_EQ(stated.plan.devices, 8);
  EXPECT_THAT(stated.not_given, testing::Contains(HasSubstr("sequences at once: 1024")));
}

TEST(StatedService, SaysWhatCannotBe) {
  const ServedModel dense = load_served_model("llama-3-8b");
  const ServedModel sparse = load_served_model("deepseek-v3");
  const auto refusal = [](const std::string& line, const ServedModel& model) {
    try {
      stated_service(read_launch_lines(line, "f"), {model, 8, "fp8"}, "f");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("vllm serve m -tp 16", dense), HasSubstr("take 16 devices, and there are 8"));
  EXPECT_THAT(refusal("python3 -m sglang.launch_server --tp 8 --ep 3", sparse),
              HasSubstr("3 ranks do not divide the 8 ranks"));
}

/// Held against the parts that it is made of.
TEST(StatedTimes, TellsWhatAWorkerLacks) {
  const ServingFixture with("llama-3-70b", "dgx-h100:8", "vllm");
  const ServingJob job = with.job(4096, 512);
  ServingPlan plan;
  plan.decode = {
      &with.engine, serving_format(with.model, "bf16"), {1, 1, 1, 1, 1, 1}, 8, {8192, 64}, 0};
  const StatedTimes one = stated_times(plan, job);
  EXPECT_FALSE(one.fits());
  EXPECT_FALSE(one.holds_targets());
  const WorkerMemory memory = worker_memory(with.worker("bf16", plan.decode.layout), 8192);
  EXPECT_NEAR(one.decode.missing_bytes, memory.of_sequence(4096 + 256, 16) - memory.room_bytes, 1);
  plan.decode.layout = {4, 1, 1, 4, 1, 1};
  plan.decode.workers = 2;
  const StatedTimes four = stated_times(plan, job);
  EXPECT_TRUE(four.fits());
  EXPECT_TRUE(four.holds_targets());
  // Targets are held at the load told, and more memory never hurts.
  EXPECT_LE(four.plan.tpot_s, job.tpot_s);
  EXPECT_LE(four.sequences, 64);
  Engine more = with.engine;
  more.memory_share = 0.95;
  plan.decode.engine = &more;
  EXPECT_GE(stated_times(plan, job).decode.held, four.decode.held);
  EXPECT_GE(stated_times(plan, job).plan.requests_per_s, four.plan.requests_per_s);
}

}  // namespace
}  // namespace braid
