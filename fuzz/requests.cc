#include "braid/serve/prefix_cache.h"
#include "braid/serve/request_trace.h"

#include "fuzz/read_input.h"

// Traces of requests: JSON lines.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const std::vector<TracedRequest> requests = parse_request_trace(text, "input");
    const TraceSummary summary = summary_of(requests);
    fuzz::expect(summary.span_s >= 0 && summary.input_tokens >= 1 && summary.output_tokens >= 1);
    const std::optional<double> block_tokens = prefix_block_tokens(requests, "input");
    if (!block_tokens) return;
    const std::vector<double> cached = prefix_hits(requests, *block_tokens, 64 * *block_tokens);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      fuzz::expect(cached[i] >= 0 && cached[i] <= requests[i].input_tokens - 1);
    }
  });
}
