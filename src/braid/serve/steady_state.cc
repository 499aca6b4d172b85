#include "braid/serve/steady_state.h"

#include <algorithm>
#include <cmath>

namespace braid {

CorrectedRuns corrected_runs_of(const Worker& worker, bool disaggregated) {
  return {disaggregated, worker.system->groups.front().chip.name, worker.model->name,
          worker.format.name};
}

ServingTimes corrected(ServingTimes times, const TimeFactors& factors) {
  times.tpot_s *= factors.tpot;
  times.requests_per_s /= factors.tpot;
  const double longer_room_s = times.room_s * (factors.tpot - factors.ttft);
  times.ttft_s = times.ttft_s * factors.ttft + longer_room_s;
  times.waiting_s = times.waiting_s * factors.ttft + longer_room_s;
  times.room_s *= factors.tpot;
  times.prompt_s *= factors.ttft;
  return times;
}

ServingTimes steady_state(const WorkerSteps& steps, const EngineFigures& figures,
                          const ServingLoad& load) {
  const ServingLayout& layout = steps.step().worker().layout;
  const auto dp = static_cast<double>(layout.dp);
  const auto pp = static_cast<double>(layout.pp);
  // The first token comes with the prompt.
  const double output = std::max(steps.requests().outputs() - 1, 1.0);
  const double alone_s = steps.prompts_s(1, figures);
  const double most_side = std::clamp(steps.most_side(), 1.0, std::max(1.0, load.concurrency / dp));
  const double most = std::min(steps.limits().sequences, load.concurrency);
  ServingTimes times;
  times.prompt_s = alone_s;
  double sequences = most;
  for (int i = 0; i < kMostSteadySteps; ++i) {
    const double decode_s = steps.decode_s(sequences, figures);
    // Prompts that arrive while a step runs share the next one; attention groups, which step
    // together, begin theirs together.
    const double rough = sequences / (output * decode_s + sequences * alone_s);
    const double together = std::clamp(rough * std::max(decode_s, alone_s),
                                       std::min(dp, load.concurrency), most_side * dp);
    const double side = std::clamp(together / dp, 1.0, most_side);
    const double step_s = steps.prompts_s(side, figures);
    const double each_s = step_s / std::min(together, side * dp) / pp;
    // Of the prompts of a while, those of others: none of them runs beside the own one.
    const double busy = std::min(times.requests_per_s * each_s, 1.0);
    const double others = most > 1 ? (most - 1) / (most - busy) : 0;
    times.tpot_s = decode_s + figures.stall * sequences * others * each_s / output;
    times.requests_per_s = sequences / (output * times.tpot_s);
    // Requests end, and others come, at the end of steps of decoding: half of those that come
    // together go before.
    const double queue_s = sequences * others / output / 2 * each_s;
    times.waiting_s =
        (load.concurrency > 1 ? figures.wait_steps * decode_s * steps.step().step_tokens() : 0) +
        queue_s;
    times.ttft_s = figures.request_s + step_s + times.waiting_s;
    times.sequences = sequences;
    const double next = std::clamp(load.concurrency - times.requests_per_s * times.ttft_s,
                                   kLeastDecoding * most, most);
    if (std::abs(next - sequences) < kSteadyShare * most) break;
    sequences = 0.5 * (sequences + next);
  }
  const double held = times.sequences + times.requests_per_s * times.ttft_s;
  if (load.concurrency > held * kAboveSteady) {
    const double more_s = (load.concurrency - held) / times.requests_per_s;
    times.room_s = more_s;
    times.waiting_s += more_s;
    times.ttft_s += more_s;
  }
  const double burst_s = figures.request_s + (load.concurrency + 1) / 2 *
                                                 steps.prompts_s(most_side, figures) /
                                                 (most_side * dp);
  if (load.benchmark) times.ttft_s += figures.lockstep * std::max(burst_s - times.ttft_s, 0.0);
  return times;
}

}  // namespace braid
