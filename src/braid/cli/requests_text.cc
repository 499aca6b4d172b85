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

std::string workers_text(const ServingPlan& plan) {
  if (!plan.disaggregated) return counted(plan.decode.workers, "worker");
  return fmt::format("{} and {}", counted(plan.prefill.workers, "prefill worker"),
                     counted(plan.decode.workers, "decode worker"));
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
  return {
      summary_of(requests), trace_outcome(simulate_service(plan, job, requests), job), {}, false};
}

namespace {

std::string caching_text(const ServedTrace& served) {
  if (served.hashes_unused) return "Its hash_ids do not count, as --cached is given.\n";
  if (!served.caching) return "";
  const PrefixCaching& caching = *served.caching;
  return fmt::format(
      "Prefix caching, by hash_ids of blocks of {:.0f} tokens: the workers' caches have {:.1f} % "
      "of the input, which is planned for; caches without limit {:.1f} %.\n",
      caching.block_tokens, 100 * caching.share, 100 * caching.endless_share);
}

}  // namespace

std::string trace_text(const ServedTrace& served, const ServingPlan& plan) {
  const TraceSummary& trace = served.trace;
  const TraceOutcome& outcome = served.outcome;
  std::string text = fmt::format(
      "\n{:.0f} requests of the trace, {} input and {} output tokens on average",
      trace.intervals + 1, four_figures(trace.input_tokens), four_figures(trace.output_tokens));
  if (trace.span_s > 0) text += fmt::format(", {} a second", four_figures(trace.requests_per_s()));
  text += fmt::format(", simulated on {}:\n{:.1f} % are within both targets",
                      counted(plan.devices, "GPU"), 100 * outcome.within);
  if (trace.span_s > 0) {
    text += fmt::format(", {} requests/s", four_figures(outcome.within * trace.requests_per_s()));
  }
  text += "\n" + caching_text(served);
  return text + "\n" +
         text_table({{"time", "mean", "median", "90 %", "99 %"},
                     spread_row("TTFT", outcome.ttft_s),
                     spread_row("TPOT", outcome.tpot_s)});
}

Json to_json(const ServedTrace& served) {
  const TraceSummary& trace = served.trace;
  Json json = {{"requests", trace.intervals + 1},
               {"input_tokens", trace.input_tokens},
               {"output_tokens", trace.output_tokens},
               {"requests_per_s", trace.requests_per_s()},
               {"within_targets", served.outcome.within},
               {"goodput_per_s", served.outcome.within * trace.requests_per_s()},
               {"ttft", spread_json(served.outcome.ttft_s)},
               {"tpot", spread_json(served.outcome.tpot_s)}};
  if (served.caching) {
    json["prefix_caching"] = {{"block_tokens", served.caching->block_tokens},
                              {"share", served.caching->share},
                              {"endless_share", served.caching->endless_share}};
  }
  return json;
}

std::string rate_text(const ServingPlan& plan, const std::optional<RatedService>& found,
                      double rate) {
  ServingPlan full = plan;
  full.decode.workers = workers_for_rate(plan.decode, rate);
  if (plan.disaggregated) full.prefill.workers = workers_for_rate(plan.prefill, rate);
  std::string text =
      fmt::format("{} requests/s take {} ({}) by the plan's mean rate of a worker", rate,
                  counted(devices_for_rate(plan, rate), "GPU"), workers_text(full));
  if (!found) {
    return text + fmt::format(
                      ". Where they come at random, {} workers of a kind do not hold both targets "
                      "in a simulation.\n",
                      kMostSimulatedWorkers);
  }
  text += fmt::format(
      ", and {} ({}) where they come at random: the fewest that hold both targets in a simulation "
      "of {} of them{}.\n"
      "Simulated: TTFT {} ms, {} ms of it until the prompt's step, TPOT {} ms.\n",
      counted(found->plan.devices, "GPU"), workers_text(found->plan), kSimulatedRequests,
      found->parts > 1 ? fmt::format(", in {} services side by side", found->parts) : "",
      four_figures(1e3 * found->plan.ttft_s), four_figures(1e3 * found->waiting_s),
      four_figures(1e3 * found->plan.tpot_s));
  if (found->predicted_s) {
    text += fmt::format("Prompts wait {} ms by M/G/k.\n", four_figures(1e3 * *found->predicted_s));
  }
  return text;
}

Json to_json(const RatedService& found) {
  Json json = {{"devices", found.plan.devices}, {"decode_workers", found.plan.decode.workers},
               {"ttft_s", found.plan.ttft_s},   {"tpot_s", found.plan.tpot_s},
               {"waiting_s", found.waiting_s},  {"parts", found.parts}};
  if (found.predicted_s) json["waiting_by_queueing_s"] = *found.predicted_s;
  if (found.plan.disaggregated) json["prefill_workers"] = found.plan.prefill.workers;
  return json;
}

}  // namespace braid
