#include "braid/serve/steady_state.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/worker_memory.h"

#include "serve/event_simulation.h"
#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;

TEST(SteadyState, IsNearTheEventSimulation) {
  ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  with.engine.figures.stall = 1;  // Of an engine that runs prompts by themselves, as simulated.
  with.engine.figures.wait_steps = 0.5;
  const StepModel step(with.worker("bf16", {}));
  for (const double concurrency : {4.0, 16.0, 48.0}) {
    const WorkerSteps steps(&step, {1024, 200, 0}, {1024, 64});  // One prompt a step.
    const ServingTimes mean = steady_state(steps, with.engine.figures, {concurrency});
    const SimulatedService service{[&](double sequences) {
                                     return step.time({sequences, 1124, 0, 0, 0});
                                   },
                                   steps.prompts_s(1, with.engine.figures), 64, 200, 0.5};
    const SimulatedTimes exact =
        simulate_closed(service, static_cast<int>(concurrency), static_cast<int>(concurrency) * 20);
    EXPECT_NEAR(mean.tpot_s / exact.tpot_s, 1, 0.1) << concurrency;
    EXPECT_NEAR(mean.requests_per_s / exact.requests_per_s, 1, 0.1) << concurrency;
  }
}

/// Prompts take most of the time, so that a few sequences, or none, decode while others wait.
TEST(SteadyState, IsNearTheEventSimulationOfLongPromptsAndFewTokens) {
  ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  with.engine.figures.stall = 1;
  with.engine.figures.wait_steps = 0.5;
  const StepModel step(with.worker("bf16", {}));
  for (const double input : {2048.0, 6000.0}) {
    for (const double concurrency : {2.0, 3.0, 6.0, 12.0, 24.0}) {
      const WorkerSteps steps(&step, {input, 16, 0}, {input, 32});
      const ServingTimes mean = steady_state(steps, with.engine.figures, {concurrency});
      const SimulatedService service{[&](double sequences) {
                                       return step.time({sequences, input + 8, 0, 0, 0});
                                     },
                                     steps.prompts_s(1, with.engine.figures), 32, 16, 0.5};
      const int requests = static_cast<int>(concurrency) * 50;
      const SimulatedTimes exact =
          simulate_closed(service, static_cast<int>(concurrency), requests);
      const double ttft_s = mean.ttft_s - with.engine.figures.request_s;
      EXPECT_NEAR(mean.tpot_s / exact.tpot_s, 1, 0.06) << input << " " << concurrency;
      EXPECT_NEAR(mean.requests_per_s / exact.requests_per_s, 1, 0.06) << input;
      EXPECT_NEAR(ttft_s / exact.ttft_s, 1, 0.16) << input << " " << concurrency;
    }
  }
}

TEST(SteadyState, FollowsLittlesLaw) {
  const ServingFixture with("llama-3-70b", "dgx-h100:8", "sglang");
  const StepModel step(with.worker("fp8", {4, 1, 1, 4, 1}));
  for (const double limit : {8.0, 512.0}) {
    const WorkerSteps steps(&step, {2048, 256, 0}, {8192, limit});
    const ServingTimes times = steady_state(steps, with.engine.figures, {64});
    EXPECT_NEAR(times.requests_per_s * (times.ttft_s + 256 * times.tpot_s), 64, 0.7) << limit;
  }
}

TEST(SteadyState, PromptsThatComeTogetherWaitForEachOther) {
  ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  with.engine.figures.lockstep = 1;
  const StepModel step(with.worker("bf16", {}));
  const WorkerSteps steps(&step, {4096, 64, 0}, {4096, 256});
  const EngineFigures& figures = with.engine.figures;
  const ServingTimes alone = steady_state(steps, figures, {32, false});
  const ServingTimes together = steady_state(steps, figures, {32, true});
  EXPECT_DOUBLE_EQ(together.tpot_s, alone.tpot_s);
  // The mean of 32 prompts that run one after the other.
  EXPECT_NEAR(together.ttft_s, figures.request_s + 16.5 * steps.prompts_s(1, figures),
              1e-9 * together.ttft_s);
}

TEST(SteadyState, RequestsWaitForAsManyStepsAsAreToEndBefore) {
  ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  const StepModel step(with.worker("bf16", {}));
  const WorkerSteps steps(&step, {128, 4096, 0}, {8192, 256});  // Hardly any prompts.
  EngineFigures figures = with.engine.figures;
  figures.wait_steps = 0.5;
  const ServingTimes soon = steady_state(steps, figures, {8});
  figures.wait_steps = 20;
  const ServingTimes late = steady_state(steps, figures, {8});
  EXPECT_NEAR((late.ttft_s - soon.ttft_s) / (19.5 * late.tpot_s), 1, 0.02);
  // Alone, no step is under way.
  EXPECT_DOUBLE_EQ(steady_state(steps, figures, {1}).waiting_s, 0);
}

/// Who waits for room waits for others to end, however long prompts take.
TEST(SteadyState, CorrectionsOfTpotHoldForTheWaitForRoom) {
  const ServingTimes times = corrected({10, 0.1, 4, 32, 1, 8, 7}, {0.5, 3});
  EXPECT_DOUBLE_EQ(times.ttft_s, 3 * (10 - 7) + 0.5 * 7);
  EXPECT_DOUBLE_EQ(times.waiting_s, 3 * (8 - 7) + 0.5 * 7);
  EXPECT_DOUBLE_EQ(times.room_s, 0.5 * 7);
  EXPECT_DOUBLE_EQ(times.tpot_s, 0.05);
}

TEST(WorkerSteps, AreTheStepModelsAtTheirBatchesAndBetweenThemNear) {
  const ServingFixture with("deepseek-v3", "dgx-h200:8", "sglang");
  const StepModel step(with.worker("fp8", {1, 1, 8, 1, 8}));
  const EngineFigures& figures = with.engine.figures;
  const WorkerSteps steps(&step, {1024, 1024, 0}, {8192, 1024});
  for (const double batch : {1.0, 2.0, 3.0, 8.0, 96.0, 128.0}) {
    EXPECT_DOUBLE_EQ(steps.decode_s(8 * batch, figures), step.time({batch, 1536, 0, 0, 0}))
        << batch;
  }
  for (const double batch : {5.0, 11.0, 57.0, 111.0}) {
    EXPECT_NEAR(steps.decode_s(8 * batch, figures) / step.time({batch, 1536, 0, 0, 0}), 1, 0.03)
        << batch;
  }
  EXPECT_EQ(steps.most_side(), 8);
  const double chunked_s = steps.with_chunk(512).prompts_s(1, figures);
  EXPECT_DOUBLE_EQ(chunked_s, step.time({0, 0, 1, 512, 0}) + step.time({0, 0, 1, 512, 512}));
}

TEST(StepModel, FewTokensReadFewExperts) {
  // 8 of 256 experts each: tokens that choose by themselves share some, so weights are read less
  // often than the tokens' number says, and never more often than there are experts.
  const ServingFixture with("deepseek-v3", "dgx-h200:8", "sglang");
  const StepModel step(with.worker("fp8", {8, 1, 1, 8, 1}));
  const auto experts_s = [&](double sequences) {
    return step.parts({sequences, 1024, 0, 0, 0}).experts;
  };
  EXPECT_LT(experts_s(32), 0.85 * experts_s(256));
  EXPECT_LT(experts_s(1), experts_s(8));
}

TEST(StepModel, FasterMemoryNeverHurts) {
  const ServingFixture slow("deepseek-v3", "dgx-h200:8", "sglang");
  ServingFixture fast("deepseek-v3", "dgx-h200:8", "sglang");
  fast.system.groups.front().chip.memory.bytes_per_s *= 1.5;
  const ServingLayout layout{8, 1, 1, 8, 1};
  const StepModel a(slow.worker("fp8", layout)), b(fast.worker("fp8", layout));
  for (const double sequences : {1.0, 16.0, 256.0}) {
    EXPECT_LE(b.time({sequences, 4096, 0, 0, 0}), a.time({sequences, 4096, 0, 0, 0}));
  }
  EXPECT_LE(b.time({0, 0, 1, 4096, 0}), a.time({0, 0, 1, 4096, 0}));
}

TEST(StepModel, RefusesWhatTheChipLacks) {
  const ServingFixture with("llama-3-70b", "dgx-h100:8", "vllm");
  EXPECT_THROW(StepModel(with.worker("fp4", {})), Error);
  EXPECT_THROW(StepModel(with.worker("fp8", {128, 1, 1, 128, 1})), Error);
  EXPECT_THROW(StepModel(with.worker("fp8", {8, 1, 1, 4, 1})), Error);
}

TEST(WorkerMemory, CountsWeightsAndCaches) {
  const ServingFixture with("llama-3-70b", "dgx-h100:8", "vllm");
  const WorkerMemory memory = worker_memory(with.worker("bf16", {8, 1, 1, 8, 1}), 8192);
  EXPECT_NEAR(memory.weights_bytes, 2 * 70.6e9 / 8, 0.02 * 70.6e9 / 4);
  // 80 layers, one head of 128 on each device, keys and values of two bytes.
  EXPECT_DOUBLE_EQ(memory.token_bytes, 80 * 2 * 128 * 2);
  const WorkerMemory whole = worker_memory(with.worker("bf16", {}), 8192);
  EXPECT_LT(whole.room_bytes, 0);
  EXPECT_EQ(held_sequences(with.worker("bf16", {}), whole, 1000), 0);
}

}  // namespace
}  // namespace braid
