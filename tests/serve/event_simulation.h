#pragma once

#include <functional>
#include <vector>

namespace braid {

/// Requests alike, each with its time of arrival.
struct SimulatedService {
  std::function<double(double sequences)> decode_s;  ///< Of a step that only decodes.
  double prompt_s = 0;                               ///< Of a step with one prompt.
  double sequences = 1;                              ///< That run at once at most.
  double output_tokens = 1;  ///< Mean of a request; the first one comes with its prompt.
  double output_spread = 0;  ///< By which share outputs are shorter or longer at most, evenly.
};

/// Means over the requests.
struct SimulatedTimes {
  double ttft_s = 0, tpot_s = 0;
  double waiting_s = 0;  ///< Until a prompt's step begins.
  double requests_per_s = 0;
};

/// Steps of an engine one after the other: a waiting prompt's step first, if there is room, else a
/// step of all sequences. `arrivals_s` ascend. With one token of output it is a queue with one
/// server and fixed times of service. Linear in steps.
SimulatedTimes simulate_open(const SimulatedService& service,
                             const std::vector<double>& arrivals_s);

/// The same where `concurrency` requests are under way: at first all at once, then each when
/// another is answered, `requests` in all; those of the first burst do not count.
SimulatedTimes simulate_closed(const SimulatedService& service, int concurrency, int requests);

}  // namespace braid
