#include "braid/serve/service_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/least_threshold.h"
#include "braid/serve/queueing.h"
#include "braid/serve/simulated_worker.h"

namespace braid {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Throws Error for the first request that a worker has no room for.
void check_room(const SimulatedSteps& steps, const std::vector<TracedRequest>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (steps.bytes_of(requests[i]) <= steps.memory().room_bytes) continue;
    throw Error(
        Where{"", 0, "--requests"},
        fmt::format("request {} of {:.0f} input and {:.0f} output tokens has no room on a worker",
                    i + 1, requests[i].input_tokens, requests[i].output_tokens),
        "plan for its lengths with --input-len and --output-len");
  }
}

/// Workers of one kind.
class Pool {
 public:
  Pool(const WorkerPlan& of, const ServingJob& job, SimulatedWork work)
      : steps_(of, job, work != SimulatedWork::all), work_(work), count_(of.workers) {}

  SimulatedSteps& steps() { return steps_; }
  /// Workers below which requests alike wait longer and longer.
  std::int64_t least_workers(double rate, const TracedRequest& each) {
    const double most = steps_.most_requests_per_s(work_, each);
    return static_cast<std::int64_t>(
        std::clamp(std::ceil(rate / most), 1.0, kMostSimulatedWorkers + 1.0));
  }
  void set_workers(std::int64_t count) { count_ = count; }

  /// Lets requests come in the order of `order`, at `arrivals_s`, each to the worker with the
  /// fewest.
  void serve(const std::vector<TracedRequest>& requests, const std::vector<std::size_t>& order,
             const std::vector<double>& arrivals_s, std::vector<SimulatedRequest>& times) {
    std::vector<SimulatedWorker> workers(static_cast<std::size_t>(count_),
                                         SimulatedWorker(&steps_, work_, &requests, &times));
    for (const std::size_t request : order) {
      SimulatedWorker* fewest = nullptr;
      for (SimulatedWorker& worker : workers) {
        worker.advance(arrivals_s[request]);
        const double now_s = arrivals_s[request];
        if (fewest == nullptr || worker.load(now_s) < fewest->load(now_s)) fewest = &worker;
      }
      fewest->add(request, arrivals_s[request]);
    }
    for (SimulatedWorker& worker : workers) worker.advance(kNever);
  }

 private:
  SimulatedSteps steps_;
  SimulatedWork work_;
  std::int64_t count_;
};

/// The pools of a plan, which keep what their steps take from one simulation to the next.
class ServicePools {
 public:
  ServicePools(const ServingPlan& plan, const ServingJob& job)
      : decode_(plan.decode, job,
                plan.disaggregated ? SimulatedWork::decoding : SimulatedWork::all) {
    if (plan.disaggregated) {
      prefill_ = std::make_unique<Pool>(plan.prefill, job, SimulatedWork::prompts);
    }
  }

  Pool& decode() { return decode_; }
  Pool* prefill() { return prefill_.get(); }

  std::vector<RequestTimes> simulate(const std::vector<TracedRequest>& requests) {
    check_room(decode_.steps(), requests);
    if (prefill_) check_room(prefill_->steps(), requests);
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<double> arrivals_s;
    arrivals_s.reserve(requests.size());
    for (const TracedRequest& each : requests) arrivals_s.push_back(each.arrival_s);
    std::vector<SimulatedRequest> prompts(requests.size());
    (prefill_ ? *prefill_ : decode_).serve(requests, order, arrivals_s, prompts);
    std::vector<RequestTimes> result(requests.size());
    SimulatedSteps& first = (prefill_ ? *prefill_ : decode_).steps();
    std::vector<double> handed_s(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const double fixed_s = first.fixed_s(requests[i].input_tokens);
      handed_s[i] = prompts[i].first_s + fixed_s;
      result[i].ttft_s = handed_s[i] - arrivals_s[i];
      result[i].waiting_s = prompts[i].begun_s - arrivals_s[i];
    }
    std::vector<SimulatedRequest> decoded = prompts;
    if (prefill_) {
      for (std::size_t i = 0; i < requests.size(); ++i) decoded[i].decoded_from_s = handed_s[i];
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return handed_s[a] < handed_s[b]; });
      decode_.serve(requests, order, handed_s, decoded);
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].output_tokens <= 1) continue;
      result[i].tpot_s =
          (decoded[i].done_s - decoded[i].decoded_from_s) / (requests[i].output_tokens - 1);
    }
    return result;
  }

 private:
  Pool decode_;
  std::unique_ptr<Pool> prefill_;
};

TraceOutcome::Spread spread_of(std::vector<double> values) {
  TraceOutcome::Spread spread;
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size());
    const auto index = static_cast<std::size_t>(std::max(0.0, std::ceil(place) - 1));
    return values[std::min(index, values.size() - 1)];
  };
  spread.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  spread.median = at(0.5);
  spread.p90 = at(0.9);
  spread.p99 = at(0.99);
  return spread;
}

/// The fewest workers from `least` to kMostSimulatedWorkers for which `holds`, which stays so with
/// more; 0: none. Looks at `first` first.
template <typename Holds>
std::int64_t fewest_workers(std::int64_t least, std::int64_t first, const Holds& holds) {
  std::int64_t fails = least - 1, held = std::max(least, first);
  while (held <= kMostSimulatedWorkers && !holds(held)) {
    fails = held;
    held += std::max<std::int64_t>(1, held / 4);
  }
  if (held > kMostSimulatedWorkers) return 0;
  return first_where(fails + 1, held, holds);
}

/// Requests that come while one is answered, within the targets.
double under_way(const ServingJob& job, double rate) {
  return rate * (job.ttft_s + job.output_tokens * job.tpot_s);
}

/// A service at a rate, with any numbers of workers.
class RateSearch {
 public:
  RateSearch(const ServingPlan& plan, const ServingJob& job, double rate)
      : plan_(plan), job_(job), rate_(rate), pools_(plan, job) {
    const double answers = std::ceil(under_way(job, rate));
    earlier_ = static_cast<std::size_t>(kAnswersBefore * answers);
    const auto later = static_cast<std::size_t>(answers);
    constexpr std::uint64_t kSeed = 1;
    requests_ = poisson_requests(rate, earlier_ + kSimulatedRequests + later, each_of(job), kSeed);
  }

  std::optional<RatedService> run() {
    Pool* prefill = pools_.prefill();
    const auto kept_up = [&](const WorkerPlan& of) {
      return static_cast<std::int64_t>(
          std::clamp(rate_ / of.requests_per_s, 1.0, kMostSimulatedWorkers + 1.0));
    };
    if (kept_up(plan_.decode) > kMostSimulatedWorkers) return std::nullopt;
    if (prefill != nullptr) prefill->set_workers(kMostSimulatedWorkers);
    const std::int64_t least = pools_.decode().least_workers(rate_, each_of(job_));
    const std::int64_t decoding = fewest_workers(least, kept_up(plan_.decode), [&](auto count) {
      pools_.decode().set_workers(count);
      const TraceOutcome found = outcome();
      return found.tpot_s.mean <= job_.tpot_s &&
             (prefill != nullptr || found.ttft_s.mean <= job_.ttft_s);
    });
    if (decoding == 0) return std::nullopt;
    pools_.decode().set_workers(decoding);
    plan_.decode.workers = decoding;
    plan_.devices = decoding * plan_.decode.layout.devices();
    if (prefill != nullptr) {
      const std::int64_t fewest = prefill->least_workers(rate_, each_of(job_));
      plan_.prefill.workers = fewest_workers(fewest, kept_up(plan_.prefill), [&](auto count) {
        prefill->set_workers(count);
        return outcome().ttft_s.mean <= job_.ttft_s;
      });
      if (plan_.prefill.workers == 0) return std::nullopt;
      prefill->set_workers(plan_.prefill.workers);
      plan_.devices += plan_.prefill.workers * plan_.prefill.layout.devices();
    }
    return rated();
  }

 private:
  static TracedRequest each_of(const ServingJob& job) {
    return {0, job.input_tokens, job.output_tokens};
  }

  TraceOutcome outcome() {
    std::vector<RequestTimes> times = pools_.simulate(requests_);
    times.resize(earlier_ + kSimulatedRequests);
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(earlier_));
    waiting_s_ = 0;
    for (const RequestTimes& each : times) waiting_s_ += each.waiting_s;
    waiting_s_ /= static_cast<double>(times.size());
    return trace_outcome(times, job_);
  }

  RatedService rated() {
    const TraceOutcome found = outcome();
    plan_.requests_per_s = rate_;
    plan_.ttft_s = found.ttft_s.mean;
    plan_.tpot_s = found.tpot_s.mean;
    std::optional<double> predicted_s;
    if (pools_.prefill() != nullptr) predicted_s = predicted_wait_s();
    if (predicted_s && !std::isfinite(*predicted_s)) predicted_s.reset();
    return {plan_, waiting_s_, predicted_s, 1};
  }

  /// Groups of prefill workers are servers of full steps.
  double predicted_wait_s() {
    SimulatedSteps& steps = pools_.prefill()->steps();
    const ServingLayout& layout = steps.worker().layout;
    const PromptTokens tokens = steps.prompt_of(each_of(job_));
    const double side = steps.prompts_at_once(tokens.added) / static_cast<double>(layout.dp);
    return mean_wait_s(rate_ / side, static_cast<int>(plan_.prefill.workers * layout.dp),
                       steps.prompts_s(tokens, side) / static_cast<double>(layout.pp), 0);
  }

  ServingPlan plan_;
  const ServingJob& job_;
  double rate_;
  ServicePools pools_;
  std::size_t earlier_ = 0;
  std::vector<TracedRequest> requests_;
  double waiting_s_ = 0;
};

}  // namespace

std::optional<RatedService> smallest_service(const ServingPlan& plan, const ServingJob& job,
                                             double rate) {
  constexpr double kMostRequests = 300'000;
  const double parts = std::ceil((kAnswersBefore + 1) * under_way(job, rate) / kMostRequests);
  std::optional<RatedService> found = RateSearch(plan, job, rate / parts).run();
  if (!found || parts == 1) return found;
  found->parts = static_cast<std::int64_t>(parts);
  found->plan.decode.workers *= found->parts;
  found->plan.prefill.workers *= found->parts;
  found->plan.devices *= found->parts;
  found->plan.requests_per_s = rate;
  return found;
}

std::vector<RequestTimes> simulate_service(const ServingPlan& plan, const ServingJob& job,
                                           const std::vector<TracedRequest>& requests) {
  return ServicePools(plan, job).simulate(requests);
}

TraceOutcome trace_outcome(const std::vector<RequestTimes>& times, const ServingJob& job) {
  std::vector<double> ttft_s, tpot_s;
  double within = 0;
  for (const RequestTimes& each : times) {
    ttft_s.push_back(each.ttft_s);
    if (each.tpot_s > 0) tpot_s.push_back(each.tpot_s);
    if (each.ttft_s <= job.ttft_s && each.tpot_s <= job.tpot_s) ++within;
  }
  return {spread_of(std::move(ttft_s)), spread_of(std::move(tpot_s)),
          within / static_cast<double>(std::max<std::size_t>(times.size(), 1))};
}

}  // namespace braid
