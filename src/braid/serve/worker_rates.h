#pragma once

#include <string>

#include "braid/serve/steady_state.h"

namespace braid {

/// Times of an aggregated worker, with just as many requests under way as keep `batch` sequences
/// decoding, with `factors` applied.
ServingTimes batch_times(const WorkerSteps& steps, double batch, const TimeFactors& factors);

/// A prompt on an idle prefill worker, until the first token comes from a decode one.
double prompt_alone_s(const WorkerSteps& steps, const TimeFactors& factors);

/// The most requests a second that a prefill worker takes within `ttft_s`: its queue, M/D/1, may
/// wait for what prompt and handover leave of that. 0: they leave nothing.
double prompts_rate(const WorkerSteps& steps, double ttft_s, const TimeFactors& factors);

/// The other way round: the mean time to the first token where each prefill worker takes `rate`
/// requests a second, fewer than it computes; at prompts_rate(), `ttft_s` of that.
double prompts_ttft_s(const WorkerSteps& steps, double rate, const TimeFactors& factors);

/// A draft model's format: the target's precision if it is published in that, else bf16.
ServingFormat draft_format(const ServedModel& draft, const std::string& precision);

}  // namespace braid
