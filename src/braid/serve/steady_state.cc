#include "braid/serve/steady_state.h"

#include <algorithm>
#include <cmath>

namespace braid {

double prompt_time(const StepModel& step, const EngineFigures& figures, double input_tokens,
                   double prompts, const BatchLimits& limits) {
  const double chunk = limits.chunk_tokens;
  if (input_tokens * prompts <= chunk) {
    const StepShape shape{0, 0, prompts, input_tokens, 0};
    return step.time(step.parts(shape), shape, figures);
  }
  if (input_tokens <= chunk) {
    // As many steps as hold them, whole prompts in each.
    const double at_once = std::max(1.0, std::floor(chunk / input_tokens));
    const StepShape shape{0, 0, at_once, input_tokens, 0};
    return prompts / at_once * step.time(step.parts(shape), shape, figures);
  }
  // Of long prompts all chunks but the last are full. The mean of the first and the last full one
  // stands for those between.
  const double whole = std::floor(input_tokens / chunk);
  const double rest = input_tokens - whole * chunk;
  double time_s = 0;
  const StepShape first{0, 0, 1, chunk, 0};
  time_s += step.time(step.parts(first), first, figures);
  if (whole > 1) {
    const StepShape last{0, 0, 1, chunk, (whole - 1) * chunk};
    const double last_s = step.time(step.parts(last), last, figures);
    time_s += (whole - 2) * (time_s + last_s) / 2 + last_s;
  }
  if (rest > 0) {
    const StepShape end{0, 0, 1, rest, whole * chunk};
    time_s += step.time(step.parts(end), end, figures);
  }
  return prompts * time_s;
}

ServingTimes steady_state(const StepModel& step, const EngineFigures& figures,
                          const ServingLoad& load, const BatchLimits& limits) {
  const auto dp = static_cast<double>(step.worker().layout.dp);
  const auto pp = static_cast<double>(step.worker().layout.pp);
  const double input = std::max(1.0, load.input_tokens * (1 - load.cached_share));
  const double output = std::max(1.0, load.output_tokens);
  const double context = load.input_tokens + output / 2;
  const double alone_s = prompt_time(step, figures, input, 1, limits);
  const double most_side = std::clamp(std::floor(limits.chunk_tokens / input), 1.0,
                                      std::max(1.0, load.concurrency / dp));
  const double full_s =
      most_side > 1 ? prompt_time(step, figures, input, most_side, limits) : alone_s;
  const double most = std::min(limits.sequences, load.concurrency);
  ServingTimes times;
  times.prompt_s = alone_s;
  double sequences = most;
  for (int i = 0; i < kMostSteadySteps; ++i) {
    const StepShape shape{std::max(sequences / dp / pp, 1.0), context, 0, 0, 0};
    const double decode_s = step.time(step.parts(shape), shape, figures);
    // Prompts that arrive while a step runs share the next one; attention groups, which step
    // together, begin theirs together.
    const double rough = sequences / (output * decode_s + sequences * alone_s);
    const double together = std::clamp(rough * std::max(decode_s, alone_s),
                                       std::min(dp, load.concurrency), most_side * dp);
    const double side = std::clamp(together / dp, 1.0, most_side);
    const double share = most_side > 1 ? (side - 1) / (most_side - 1) : 0.0;
    const double step_s = alone_s + share * (full_s - alone_s);
    const double each_s = step_s / std::min(together, side * dp) / pp;
    times.tpot_s = decode_s + figures.stall * std::max(sequences - 1, 0.0) * each_s / output;
    times.requests_per_s = sequences / (output * times.tpot_s);
    const double busy = std::min(times.requests_per_s * each_s, 0.98);
    const double queue_s = std::min(busy / (2 * (1 - busy)) * step_s,
                                    std::max(load.concurrency - 1, 0.0) * each_s / 2);
    times.waiting_s = (load.concurrency > 1 ? decode_s * step.step_tokens() / 2 : 0) + queue_s;
    times.ttft_s = figures.request_s + step_s + times.waiting_s;
    times.sequences = sequences;
    const double next =
        std::clamp(load.concurrency - times.requests_per_s * times.ttft_s, 0.05 * most, most);
    if (std::abs(next - sequences) < 1e-4 * most) break;
    sequences = 0.5 * (sequences + next);
  }
  const double held = times.sequences + times.requests_per_s * times.ttft_s;
  if (load.concurrency > held * 1.001) {
    const double more_s = (load.concurrency - held) / times.requests_per_s;
    times.waiting_s += more_s;
    times.ttft_s += more_s;
  }
  const double burst_s = figures.request_s + (load.concurrency + 1) / 2 * full_s / (most_side * dp);
  times.ttft_s += load.burst_share * std::max(burst_s - times.ttft_s, 0.0);
  return times;
}

}  // namespace braid
