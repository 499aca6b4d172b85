#include "braid/plan/sync_rates.h"

#include <algorithm>

#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Times of one update, and of one message of copies, are of dense parameters and experts together:
/// what it takes to start counts once, whatever their shares. So only what more of them add counts.
double update_s(const StageParameters& most, const DataParallelContext& context) {
  const double ranks = context.zero < Zero::optimizer ? 1
                       : most.expert > 0              ? context.expert_ranks
                                                      : context.dense_ranks;
  const double share = (most.dense + most.expert) / ranks;
  const auto time_s = [&](double parameters) {
    return optimizer_time_s(parameters, context.precision, *context.chip,
                            context.offload_optimizer);
  };
  return time_s(2 * share) - time_s(share);
}

double reduce_s(const StageParameters& most, const DataParallelContext& context, double once_s) {
  if (context.copies == 1) return once_s;
  StageParameters twice = most;
  twice.dense *= 2;
  twice.expert *= 2;
  return stage_sync(twice, context).gradient_sync_s - once_s;
}

/// Of parameters that are all dense or all of experts.
void add_rates(const StageParameters& most, const DataParallelContext& context, SyncRates& rates) {
  const double parameters = most.dense + most.expert;
  if (parameters <= 0) return;
  const StageSync sync = stage_sync(most, context);
  ChunkTotals chunk;
  chunk.layers = most.layers;
  chunk.dense_parameters = most.dense;
  chunk.expert_parameters = most.expert;
  const ChunkLoad load = chunk_load(chunk, context);
  const auto set = [&](PerParameter& rate, double time_s) {
    (most.expert > 0 ? rate.expert : rate.dense) = kBelowTolerance * time_s / parameters;
  };
  set(rates.gather, sync.parameter_sync_s);
  set(rates.reduce, reduce_s(most, context, sync.gradient_sync_s));
  set(rates.optimizer, update_s(most, context));
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
