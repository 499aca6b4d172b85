#pragma once

#include <string>
#include <vector>

#include "braid/base/json.h"
#include "braid/serve/service_simulation.h"

namespace braid {

/// Reads --requests: a file of JSON lines. Throws Error.
std::vector<TracedRequest> load_request_trace(const std::string& file);

/// A trace's requests through a planned service, in words and as JSON.
struct ServedTrace {
  TraceSummary trace;
  TraceOutcome outcome;
};
ServedTrace serve_trace(const ServingPlan& plan, const ServingJob& job,
                        const std::vector<TracedRequest>& requests);
std::string trace_text(const ServedTrace& served, const ServingPlan& plan);
Json to_json(const ServedTrace& served);

/// What --rate takes, by simulation.
std::string rate_text(const std::optional<RatedService>& found, double rate);
Json to_json(const RatedService& found);

}  // namespace braid
