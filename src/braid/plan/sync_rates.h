#pragma once

#include "braid/plan/per_parameter.h"
#include "braid/plan/totals.h"

namespace braid {

/// What data parallelism costs a stage for each parameter on its devices, at the least, in seconds.
struct SyncRates {
  PerParameter gather;  ///< Once, before the first forward pass and hidden behind its last part.
  PerParameter reduce;  ///< Once, behind the last backward pass and hidden behind its first part.
  PerParameter optimizer;          ///< After that.
  double optimizer_s = 0;          ///< Whatever the parameters.
  PerParameter forward, backward;  ///< In every pass, hidden behind its layers (ZeRO-2 and 3).
  double overlap_loss = 0;         ///< Share of what hides behind layers that is lost all the same.
};

/// The times of stage_sync() and chunk_load() as linear forms. They take less for each parameter
/// the more a message carries, so those of a stage that holds `most` parameters, in messages of all
/// of them, are no more than those of any stage with fewer.
SyncRates sync_rates(const StageParameters& most, const DataParallelContext& context);

}  // namespace braid
