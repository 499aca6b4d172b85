#include "braid/serve/disaggregated.h"

#include <algorithm>
#include <cmath>

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
  const StepModel& prefill = *service.prefill;
  const StepModel& decode = *service.decode;
  const double input = std::max(1.0, load.input_tokens * (1 - load.cached_share));
  const double output = std::max(1.0, load.output_tokens);
  const auto side_dp = static_cast<double>(prefill.worker().layout.dp);
  const double side = std::max(1.0, std::floor(service.prefill_limits.chunk_tokens / input));
  const double alone_s = prompt_time(prefill, prefill_figures, input, 1, service.prefill_limits);
  const double full_s =
      side > 1 ? prompt_time(prefill, prefill_figures, input, side, service.prefill_limits)
               : alone_s;
  const double most_together = side * side_dp;
  const double transfer_s = cache_transfer_s(prefill.worker(), load.input_tokens);
  const auto ranks = static_cast<double>(decode.worker().layout.dp) *
                     static_cast<double>(decode.worker().layout.pp) * service.decode_workers;
  const auto rate_of = [&](double sequences) {
    const StepShape shape{std::max(sequences / ranks, 1.0), load.input_tokens + output / 2, 0, 0,
                          0};
    return sequences / (output * decode.time(decode.parts(shape), shape, decode_figures));
  };
  double workers = service.prefill_workers;
  if (workers == 0) {
    constexpr double kBusy = 0.7;
    workers = std::ceil(rate_of(load.concurrency) * full_s / most_together / kBusy);
  }
  const double fastest = workers * most_together / full_s;
  const double most =
      std::min(load.concurrency, service.decode_limits.sequences * service.decode_workers);
  ServingTimes times;
  const auto at = [&](double sequences) {
    const StepShape shape{std::max(sequences / ranks, 1.0), load.input_tokens + output / 2, 0, 0,
                          0};
    times.tpot_s = decode.time(decode.parts(shape), shape, decode_figures);
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
  double low = 0, high = most;
  if (at(most) > 0) {
    for (int i = 0; i < kBisections && high - low > 1e-3 * high; ++i) {
      const double middle = (low + high) / 2;
      (at(middle) > 0 ? high : low) = middle;
    }
    at(std::max(low, 1e-3));
  }
  times.prompt_s = alone_s;
  const double held = times.sequences + times.requests_per_s * times.ttft_s;
  if (load.concurrency > held * 1.001) {
    const double more_s = (load.concurrency - held) / times.requests_per_s;
    times.waiting_s += more_s;
    times.ttft_s += more_s;
  }
  const double burst_s = prefill_figures.request_s + (load.concurrency + 1) / 2 / fastest;
  times.ttft_s += load.burst_share * std::max(burst_s - times.ttft_s, 0.0);
  return times;
}

}  // namespace braid
