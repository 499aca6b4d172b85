#include "braid/plan/sync_rates.h"

#include <gtest/gtest.h>

#include "braid/system/catalogue.h"

namespace braid {
namespace {

// A stage of any size takes at least its share of what the largest takes.
TEST(SyncRates, AreBelowTheTimesOfAllSmallerStages) {
  const System system = load_system("dgx-h100:4nodes");
  for (int trial = 0; trial < 8; ++trial) {
    const Zero zero = static_cast<Zero>(trial % 4);
    Parallelism parallel;
    parallel.replicate = trial < 4 ? 1 : 2;
    parallel.tp = 4;
    parallel.dp = 8;
    parallel.zero = zero;
    const DataParallelContext context = data_parallel_context(parallel, {}, system);
    StageParameters most;
    most.dense = 3e9;
    most.expert = 5e9;
    const SyncRates rates = sync_rates(most, context);
    EXPECT_GT(rates.optimizer.dense, 0);
    for (double share = 1; share > 1e-7; share /= 3) {
      StageParameters some;
      some.dense = share * most.dense;
      some.expert = share * most.expert;
      some.layers = 4;
      const StageSync sync = stage_sync(some, context);
      EXPECT_LE(rates.gather.of(some.dense, some.expert), sync.parameter_sync_s);
      EXPECT_LE(rates.reduce.of(some.dense, some.expert), sync.gradient_sync_s);
      ChunkTotals chunk;
      chunk.layers = 4;
      chunk.dense_parameters = some.dense;
      chunk.expert_parameters = some.expert;
      const ChunkLoad load = chunk_load(chunk, context);
      EXPECT_LE(rates.forward.of(some.dense, some.expert), load.dp_forward_s);
      EXPECT_LE(rates.backward.of(some.dense, some.expert), load.dp_backward_s);
      EXPECT_LE(rates.optimizer.of(some.dense, some.expert), sync.optimizer_s);
    }
  }
}

}  // namespace
}  // namespace braid
