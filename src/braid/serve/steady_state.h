#pragma once

#include "braid/serve/worker_steps.h"

namespace braid {

/// What users ask of a service: a fixed number of requests under way.
struct ServingLoad {
  double concurrency = 1;  ///< Requests under way at once, in the system in all.
  /// As benchmarks send them: `concurrency` at once, then one for each that is answered. Part of
  /// the prompts stays together (EngineFigures::lockstep).
  bool benchmark = false;
};

/// Means over requests.
struct ServingTimes {
  double ttft_s = 0;          ///< Time to the first token.
  double tpot_s = 0;          ///< Time per output token after the first.
  double requests_per_s = 0;  ///< Of the whole system.
  double sequences = 0;       ///< That decode at once, in all.
  double prompt_s = 0;        ///< A prompt alone, without waiting.
  double waiting_s = 0;       ///< Part of ttft_s.
  double room_s = 0;          ///< Part of waiting_s: until there is room to decode.
};

/// Of one worker, what corrections of its times go by.
CorrectedRuns corrected_runs_of(const Worker& worker, bool disaggregated);

/// With `factors` applied: requests take longer by that of TPOT, and so does the wait for room,
/// since others must end before.
ServingTimes corrected(ServingTimes times, const TimeFactors& factors);

/// Steps that steady_state() looks at, at most.
inline constexpr int kMostSteadySteps = 30;

/// Numbers of sequences that differ by less than this share of all that may run are the same steady
/// state.
inline constexpr double kSteadyShare = 1e-4;
/// Requests under way above this share of what a steady state accounts for are not what the search
/// for it left open, but wait for room.
inline constexpr double kAboveSteady = 1.001;

/// Of the sequences that may run, the share that decodes at least in steady_state().
inline constexpr double kLeastDecoding = 0.05;

/// The mean-field steady state of one worker that does both, prompts and decoding:
///
///     tpot = decode(B) + stall · B · others · prompt / (output - 1)
///     others = (C - 1) / (C - rate · prompt)
///     rate = B / ((output - 1) · tpot)
///     ttft = request + prompt + wait,    wait = wait_steps · decode(B) + queue
///     C = concurrency = B + rate · ttft  unless B is at its limit, which C then is: the rest waits
///
/// While a sequence decodes it meets the prompts of the C - 1 other requests, none of which runs
/// beside its own. Requests end, and others come, at the end of a step of decoding: half of those
/// that come together go before, the `queue`. Within some per cent of a simulation of requests
/// one by one, whatever prompts and decoding take (tests/serve/steady_state_test.cc).
///
/// A step takes decode(B) times the tokens that it makes of a sequence, 1 without drafts. `prompt`
/// is a prompt's share of the steps it is in. Of a benchmark the share `lockstep` of the prompts
/// comes all at once and waits for half of the others. Cost: kMostSteadySteps interpolations at
/// most.
ServingTimes steady_state(const WorkerSteps& steps, const EngineFigures& figures,
                          const ServingLoad& load);

}  // namespace braid
