#include "braid/serve/disaggregated.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/least_threshold.h"
#include "braid/serve/worker_memory.h"

namespace braid {
namespace {

constexpr int kBisections = 40;

/// The prompt side at one rate of requests.
struct PromptSide {
  double step_s = 0;   ///< A request's prompt, with those that share its step.
  double queue_s = 0;  ///< Waiting for it.
};

PromptSide prompt_side(double rate, double alone_s, double full_s, double most_together,
                       double workers) {
  const double of_one = rate / workers;
  const double together = std::clamp(of_one * alone_s, 1.0, most_together);
  const double share = most_together > 1 ? (together - 1) / (most_together - 1) : 0;
  PromptSide side;
  side.step_s = alone_s + share * (full_s - alone_s);
  const double busy = std::min(of_one * full_s / most_together, 0.995);
  side.queue_s = busy / (2 * (1 - busy)) * side.step_s;
  return side;
}

}  // namespace

double cache_transfer_s(const Worker& from, double tokens) {
  const WorkerMemory memory = worker_memory(from, from.engine->chunk_tokens);
  const System& system = *from.system;
  const bool one_node =
      system.levels.empty() || system.device_count <= system.groups.front().devices_per_node;
  const NetworkLevel& level = one_node ? system.groups.front().intra_node : system.levels.front();
  return memory.of_sequence(tokens, from.engine->block_tokens) /
             (level.efficiency * level.bytes_per_s) +
         level.latency_s;
}

ServingTimes steady_state(const DisaggregatedService& service, const EngineFigures& prefill_figures,
                          const EngineFigures& decode_figures, const ServingLoad& load) {
  const WorkerSteps& prefill = *service.prefill;
  const WorkerSteps& decode = *service.decode;
  const Worker& from = prefill.step().worker();
  const double output = decode.requests().outputs();
  const double alone_s = prefill.prompts_s(1, prefill_figures);
  const double full_s = prefill.prompts_s(prefill.most_side(), prefill_figures);
  const double most_together = prefill.most_side() * static_cast<double>(from.layout.dp);
  const double transfer_s = cache_transfer_s(from, prefill.requests().input_tokens);
  const auto tpot_of = [&](double sequences) {
    return decode.decode_s(sequences / service.decode_workers, decode_figures);
  };
  const auto rate_of = [&](double sequences) { return sequences / (output * tpot_of(sequences)); };
  double workers = service.prefill_workers;
  if (workers == 0) {
    constexpr double kBusy = 0.7;
    workers = std::ceil(rate_of(load.concurrency) * full_s / most_together / kBusy);
  }
  const double fastest = workers * most_together / full_s;
  double most = std::min(load.concurrency, decode.limits().sequences * service.decode_workers);
  if (service.most_sequences > 0) most = std::min(most, service.most_sequences);
  ServingTimes times;
  const auto at = [&](double sequences) {
    times.tpot_s = tpot_of(sequences);
    times.requests_per_s = sequences / (output * times.tpot_s);
    times.sequences = sequences;
    const PromptSide prompt =
        prompt_side(times.requests_per_s, alone_s, full_s, most_together, workers);
    times.waiting_s = prompt.queue_s;
    times.ttft_s = prefill_figures.request_s + decode_figures.handover_s + prompt.step_s +
                   transfer_s + prompt.queue_s;
    return times.requests_per_s <= fastest
               ? sequences + times.requests_per_s * times.ttft_s - load.concurrency
               : 1.0;
  };
  if (at(most) > 0) {
    int left = kBisections;
    const ThresholdRange range = least_threshold(
        {0, most},
        [&](const ThresholdRange& known) -> std::optional<double> {
          if (left-- == 0) return std::nullopt;
          return known.next_by_half(kNearThreshold);
        },
        [&](double sequences) -> std::optional<double> {
          return at(sequences) > 0 ? std::optional(sequences) : std::nullopt;
        });
    at(std::max(range.low, 1e-3));
  }
  times.prompt_s = alone_s;
  const double held = times.sequences + times.requests_per_s * times.ttft_s;
  if (load.concurrency > held * kAboveSteady) {
    const double more_s = (load.concurrency - held) / times.requests_per_s;
    if (times.sequences >= most) times.room_s = more_s;
    times.waiting_s += more_s;
    times.ttft_s += more_s;
  }
  const double burst_s = prefill_figures.request_s + (load.concurrency + 1) / 2 / fastest;
  if (load.benchmark) {
    times.ttft_s += prefill_figures.lockstep * std::max(burst_s - times.ttft_s, 0.0);
  }
  return times;
}

}  // namespace braid
