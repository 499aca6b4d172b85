#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/base/json.h"
#include "braid/serve/prefix_cache.h"
#include "braid/serve/service_simulation.h"

namespace braid {

/// Reads --requests: a file of JSON lines. Throws Error.
std::vector<TracedRequest> load_request_trace(const std::string& file);

/// A trace's requests through a planned service, in words and as JSON.
struct ServedTrace {
  TraceSummary trace;
  TraceOutcome outcome;
  std::optional<PrefixCaching> caching;  ///< By the trace's hashes.
  bool hashes_unused = false;            ///< It has some, and --cached counts instead.
};
ServedTrace serve_trace(const ServingPlan& plan, const ServingJob& job,
                        const std::vector<TracedRequest>& requests);
std::string trace_text(const ServedTrace& served, const ServingPlan& plan);
Json to_json(const ServedTrace& served);

/// What --rate takes, by the rates of `plan` and by simulation (smallest_service()).
std::string rate_text(const ServingPlan& plan, const std::optional<RatedService>& found,
                      double rate);
Json to_json(const RatedService& found);

}  // namespace braid
