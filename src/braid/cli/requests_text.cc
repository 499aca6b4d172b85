#include "braid/cli/requests_text.h"

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/base/file.h"
#include "braid/base/quantity.h"
#include "braid/report/table.h"

namespace braid {
namespace {

std::vector<std::string> spread_row(const char* name, const TraceOutcome::Spread& spread) {
  std::vector<std::string> row = {name};
  for (const double time_s : {spread.mean, spread.median, spread.p90, spread.p99}) {
    row.push_back(fmt::format("{} ms", four_figures(1e3 * time_s)));
  }
  return row;
}

Json spread_json(const TraceOutcome::Spread& spread) {
  return {{"mean_s", spread.mean},
          {"median_s", spread.median},
          {"p90_s", spread.p90},
          {"p99_s", spread.p99}};
}

}  // namespace

std::vector<TracedRequest> load_request_trace(const std::string& file) {
  return parse_request_trace(read_file(file), file);
}

ServedTrace serve_trace(const ServingPlan& plan, const ServingJob& job,
                        const std::vector<TracedRequest>& requests) {
  return {summary_of(requests), trace_outcome(simulate_service(plan, job, requests), job)};
}

std::string trace_text(const ServedTrace& served, const ServingPlan& plan) {
  const TraceSummary& trace = served.trace;
  const TraceOutcome& outcome = served.outcome;
  std::string text = fmt::format("\n{:.0f} requests of the trace, {} and {} tokens in the mean",
                                 trace.intervals + 1, four_figures(trace.input_tokens),
                                 four_figures(trace.output_tokens));
  if (trace.span_s > 0) text += fmt::format(", {} a second", four_figures(trace.requests_per_s()));
  text += fmt::format(", simulated on {}:\n{:.1f} % are within both targets",
                      counted(plan.devices, "GPU"), 100 * outcome.within);
  if (trace.span_s > 0) {
    text += fmt::format(", {} requests/s", four_figures(outcome.within * trace.requests_per_s()));
  }
  return text + "\n\n" +
         text_table({{"time", "mean", "median", "90 %", "99 %"},
                     spread_row("TTFT", outcome.ttft_s),
                     spread_row("TPOT", outcome.tpot_s)});
}

Json to_json(const ServedTrace& served) {
  const TraceSummary& trace = served.trace;
  return {{"requests", trace.intervals + 1},
          {"input_tokens", trace.input_tokens},
          {"output_tokens", trace.output_tokens},
          {"requests_per_s", trace.requests_per_s()},
          {"within_targets", served.outcome.within},
          {"goodput_per_s", served.outcome.within * trace.requests_per_s()},
          {"ttft", spread_json(served.outcome.ttft_s)},
          {"tpot", spread_json(served.outcome.tpot_s)}};
}

std::string rate_text(const std::optional<RatedService>& found, double rate) {
  if (!found) {
    return fmt::format("Simulated: {} workers of a kind do not hold both targets.\n",
                       kMostSimulatedWorkers);
  }
  const ServingPlan& plan = found->plan;
  const std::string workers =
      plan.disaggregated ? fmt::format("{} of prompts and {} of decoding",
                                       counted(plan.prefill.workers, "worker"), plan.decode.workers)
                         : counted(plan.decode.workers, "worker");
  std::string text = fmt::format(
      "Simulated, with requests that come at random, {} ({}) hold both targets at {:g}/s:\n"
      "TTFT {} ms, {:.3g} ms of it until the prompt's step, TPOT {} ms.\n",
      counted(plan.devices, "GPU"), workers, rate, four_figures(1e3 * plan.ttft_s),
      1e3 * found->waiting_s, four_figures(1e3 * plan.tpot_s));
  if (found->predicted_s) {
    text += fmt::format("Prompts wait {:.3g} ms by M/G/k.\n", 1e3 * *found->predicted_s);
  }
  return text;
}

Json to_json(const RatedService& found) {
  Json json = {{"devices", found.plan.devices},
               {"decode_workers", found.plan.decode.workers},
               {"ttft_s", found.plan.ttft_s},
               {"tpot_s", found.plan.tpot_s},
               {"waiting_s", found.waiting_s}};
  if (found.predicted_s) json["waiting_by_queueing_s"] = *found.predicted_s;
  if (found.plan.disaggregated) json["prefill_workers"] = found.plan.prefill.workers;
  return json;
}

}  // namespace braid
