#include "braid/plan/sync_rates.h"

#include <algorithm>

#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Of parameters that are all dense or all of experts.
void add_rates(const StageParameters& most, const DataParallelContext& context, SyncRates& rates) {
  const double parameters = most.dense + most.expert;
  if (parameters <= 0) return;
  const StageSync sync = stage_sync(most, context);
  StageParameters twice_as_many = most;
  twice_as_many.dense *= 2;
  twice_as_many.expert *= 2;
  const StageSync twice = stage_sync(twice_as_many, context);
  ChunkTotals chunk;
  chunk.layers = most.layers;
  chunk.dense_parameters = most.dense;
  chunk.expert_parameters = most.expert;
  const ChunkLoad load = chunk_load(chunk, context);
  const auto set = [&](PerParameter& rate, double time_s) {
    (most.expert > 0 ? rate.expert : rate.dense) = kBelowTolerance * time_s / parameters;
  };
  set(rates.gather, sync.parameter_sync_s);
  // One update, and one message of copies, is of dense parameters and experts together: what it
  // takes to start counts once, whatever their shares.
  set(rates.reduce,
      context.copies > 1 ? twice.gradient_sync_s - sync.gradient_sync_s : sync.gradient_sync_s);
  set(rates.optimizer, twice.optimizer_s - sync.optimizer_s);
  set(rates.forward, load.dp_forward_s);
  // Gathering and scattering hide behind the same pass, each by itself.
  set(rates.backward, std::max(load.dp_forward_s, load.dp_backward_s - load.dp_forward_s));
}

}  // namespace

SyncRates sync_rates(const StageParameters& most, const DataParallelContext& context) {
  SyncRates rates;
  rates.overlap_loss = kBelowTolerance * context.chip->efficiency.overlap_loss;
  StageParameters dense, expert;
  dense.layers = expert.layers = 1;
  dense.dense = most.dense;
  expert.expert = most.expert;
  add_rates(dense, context, rates);
  add_rates(expert, context, rates);
  return rates;
}

}  // namespace braid
