#pragma once

#include "braid/serve/steady_state.h"

namespace braid {

/// Workers that compute prompts and workers that decode, joined by a transfer of the caches.
struct DisaggregatedService {
  const WorkerSteps* prefill = nullptr;
  const WorkerSteps* decode = nullptr;
  double prefill_workers = 1;  ///< 0: as many as are busy for 70 % of the time at most.
  double decode_workers = 1;
  double most_sequences = 0;  ///< That decode at once, of all workers; 0: as many as they hold.
};

/// Seconds for the cache of a prompt from one worker to the other: all of its devices send their
/// part at once, over the network between nodes where the workers are on different ones.
double cache_transfer_s(const Worker& from, double tokens);

/// The mean-field steady state of the whole service:
///
///     tpot = decode(B / workers),  rate = B / (output · tpot)
///     ttft = request + prompt + transfer + queue(rate),   concurrency = B + rate · ttft
///
/// No more than `prefill_workers / prompt` requests a second pass; what is over waits.
ServingTimes steady_state(const DisaggregatedService& service, const EngineFigures& prefill_figures,
                          const EngineFigures& decode_figures, const ServingLoad& load);

}  // namespace braid
