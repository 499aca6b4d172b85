#include "serve/event_simulation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>

namespace braid {
namespace {

struct Running {
  std::size_t request = 0;
  double first_s = 0, output = 0, left = 0;
};

/// Engine of one worker; `closed` arrivals follow from answers.
class EventSimulation {
 public:
  EventSimulation(const SimulatedService& service, std::vector<double> arrivals_s,
                  std::size_t requests, std::size_t uncounted)
      : service_(service),
        arrivals_s_(std::move(arrivals_s)),
        requests_(requests),
        uncounted_(uncounted) {}

  SimulatedTimes run() {
    std::size_t next = 0;  // Of the prompts, which are taken in the order of arrival.
    while (answered_ < requests_) {
      const bool waits = next < arrivals_s_.size() && arrivals_s_[next] <= now_s_;
      if (waits && static_cast<double>(running_.size()) < service_.sequences) {
        start(next++);
      } else if (!running_.empty()) {
        decode();
      } else {
        now_s_ = arrivals_s_[next];
      }
    }
    const auto counted = static_cast<double>(std::max<std::size_t>(counted_, 1));
    return {ttft_s_ / counted, tpot_s_ / counted, waiting_s_ / counted,
            counted / std::max(now_s_ - first_counted_s_, 1e-12)};
  }

 private:
  void start(std::size_t request) {
    const bool counts = request >= uncounted_;
    if (counts) waiting_s_ += now_s_ - arrivals_s_[request];
    if (request == uncounted_) first_counted_s_ = now_s_;
    now_s_ += service_.prompt_s;
    if (counts) ttft_s_ += now_s_ - arrivals_s_[request];
    const double output = std::round(output_of(request));
    running_.push_back({request, now_s_, output, output - 1});
    if (output <= 1) finish();
  }
  /// Multiples of the golden ratio fill the range evenly.
  double output_of(std::size_t request) const {
    constexpr double kGolden = 0.6180339887498949;
    const double place = std::fmod(static_cast<double>(request) * kGolden, 1.0);
    return service_.output_tokens * (1 + service_.output_spread * (2 * place - 1));
  }
  void decode() {
    now_s_ += service_.decode_s(static_cast<double>(running_.size()));
    for (Running& one : running_) one.left -= 1;
    finish();
  }
  void finish() {
    for (const Running& one : running_) {
      if (one.left > 0) continue;
      ++answered_;
      if (one.request >= uncounted_) {
        ++counted_;
        if (one.output > 1) tpot_s_ += (now_s_ - one.first_s) / (one.output - 1);
      }
      if (arrivals_s_.size() < requests_) arrivals_s_.push_back(now_s_);
    }
    std::erase_if(running_, [](const Running& one) { return one.left <= 0; });
  }

  const SimulatedService& service_;
  std::vector<double> arrivals_s_;
  std::size_t requests_, uncounted_;
  std::deque<Running> running_;
  double now_s_ = 0, first_counted_s_ = 0;
  double ttft_s_ = 0, tpot_s_ = 0, waiting_s_ = 0;
  std::size_t answered_ = 0, counted_ = 0;
};

}  // namespace

SimulatedTimes simulate_open(const SimulatedService& service,
                             const std::vector<double>& arrivals_s) {
  return EventSimulation(service, arrivals_s, arrivals_s.size(), 0).run();
}

SimulatedTimes simulate_closed(const SimulatedService& service, int concurrency, int requests) {
  const auto burst = static_cast<std::size_t>(concurrency);
  return EventSimulation(service, std::vector<double>(burst, 0.0),
                         static_cast<std::size_t>(requests), burst)
      .run();
}

}  // namespace braid
