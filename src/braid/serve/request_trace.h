#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// One request of a trace.
struct TracedRequest {
  double arrival_s = 0;
  double input_tokens = 0, output_tokens = 0;
  /// Hashes of the input's blocks, each of all tokens up to its end; empty: not known.
  std::vector<std::int64_t> blocks = {};
  /// Of the input, what a prefix cache has; nullopt: the share that a job says.
  std::optional<double> cached_tokens = {};
};

/// What a trace's requests are in the mean.
struct TraceSummary {
  double input_tokens = 0, output_tokens = 0;
  double longest = 0;  ///< Tokens of the longest one, input and output.
  double span_s = 0;   ///< From the first arrival to the last.
  double requests_per_s() const { return span_s > 0 ? intervals / span_s : 0; }
  double intervals = 0;  ///< Between arrivals.
};

/// Reads JSON lines, a request each: `input_length`, `output_length` in tokens and `timestamp` in
/// milliseconds as Mooncake's traces have them, or `arrival_s`, and maybe `hash_ids` of its blocks;
/// other fields are ignored. Throws Error with file and line: no JSON, a field that is missing or
/// below 1 (arrivals and hashes: below 0), arrivals out of order, no request at all.
std::vector<TracedRequest> parse_request_trace(std::string_view text, const std::string& file);

TraceSummary summary_of(const std::vector<TracedRequest>& requests);

/// `count` requests alike that come at random, independently of each other, `rate` a second in the
/// mean (a Poisson process). The same for the same seed on all machines.
std::vector<TracedRequest> poisson_requests(double rate, std::size_t count,
                                            const TracedRequest& each, std::uint64_t seed);

}  // namespace braid
