#include "braid/serve/serving_plan.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/disaggregated.h"
#include "braid/serve/launch/launch_lines.h"
#include "braid/serve/planned_worker.h"
#include "braid/serve/stated_times.h"
#include "braid/serve/worker_memory.h"

#include "serve/serving_fixture.h"
#include "serve/serving_oracle.h"

namespace braid {
namespace {

using test::most_of_all_aggregated;
using test::ServingFixture;
using testing::HasSubstr;
using testing::Not;

double best(const ServingJob& job) {
  const ServingOutcome outcome = plan_serving(job);
  return outcome.plan ? outcome.plan->requests_per_s_per_device() : 0;
}

/// One kind of worker for one half: what it takes and how many requests a second it does.
struct Half {
  std::int64_t devices = 1;
  double rate = 0;
};

/// All workers of either half that hold their target, by the closed forms alone.
std::vector<Half> halves_of(const ServingFixture& with, const ServingJob& job, bool prompts) {
  std::vector<Half> halves;
  const Engine& engine = with.engine;
  for (const ServingLayout& layout : serving_layouts(with.model, with.system)) {
    const Worker worker{&with.model,         &engine, &with.system, &with.kernels,
                        job.formats.front(), layout};
    const double held = held_sequences(worker, worker_memory(worker, engine.chunk_tokens),
                                       kept_tokens(engine, job.input_tokens, job.output_tokens));
    if (held < 1) continue;
    const StepModel step(worker);
    const TimeFactors factors = factors_of(engine.corrections, corrected_runs_of(worker, true));
    if (!prompts) {
      for (const double batch : batch_sizes(held)) {
        const double ranks = static_cast<double>(layout.dp * layout.pp);
        const StepShape shape{std::max(batch / ranks, 1.0),
                              job.input_tokens + job.output_tokens / 2, 0, 0, 0};
        const double tpot_s = factors.tpot * step.time(shape);
        if (tpot_s > job.tpot_s) continue;
        halves.push_back({layout.devices(), batch / (job.output_tokens * tpot_s)});
      }
      continue;
    }
    for (const double chunk : kChunkSizes) {
      const double side = std::max(1.0, std::floor(chunk / job.input_tokens));
      const double step_s = step.time({0, 0, side, job.input_tokens, 0});
      const double left_s = job.ttft_s / factors.ttft - engine.figures.request_s -
                            engine.figures.handover_s - cache_transfer_s(worker, job.input_tokens) -
                            step_s;
      if (left_s < 0) continue;
      // M/D/1: a load of `busy` waits busy / (2 (1 - busy)) services.
      const double busy = 2 * left_s / (2 * left_s + step_s);
      halves.push_back(
          {layout.devices(), busy * side * static_cast<double>(layout.dp * layout.pp) / step_s});
    }
  }
  return halves;
}

/// The most requests a second and device of all services with workers of either half.
double most_of_all_pairs(const ServingFixture& with, const ServingJob& job) {
  const std::int64_t all = with.system.device_count;
  double most = 0;
  for (const Half& prompts : halves_of(with, job, true)) {
    for (const Half& decodes : halves_of(with, job, false)) {
      for (std::int64_t p = 1; p * prompts.devices < all; ++p) {
        for (std::int64_t d = 1; p * prompts.devices + d * decodes.devices <= all; ++d) {
          const double rate = std::min(static_cast<double>(p) * prompts.rate,
                                       static_cast<double>(d) * decodes.rate);
          most =
              std::max(most, rate / static_cast<double>(p * prompts.devices + d * decodes.devices));
        }
      }
    }
  }
  return most;
}

TEST(ServingPlan, IsTheBestOfItsSpace) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  for (const double tpot_s : {0.012, 0.05}) {
    for (const bool disaggregated : {false, true}) {
      ServingJob job = with.job(1024, 128);
      job.tpot_s = tpot_s;
      job.disaggregated = disaggregated;
      const ServingOutcome found = plan_serving(job);
      double most = most_of_all_aggregated(job);
      if (disaggregated) most = std::max(most, most_of_all_pairs(with, job));
      ASSERT_EQ(found.plan.has_value(), most > 0);
      if (!found.plan) continue;
      EXPECT_NEAR(found.plan->requests_per_s_per_device() / most, 1, 1e-9);
      EXPECT_LE(found.plan->tpot_s, tpot_s);
      EXPECT_LE(found.plan->ttft_s, job.ttft_s);
    }
  }
}

/// Where prompts take most of the time, few sequences of a batch decode, and their steps are
/// shorter than those of a full batch, which alone would miss the target.
TEST(ServingPlan, IsTheBestOfItsSpaceWherePromptsTakeMostOfTheTime) {
  for (const char* engine : {"sglang", "trtllm"}) {
    const ServingFixture with("llama-3-8b", "dgx-h100:2", engine);
    for (const double output : {1.0, 8.0, 32.0}) {
      for (const double tpot_s : {0.004, 0.008, 0.02}) {
        ServingJob job = with.job(8000, output);
        job.disaggregated = false;
        job.ttft_s = 10;
        job.tpot_s = tpot_s;
        const ServingOutcome found = plan_serving(job);
        const double most = most_of_all_aggregated(job);
        ASSERT_EQ(found.plan.has_value(), most > 0) << engine << output << tpot_s;
        if (!found.plan) continue;
        EXPECT_DOUBLE_EQ(found.plan->requests_per_s_per_device(), most)
            << engine << " " << output << " " << tpot_s;
        for (const ServingPoint& point : found.front) {
          if (point.tpot_s > tpot_s || point.ttft_s > job.ttft_s) continue;
          EXPECT_LE(point.tokens_per_s_per_device,
                    found.plan->requests_per_s_per_device() * output * (1 + 1e-9));
        }
      }
    }
  }
}

/// One layer of latent attention on devices that have room for two sequences beside its weights:
/// tensor parallelism makes room, and caches sharded by tokens use it.
TEST(ServingPlan, ShardedCachesAreSearchedExactly) {
  ServingFixture with("deepseek-v2", "dgx-h200:4", "vllm");
  with.model.layers.resize(1);
  with.model.layers.front().count = 1;
  with.engine.most_sequences = 64;
  const WorkerMemory alone = worker_memory(with.worker("fp8", {1, 1, 1, 1, 1, 1}), 8192);
  Chip& chip = with.system.groups.front().chip;
  chip.memory.bytes -=
      (alone.room_bytes - 2.5 * 100000 * alone.token_bytes) / with.engine.memory_share;
  ServingJob job = with.job(98000, 2000);
  job.ttft_s = 10;
  job.tpot_s = 1;
  job.cached_share = 0.98;
  job.disaggregated = false;
  const ServingOutcome found = plan_serving(job);
  ASSERT_TRUE(found.plan);
  EXPECT_GT(found.plan->decode.layout.cp, 1);
  EXPECT_DOUBLE_EQ(found.plan->requests_per_s_per_device(), most_of_all_aggregated(job));
  EXPECT_THAT(launch_lines(*found.plan, {"m", "", 100000}),
              HasSubstr(" --decode-context-parallel-size " +
                        std::to_string(found.plan->decode.layout.cp) + " "));
  with.engine.splits_caches.clear();
  const ServingOutcome whole = plan_serving(job);
  ASSERT_TRUE(whole.plan);
  EXPECT_LT(whole.plan->requests_per_s_per_device(), found.plan->requests_per_s_per_device());
}

ServingJob drafting(const ServingFixture& with, const ServedModel& draft, double acceptance) {
  ServingJob job = with.job(1024, 128);
  job.disaggregated = false;
  job.tpot_s = 0.03;
  job.draft = {&draft, acceptance, 0};
  return job;
}

TEST(ServingPlan, DraftsAreSearchedExactlyAndNeverHurt) {
  ServingFixture with("llama-3-70b", "dgx-h100:2", "vllm");
  with.engine.most_sequences = 8;
  const ServedModel draft = load_served_model("llama-3-8b");
  double before = 0;
  {
    ServingJob job = drafting(with, draft, 0.5);
    job.draft = {};
    before = best(job);
  }
  for (const double acceptance : {0.0, 0.7, 0.95}) {
    const ServingJob job = drafting(with, draft, acceptance);
    const ServingOutcome found = plan_serving(job);
    ASSERT_TRUE(found.plan);
    EXPECT_DOUBLE_EQ(found.plan->requests_per_s_per_device(), most_of_all_aggregated(job));
    // The more are accepted the better; without any, nothing is drafted.
    EXPECT_GE(found.plan->requests_per_s_per_device(), before);
    EXPECT_EQ(found.plan->decode.draft_tokens > 0, acceptance > 0);
    before = found.plan->requests_per_s_per_device();
  }
}

TEST(ServingPlan, GivenDraftsAreTaken) {
  ServingFixture with("llama-3-70b", "dgx-h100:2", "sglang");
  with.engine.most_sequences = 8;
  const ServedModel draft = load_served_model("llama-3-8b");
  ServingJob job = drafting(with, draft, 0.8);
  job.draft.draft_tokens = 3;
  const ServingOutcome found = plan_serving(job);
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.plan->decode.draft_tokens, 3);
  EXPECT_EQ(found.plan->decode.layout.pp, 1);
  EXPECT_THAT(launch_lines(*found.plan, {"m", "d", 1152}),
              HasSubstr("--speculative-algorithm STANDALONE --speculative-draft-model-path d "
                        "--speculative-num-steps 3 --speculative-eagle-topk 1 "
                        "--speculative-num-draft-tokens 4"));
}

TEST(ServingPlan, EnginesAreToldOfDrafts) {
  ServingPlan plan;
  plan.decode.layout = {2, 1, 1, 2, 1, 1};
  plan.decode.draft_tokens = 3;
  const Engine vllm = load_engine("vllm"), trtllm = load_engine("trtllm");
  plan.decode.engine = &vllm;
  EXPECT_THAT(launch_lines(plan, {"m", "d", 1024}),
              HasSubstr(R"( --speculative-config '{"method":"draft_model","model":"d",)"
                        R"("num_speculative_tokens":3,"draft_tensor_parallel_size":2}')"));
  plan.decode.engine = &trtllm;
  EXPECT_THAT(launch_lines(plan, {"m", "d", 1024}),
              HasSubstr("speculative_config: {decoding_type: DraftTarget, max_draft_len: 3, "
                        "speculative_model_dir: d}"));
  plan.decode.draft_tokens = 0;
  EXPECT_THAT(launch_lines(plan, {"m", "", 1024}), Not(HasSubstr("speculative")));
}

TEST(ServingPlan, EnginesAreToldTheNumbersOfWeights) {
  const ServedModel model = load_served_model("llama-3-8b");
  const LaunchNames names = {"m", "", 1024, serving_format(model, "bf16")};
  const Engine vllm = load_engine("vllm"), sglang = load_engine("sglang"),
               trtllm = load_engine("trtllm");
  const auto lines = [&](const Engine& engine, const char* precision) {
    ServingPlan plan;
    plan.decode.engine = &engine;
    plan.decode.format = serving_format(model, precision);
    return launch_lines(plan, names);
  };
  // Rounded by the engine as it loads them, or in a checkpoint that the user has to name.
  for (const Engine* engine : {&vllm, &sglang}) {
    EXPECT_THAT(lines(*engine, "fp8"), AllOf(HasSubstr(" --quantization fp8\n"), HasSubstr(" m ")));
    EXPECT_THAT(lines(*engine, "fp8"), HasSubstr(" --kv-cache-dtype fp8"));
    EXPECT_THAT(lines(*engine, "int4"),
                AllOf(HasSubstr("# m-int4: put the path of a checkpoint"), HasSubstr(" m-int4 "),
                      Not(HasSubstr("--quantization"))));
    EXPECT_THAT(lines(*engine, "bf16"), AllOf(HasSubstr(" m "), Not(HasSubstr("fp8"))));
  }
  EXPECT_THAT(lines(trtllm, "fp8"),
              AllOf(HasSubstr("trtllm-serve m-fp8 "), HasSubstr("kv_cache_config: {dtype: fp8}")));
}

TEST(ServingPlan, DisaggregatedIsTheBestOfAllPairsAndNumbersOfWorkers) {
  const ServingFixture with("llama-3-8b", "dgx-h100:4", "vllm");
  for (const double ttft_s : {0.5, 2.0}) {
    ServingJob job = with.job(1024, 256);
    job.ttft_s = ttft_s;
    job.tpot_s = 0.015;
    job.aggregated = false;
    const ServingOutcome found = plan_serving(job);
    ASSERT_TRUE(found.plan);
    const double most = most_of_all_pairs(with, job);
    EXPECT_NEAR(found.plan->requests_per_s_per_device() / most, 1, 1e-9) << ttft_s;
  }
}

/// The time to the first token is that at the service's own rate: of prompts that wait as in an
/// M/D/1 queue, and so below the target where decode workers hold the rate down.
TEST(ServingPlan, DisaggregatedTtftIsThatOfTheRate) {
  const ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  int below = 0;
  for (const double input : {256.0, 1024.0, 4096.0}) {
    ServingJob job = with.job(input, 256);
    job.ttft_s = 2;
    job.tpot_s = 0.015;
    job.aggregated = false;
    const ServingOutcome found = plan_serving(job);
    ASSERT_TRUE(found.plan);
    const ServingPlan& plan = *found.plan;
    const PlannedWorker prefill(plan.prefill, job);
    const StepModel step(prefill.worker);
    const Engine& engine = *plan.prefill.engine;
    const double side = std::max(1.0, std::floor(plan.prefill.limits.chunk_tokens / input));
    const double step_s = step.time({0, 0, side, input, 0});
    const double all = side * static_cast<double>(plan.prefill.layout.dp * plan.prefill.layout.pp);
    const double busy =
        plan.requests_per_s / static_cast<double>(plan.prefill.workers) * step_s / all;
    const TimeFactors factors =
        factors_of(engine.corrections, corrected_runs_of(prefill.worker, true));
    const double ttft_s = factors.ttft * (engine.figures.request_s + engine.figures.handover_s +
                                          cache_transfer_s(prefill.worker, input) +
                                          step_s * (1 + busy / (2 * (1 - busy))));
    EXPECT_NEAR(plan.ttft_s / ttft_s, 1, 1e-9) << input;
    EXPECT_LE(plan.ttft_s, job.ttft_s) << input;
    below += plan.ttft_s < 0.99 * job.ttft_s ? 1 : 0;
    // As it is stated.
    EXPECT_NEAR(stated_times(plan, job).plan.ttft_s / ttft_s, 1, 1e-9) << input;
  }
  EXPECT_GT(below, 0);
}

TEST(ServingPlan, MoreMemoryBandwidthAndDevicesNeverHurt) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  const double base = best(with.job(1024, 128));
  EXPECT_GT(base, 0);
  ServingFixture more("llama-3-8b", "dgx-h100:2", "vllm");
  more.system.groups.front().chip.memory.bytes *= 1.5;
  EXPECT_GE(best(more.job(1024, 128)), base);
  more.system.groups.front().chip.memory.bytes_per_s *= 1.3;
  EXPECT_GE(best(more.job(1024, 128)), base);
  const ServingFixture larger("llama-3-8b", "dgx-h100:4", "vllm");
  EXPECT_GE(best(larger.job(1024, 128)), base);
}

/// The same for other models, engines and kinds of service.
TEST(ServingPlan, MoreMemoryAndBandwidthNeverHurtOthersEither) {
  for (const char* model : {"gpt-oss-120b", "qwen3-32b"}) {
    for (const char* engine : {"vllm", "sglang", "trtllm"}) {
      for (const double tpot_s : {0.01, 0.04}) {
        SCOPED_TRACE(std::string(model) + " " + engine + " " + std::to_string(tpot_s));
        ServingFixture with(model, "dgx-h100:4", engine);
        ServingJob job = with.job(3000, 200);
        job.tpot_s = tpot_s;
        double before = best(job);
        with.system.groups.front().chip.memory.bytes *= 1.4;
        double now = best(job);
        EXPECT_GE(now, before * (1 - 1e-9));
        before = now;
        with.system.groups.front().chip.memory.bytes_per_s *= 1.4;
        now = best(job);
        EXPECT_GE(now, before * (1 - 1e-9));
      }
    }
  }
}

TEST(ServingPlan, LooserTargetsNeverHurt) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "sglang");
  double before = 0;
  for (const double tpot_s : {0.005, 0.01, 0.02, 0.04}) {
    ServingJob job = with.job(512, 128);
    job.tpot_s = tpot_s;
    const double now = best(job);
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(ServingPlan, SaysWhatCannotBe) {
  const ServingFixture with("llama-3-8b", "dgx-h100:1", "vllm");
  ServingJob job = with.job(1024, 128);
  job.ttft_s = 1e-4;
  const ServingOutcome none = plan_serving(job);
  EXPECT_FALSE(none.plan);
  EXPECT_GT(none.least_ttft_s, job.ttft_s);
  const ServingJob longer = with.job(1e6, 128);
  EXPECT_THROW(plan_serving(longer), Error);
}

/// What does not fit is a value: no plan, and what a GPU lacks by the arithmetic of its memory.
TEST(ServingPlan, SaysWhatAGpuLacksWhereNothingFits) {
  const ServingFixture with("deepseek-v3", "dgx-h100:1", "vllm");
  ServingJob job = with.job(1024, 128);
  job.formats.push_back(serving_format(with.model, "fp4"));
  const ServingOutcome none = plan_serving(job);
  EXPECT_FALSE(none.plan);
  EXPECT_EQ(none.options, 0);
  ASSERT_EQ(none.unserved.size(), 2U);
  EXPECT_EQ(none.unserved[0].name, "fp8");
  EXPECT_EQ(none.unserved[0].lacks, "");
  const Engine& engine = with.engine;
  const WorkerMemory memory =
      worker_memory(with.worker("fp8", {1, 1, 1, 1, 1, 1}), engine.chunk_tokens);
  EXPECT_NEAR(
      none.unserved[0].missing_bytes,
      memory.of_sequence(kept_tokens(engine, 1024, 128), engine.block_tokens) - memory.room_bytes,
      1);
  // Whether it would fit or not, the chip does not multiply it.
  EXPECT_EQ(none.unserved[1].name, "fp4");
  EXPECT_EQ(none.unserved[1].lacks, "no kernels of GEMMs in nvfp4 are known of h100-sxm");
  // Nothing that the chip could do: bad input.
  job.formats = {serving_format(with.model, "fp4")};
  EXPECT_THROW(plan_serving(job), Error);
}

TEST(ServingPlan, FormatsWithoutKernelsAreNoChoice) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  ServingJob job = with.job(1024, 128);
  job.formats = serving_formats(with.model);
  const ServingOutcome found = plan_serving(job);
  ASSERT_TRUE(found.plan);
  for (const ServingFormat& format : job.formats) {
    const bool unserved =
        std::any_of(found.unserved.begin(), found.unserved.end(),
                    [&](const UnservedFormat& each) { return each.name == format.name; });
    ServingJob alone = job;
    alone.formats = {format};
    if (unserved) {
      EXPECT_THROW(plan_serving(alone), Error) << format.name;
    } else {
      EXPECT_GT(plan_serving(alone).options, 0) << format.name;
    }
  }
}

TEST(ServingPlan, DevicesForARateAreWholeWorkers) {
  ServingPlan plan;
  plan.decode.workers = 2;
  plan.decode.layout = {4, 1, 1, 4, 1, 1};
  plan.decode.requests_per_s = 5;
  EXPECT_EQ(devices_for_rate(plan, 5), 4);
  EXPECT_EQ(devices_for_rate(plan, 5.1), 8);
  EXPECT_EQ(devices_for_rate(plan, 40), 32);
}

/// Of two kinds the fewest of either, whatever the proportions of the plan.
TEST(ServingPlan, DevicesForARateAreTheFewestOfBothKinds) {
  const ServingFixture with("llama-3-8b", "dgx-h100:4", "vllm");
  ServingJob job = with.job(2048, 256);
  job.aggregated = false;
  const ServingOutcome found = plan_serving(job);
  ASSERT_TRUE(found.plan);
  const WorkerPlan& prefill = found.plan->prefill;
  const WorkerPlan& decode = found.plan->decode;
  EXPECT_DOUBLE_EQ(found.plan->requests_per_s,
                   std::min(static_cast<double>(prefill.workers) * prefill.requests_per_s,
                            static_cast<double>(decode.workers) * decode.requests_per_s));
  for (const double rate : {1.0, 17.0, 60.0, 333.0}) {
    std::int64_t fewest = 1'000'000;
    for (std::int64_t p = 1; p < 200; ++p) {
      for (std::int64_t d = 1; d < 200; ++d) {
        if (static_cast<double>(p) * prefill.requests_per_s < rate ||
            static_cast<double>(d) * decode.requests_per_s < rate) {
          continue;
        }
        fewest = std::min(fewest, p * prefill.layout.devices() + d * decode.layout.devices());
      }
    }
    EXPECT_EQ(devices_for_rate(*found.plan, rate), fewest) << rate;
  }
}

TEST(ServingPlan, FrontIsSortedAndUndominated) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  const ServingOutcome outcome = plan_serving(with.job(1024, 128));
  ASSERT_GT(outcome.front.size(), 2U);
  for (std::size_t i = 1; i < outcome.front.size(); ++i) {
    EXPECT_LT(outcome.front[i - 1].tpot_s, outcome.front[i].tpot_s);
    EXPECT_LT(outcome.front[i - 1].tokens_per_s_per_device,
              outcome.front[i].tokens_per_s_per_device);
  }
}

}  // namespace
}  // namespace braid
