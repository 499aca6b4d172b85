#include "braid/serve/request_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "braid/base/document.h"
#include "braid/base/error.h"

namespace braid {
namespace {

constexpr double kMostTokens = 1 << 24;
constexpr double kMostSeconds = 1e9;

double arrival_of(const Value& request) {
  constexpr double kMilliseconds = 1e-3;
  if (request["arrival_s"].exists()) return request["arrival_s"].as_double_in(0, kMostSeconds);
  return request["timestamp"].as_double_in(0, kMostSeconds / kMilliseconds) * kMilliseconds;
}

/// The lines as elements of one array, each still in its line.
std::string as_array(std::string_view text) {
  std::string array = "[";
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      if (!first) array += ',';
      first = false;
      array += line;
    }
    array += '\n';
    at = end + 1;
  }
  return array + "]";
}

}  // namespace

std::vector<TracedRequest> parse_request_trace(std::string_view text, const std::string& file) {
  const Document document = Document::parse(as_array(text), Document::Syntax::json, file);
  std::vector<TracedRequest> requests;
  requests.reserve(document.root().size());
  for (const Value& line : document.root().elements()) {
    TracedRequest request;
    request.arrival_s = arrival_of(line);
    request.input_tokens = line["input_length"].as_double_in(1, kMostTokens);
    request.output_tokens = line["output_length"].as_double_in(1, kMostTokens);
    if (line["hash_ids"].exists()) {
      for (const Value& block : line["hash_ids"].elements()) {
        request.blocks.push_back(block.as_int_in(0, std::numeric_limits<std::int64_t>::max()));
      }
    }
    if (!requests.empty() && request.arrival_s < requests.back().arrival_s) {
      line.fail("it arrives before the request above it", "sort the trace by arrival");
    }
    requests.push_back(std::move(request));
  }
  if (requests.empty()) throw Error(Where{file, 0, ""}, "the trace has no requests");
  return requests;
}

TraceSummary summary_of(const std::vector<TracedRequest>& requests) {
  TraceSummary summary;
  for (const TracedRequest& each : requests) {
    summary.input_tokens += each.input_tokens;
    summary.output_tokens += each.output_tokens;
    summary.longest = std::max(summary.longest, each.input_tokens + each.output_tokens);
  }
  const auto count = static_cast<double>(requests.size());
  summary.input_tokens /= count;
  summary.output_tokens /= count;
  summary.span_s = requests.back().arrival_s - requests.front().arrival_s;
  summary.intervals = count - 1;
  return summary;
}

std::vector<TracedRequest> poisson_requests(double rate, std::size_t count,
                                            const TracedRequest& each, std::uint64_t seed) {
  // The engine's numbers are the same everywhere, those of distributions are not.
  std::mt19937_64 random(seed);
  std::vector<TracedRequest> requests(count, each);
  double now_s = each.arrival_s;
  for (TracedRequest& request : requests) {
    const double uniform = (static_cast<double>(random() >> 11U) + 0.5) * 0x1p-53;
    now_s += -std::log(uniform) / rate;
    request.arrival_s = now_s;
  }
  return requests;
}

}  // namespace braid
