#include "braid/serve/cache_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/worker_memory.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;
using testing::ElementsAre;

std::vector<std::int64_t> splits(const char* model, const char* engine, std::int64_t tp) {
  return cache_splits(load_served_model(model), load_engine(engine), tp);
}

// vLLM's rules: latent attention counts as one head, grouped queries divide what tensor parallelism
// would copy, and neither windows nor states go with it.
TEST(CacheSplit, DividesCopiesAlone) {
  EXPECT_THAT(splits("deepseek-v3", "vllm", 8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(splits("deepseek-v3", "sglang", 4), ElementsAre(1, 2, 4));
  EXPECT_THAT(splits("deepseek-v3", "trtllm", 8), ElementsAre(1));
  EXPECT_THAT(splits("qwen3-235b-a22b", "vllm", 8), ElementsAre(1, 2));
  EXPECT_THAT(splits("qwen3-235b-a22b", "vllm", 4), ElementsAre(1));
  EXPECT_THAT(splits("qwen3-235b-a22b", "sglang", 8), ElementsAre(1));
  EXPECT_THAT(splits("llama-3-70b", "vllm", 8), ElementsAre(1));
  EXPECT_THAT(splits("gpt-oss-120b", "vllm", 16), ElementsAre(1));
  EXPECT_THAT(splits("nemotron-h-8b", "vllm", 16), ElementsAre(1));
}

TEST(CacheSplit, CachesShrinkAndRanksExchange) {
  const ServingFixture with("deepseek-v3", "dgx-h200:8", "vllm");
  const Worker whole = with.worker("fp8", {8, 1, 1, 1, 8, 1});
  const Worker split = with.worker("fp8", {8, 1, 1, 1, 8, 8});
  const WorkerMemory before = worker_memory(whole, 8192), after = worker_memory(split, 8192);
  EXPECT_DOUBLE_EQ(after.token_bytes, before.token_bytes / 8);
  EXPECT_EQ(after.weights_bytes, before.weights_bytes);
  const StepModel whole_step(whole), split_step(split);
  for (const double context : {1000.0, 100000.0}) {
    const StepShape shape{32, context, 0, 0, 0};
    const StepParts a = whole_step.parts(shape), b = split_step.parts(shape);
    EXPECT_GT(b.collectives, a.collectives);
    EXPECT_EQ(b.projections, a.projections);
    // Every rank has all heads of an eighth of the tokens.
    if (context > 10000) {
      EXPECT_LT(b.attention, a.attention);
    }
  }
  EXPECT_THROW(StepModel(with.worker("fp8", {8, 1, 1, 1, 8, 16})), Error);
}

/// The rest of a prompt needs the cached tokens of all ranks.
TEST(CacheSplit, LaterChunksGatherTheCache) {
  const ServingFixture with("deepseek-v3", "dgx-h200:8", "vllm");
  const StepModel whole(with.worker("fp8", {8, 1, 1, 1, 8, 1}));
  const StepModel split(with.worker("fp8", {8, 1, 1, 1, 8, 8}));
  const StepShape first{0, 0, 1, 4096, 0}, later{0, 0, 1, 4096, 65536};
  EXPECT_DOUBLE_EQ(split.parts(first).kernels(), whole.parts(first).kernels());
  EXPECT_GT(split.parts(later).collectives, whole.parts(later).collectives);
}

}  // namespace
}  // namespace braid
