#pragma once

#include <optional>
#include <vector>

#include "braid/serve/request_trace.h"
#include "braid/serve/serving_plan.h"

namespace braid {

/// What a simulated request had.
struct RequestTimes {
  double ttft_s = 0;
  double tpot_s = 0;     ///< Mean time per output token after the first; 0: there is none.
  double waiting_s = 0;  ///< Until its prompt's step begins.
};

/// A trace's requests through the workers of a plan, in the trace's order. Each goes to the worker
/// that has the fewest. Workers take steps one after the other: waiting prompts first, as many as
/// attention groups and chunks take, while sequences and memory have room; else one of all
/// sequences, at their mean context. Steps with prompts hold up decoding by the engine's `stall`.
/// Of workers of two kinds, caches go over when the prompt is done. Times are those of StepModel,
/// with the engine's corrections. Throws Error for a request that a worker has no room for. Cost:
/// about a microsecond a step.
std::vector<RequestTimes> simulate_service(const ServingPlan& plan, const ServingJob& job,
                                           const std::vector<TracedRequest>& requests);

/// How well a trace was served.
struct TraceOutcome {
  struct Spread {
    double mean = 0, median = 0, p90 = 0, p99 = 0;
  };
  Spread ttft_s, tpot_s;
  double within = 0;  ///< Share of the requests that were within both targets.
};
TraceOutcome trace_outcome(const std::vector<RequestTimes>& times, const ServingJob& job);

/// Workers for a rate of requests that come at random, by simulation.
struct RatedService {
  ServingPlan plan;  ///< With the numbers of workers that hold; its rate and times are simulated.
  double waiting_s = 0;               ///< Mean, until a prompt's step begins.
  std::optional<double> predicted_s;  ///< The same of prefill workers by mean_wait_s().
  /// Services side by side that the workers are dealt to, each with its part of the requests.
  std::int64_t parts = 1;
};

/// `plan` with the fewest workers whose mean TTFT and TPOT, over kSimulatedRequests of the job's
/// lengths that come at random at `rate` a second, hold the targets. kAnswersBefore times as many
/// requests as come while one is answered come before and do not count, and as many as come
/// meanwhile after them: the counted ones are served amid others like them. Where these are more
/// than 300,000, a part of the service is simulated that has so many, and multiplied: a little more
/// than the fewest. No fewer workers than can keep up for ever
/// (SimulatedSteps::most_requests_per_s()). Of two kinds, first as few decode workers as hold the
/// TPOT, then prefill workers; `plan` says what rate one of each has. nullopt:
/// kMostSimulatedWorkers of a kind do not, or would not keep up. Cost: some ten simulations.
inline constexpr std::int64_t kMostSimulatedWorkers = 256;
inline constexpr std::size_t kSimulatedRequests = 10'000;
inline constexpr double kAnswersBefore = 3;
std::optional<RatedService> smallest_service(const ServingPlan& plan, const ServingJob& job,
                                             double rate);

}  // namespace braid
