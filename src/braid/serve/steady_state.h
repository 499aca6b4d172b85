#pragma once

#include "braid/serve/step_model.h"

namespace braid {

/// What users ask of a service: requests alike, a fixed number of them under way.
struct ServingLoad {
  double input_tokens = 0, output_tokens = 0;
  double concurrency = 1;  ///< Requests under way at once, in the system in all.
  /// Of all requests, the share that arrives together at the start, as in benchmarks that send
  /// `concurrency` requests at once and then one for each that is answered; 0: none.
  double burst_share = 0;
  double cached_share = 0;  ///< Of the input, what a prefix cache has already.
};

/// Means over requests.
struct ServingTimes {
  double ttft_s = 0;          ///< Time to the first token.
  double tpot_s = 0;          ///< Time for each further token.
  double requests_per_s = 0;  ///< Of the whole system.
  double sequences = 0;       ///< That decode at once, in all.
  double prompt_s = 0;        ///< A prompt alone, without waiting.
  double waiting_s = 0;       ///< Part of ttft_s.
};

/// New tokens of a step at most, and sequences that a worker runs at once at most.
struct BatchLimits {
  double chunk_tokens = 8192;
  double sequences = 256;
};

/// Steps that steady_state() looks at, at most.
inline constexpr int kMostSteadySteps = 30;

/// What the steps of one prompt take, `prompts` of them side by side on each attention rank.
/// Prompts longer than a chunk take several steps; shorter ones share one.
double prompt_time(const StepModel& step, const EngineFigures& figures, double input_tokens,
                   double prompts, const BatchLimits& limits);

/// The mean-field steady state of one worker that does both, prompts and decoding:
///
///     tpot = decode(B) + stall · (B - 1) · prompt / output
///     rate = B / (output · tpot)
///     ttft = request + prompt + wait,    wait = step(B) / 2 + queue
///     concurrency = B + rate · ttft      unless B is at its limit: then what is over waits
///
/// A step takes decode(B) times the tokens that it makes of a sequence, 1 without drafts. `prompt`
/// is a prompt's share of the steps it is in, `queue` that of M/D/1 with the prompts' load
/// but never more than all prompts under way, and `burst_share` of the requests wait for half of a
/// burst. Cost: kMostSteadySteps at most.
ServingTimes steady_state(const StepModel& step, const EngineFigures& figures,
                          const ServingLoad& load, const BatchLimits& limits);

}  // namespace braid
