#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/requests_text.h"
#include "braid/cli/served_worker_json.h"
#include "braid/cli/serving_options.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/evaluate/service_evaluation.h"
#include "braid/evaluate/service_notes.h"
#include "braid/evaluate/serving_page.h"
#include "braid/report/table.h"
#include "braid/serve/launch/launch_lines.h"
#include "braid/serve/launch/manifests.h"
#include "braid/serve/served_names.h"

namespace braid {
namespace {

struct ServePlanOptions {
  std::string model, cluster, engine, precision, mode, out, html, requests;
  ServingOptions asked;
  std::int64_t budget = 1'000'000;
  bool json = false;
};

std::string worker_text(const ServingLayout& layout, std::int64_t draft_tokens) {
  return layout_text(layout) + (draft_tokens > 0 ? fmt::format(", drafts {}", draft_tokens) : "");
}

std::vector<std::string> worker_row(const char* role, const WorkerPlan& of) {
  return {role,
          std::to_string(of.workers),
          std::to_string(of.layout.devices()),
          worker_text(of.layout, of.draft_tokens),
          fmt::format("{:.0f}", of.limits.sequences),
          fmt::format("{:.0f}", of.limits.chunk_tokens)};
}

Json unserved_json(const ServingOutcome& outcome) {
  Json json = Json::array();
  for (const UnservedFormat& each : outcome.unserved) {
    json.push_back({{"precision", each.name}});
    if (each.lacks.empty()) {
      json.back()["missing_bytes"] = each.missing_bytes;
    } else {
      json.back()["lacks"] = each.lacks;
    }
  }
  return json;
}

Json outcome_json(const ServingOutcome& outcome, const ServingJob& job, double rate) {
  Json json = {{"options", outcome.options},
               {"evaluated_steps", outcome.evaluated},
               {"proven", outcome.proven},
               {"unserved", unserved_json(outcome)}};
  if (outcome.options > 0) {
    json["least_ttft_s"] = outcome.least_ttft_s;
    json["least_tpot_s"] = outcome.least_tpot_s;
  }
  if (!outcome.plan) return json;
  const ServingPlan& plan = *outcome.plan;
  json["plan"] = {{"disaggregated", plan.disaggregated},
                  {"ttft_s", plan.ttft_s},
                  {"tpot_s", plan.tpot_s},
                  {"requests_per_s", plan.requests_per_s},
                  {"requests_per_s_per_device", plan.requests_per_s_per_device()},
                  {"devices", plan.devices},
                  {plan.disaggregated ? "decode" : "workers", to_json(plan.decode)}};
  if (plan.disaggregated) json["plan"]["prefill"] = to_json(plan.prefill);
  const ServingIntervals sure = intervals_of(plan, job);
  json["plan"]["ttft_interval_s"] = {plan.ttft_s * sure.ttft.low, plan.ttft_s * sure.ttft.high};
  json["plan"]["tpot_interval_s"] = {plan.tpot_s * sure.tpot.low, plan.tpot_s * sure.tpot.high};
  if (rate > 0) json["devices_for_rate"] = devices_for_rate(plan, rate);
  Json front = Json::array();
  for (const ServingPoint& point : outcome.front) {
    front.push_back({{"tpot_s", point.tpot_s},
                     {"ttft_s", point.ttft_s},
                     {"tokens_per_s_per_device", point.tokens_per_s_per_device},
                     {"layout", worker_text(point.layout, point.draft_tokens)},
                     {"sequences", point.sequences}});
  }
  json["front"] = std::move(front);
  return json;
}

void print_front(const ServingOutcome& outcome) {
  std::vector<std::vector<std::string>> table = {
      {"TPOT", "TTFT", "tokens/s/GPU", "batch", "worker"}};
  for (const ServingPoint& point : outcome.front) {
    table.push_back(
        {fmt::format("{:.1f} ms", 1e3 * point.tpot_s), fmt::format("{:.0f} ms", 1e3 * point.ttft_s),
         fmt::format("{:.0f}", point.tokens_per_s_per_device),
         fmt::format("{:.0f}", point.sequences), worker_text(point.layout, point.draft_tokens)});
  }
  fmt::print("\nAggregated workers, with the engine's own chunk, by time per token:\n\n{}",
             text_table(table));
}

/// How the engines are to find the model, and in what numbers it is there.
LaunchNames names_of(const ServePlanOptions& options, const ServingJob& job) {
  // Engines take the folder of a config.json.
  const std::filesystem::path path(options.model);
  std::string model =
      path.filename() == "config.json" ? path.parent_path().string() : options.model;
  if (model.empty()) model = ".";
  ServingFormat published = serving_format(*job.model, precision_of_checkpoint(model).precision);
  return {std::move(model), options.asked.draft, job.input_tokens + job.output_tokens,
          std::move(published)};
}

std::vector<std::string> notes_of(const ServingOutcome& outcome, const ServePlanOptions& options,
                                  const ServingJob& job) {
  return service_notes(outcome, job, names_of(options, job), !options.precision.empty());
}

void print_plan(const ServingOutcome& outcome, const ServePlanOptions& options,
                const ServingJob& job) {
  const ServingPlan& plan = *outcome.plan;
  fmt::print("{} on {} by {} in {}, caches in {}: {} requests/s on {}, {} a GPU\n", options.model,
             options.cluster, plan.decode.engine->name, plan.decode.format.name,
             plan.decode.format.cache, four_figures(plan.requests_per_s),
             counted(plan.devices, "GPU"), four_figures(plan.requests_per_s_per_device()));
  for (const std::string& note : notes_of(outcome, options, job)) fmt::print("{}\n", note);
  fmt::print("TTFT {:.0f} ms, TPOT {:.1f} ms, {:.0f} output tokens/s a GPU\n", 1e3 * plan.ttft_s,
             1e3 * plan.tpot_s, plan.requests_per_s_per_device() * job.output_tokens);
  fmt::print("Targets: TTFT {:.10g} ms, TPOT {:.10g} ms\n", 1e3 * job.ttft_s, 1e3 * job.tpot_s);
  const ServingIntervals sure = intervals_of(plan, job);
  fmt::print("80 % of such services: TTFT {:.0f} to {:.0f} ms, TPOT {:.1f} to {:.1f} ms\n\n",
             1e3 * plan.ttft_s * sure.ttft.low, 1e3 * plan.ttft_s * sure.ttft.high,
             1e3 * plan.tpot_s * sure.tpot.low, 1e3 * plan.tpot_s * sure.tpot.high);
  std::vector<std::vector<std::string>> table = {
      {"workers", "number", "GPUs each", "layout", "batch", "chunk"}};
  if (plan.disaggregated) table.push_back(worker_row("prefill", plan.prefill));
  table.push_back(worker_row(plan.disaggregated ? "decode" : "aggregated", plan.decode));
  fmt::print("{}", text_table(table));
  print_front(outcome);
  fmt::print(
      "\n{} of {} kinds of workers, with batches of 1, 2, 3, 4, 6, 8, 12 … sequences (powers of "
      "two "
      "and what lies halfway), not those between. Engines' figures are fitted to measured runs.\n",
      outcome.proven ? "The best" : "The best that was found within the budget", outcome.options);
}

/// Why there is no plan, in one line.
std::string reason_of(const ServingOutcome& outcome, const ServingJob& job) {
  if (outcome.options == 0) {
    return fmt::format(
        "the weights of {} and one request do not fit {} ({}); take more devices or a narrower "
        "precision",
        job.model->name, counted(job.system->device_count, "GPU"), unserved_text(outcome.unserved));
  }
  if (!outcome.proven) return "the budget is used up and nothing holds the targets";
  if (outcome.least_ttft_s > job.ttft_s) {
    return fmt::format(
        "--ttft: no worker is faster than {} ms: one prompt alone, on an idle engine",
        four_figures(1e3 * outcome.least_ttft_s));
  }
  if (outcome.least_tpot_s > job.tpot_s) {
    return fmt::format("--tpot: no worker is faster than {} ms: one sequence alone",
                       four_figures(1e3 * outcome.least_tpot_s));
  }
  return "no worker holds both targets at once";
}

int no_plan(const ServingOutcome& outcome, const ServingJob& job, bool as_json) {
  const std::string reason = reason_of(outcome, job);
  if (as_json) {
    Json json = outcome_json(outcome, job, 0);
    json["reason"] = reason;
    fmt::print("{}", to_text(json));
  } else {
    fmt::print(stderr, "braid: no plan: {}\n", reason);
  }
  return outcome.proven ? kInfeasible : kExhausted;
}

/// What the job refers to; must stay where it is.
struct ServedJob {
  ServedJob(const ServePlanOptions& options, const std::vector<TracedRequest>& requests)
      : model(load_served_model(options.model)),
        system(load_system(options.cluster)),
        kernels(served_kernels(system)) {
    take_options(options.asked, job);
    take_lengths(options, requests);
    job.model = &model;
    job.system = &system;
    job.kernels = &kernels;
    if (options.engine.empty()) {
      for (const Engine& engine : engine_catalogue()) job.engines.push_back(&engine);
    } else {
      own = load_engine(options.engine);
      job.engines = {&*own};
    }
    job.formats = options.precision.empty()
                      ? serving_formats(model)
                      : std::vector<ServingFormat>{serving_format(model, options.precision)};
    job.aggregated = options.mode != "disaggregated";
    job.disaggregated = options.mode != "aggregated";
    job.budget = options.budget;
    if (!options.asked.draft.empty()) draft = load_served_model(options.asked.draft);
    job.draft = offer_of(options.asked, draft ? &*draft : nullptr);
    if (draft && options.mode == "disaggregated") {
      throw Error(Where{"", 0, "--draft"}, "only aggregated workers draft tokens",
                  "leave out --mode disaggregated");
    }
  }
  ServedJob(const ServedJob&) = delete;
  ServedJob& operator=(const ServedJob&) = delete;

  /// Those that are not given are the trace's means; its longest request must fit the model.
  void take_lengths(const ServePlanOptions& options, const std::vector<TracedRequest>& requests) {
    if (requests.empty()) {
      if (options.asked.input_len > 0 && options.asked.output_len > 0) return;
      throw Error(Where{"", 0, options.asked.input_len == 0 ? "--input-len" : "--output-len"},
                  "how long requests are is not known",
                  "give --input-len and --output-len, or a trace with --requests");
    }
    const TraceSummary trace = summary_of(requests);
    if (options.asked.input_len == 0) job.input_tokens = std::round(trace.input_tokens);
    if (options.asked.output_len == 0) job.output_tokens = std::round(trace.output_tokens);
    if (model.positions == 0 || trace.longest <= static_cast<double>(model.positions)) return;
    throw Error(Where{options.requests, 0, ""},
                fmt::format("a request has {:.0f} tokens, and {} takes {}", trace.longest,
                            model.name, model.positions),
                "leave such requests out");
  }

  ServedModel model;
  System system;
  ChipKernels kernels;
  std::optional<Engine> own;
  std::optional<ServedModel> draft;
  ServingJob job;
};

/// "serve" of "serve.sh", for the names of what is written beside it.
std::string stem_of(const std::string& file) {
  const std::size_t dot = file.rfind('.'), slash = file.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return dot == std::string::npos || dot <= name ? file : file.substr(0, dot);
}

/// Writes the engines' command lines, and beside them the manifests of a disaggregated service,
/// whose files it returns.
std::vector<std::string> write_launch(const ServePlanOptions& options, const ServingPlan& plan,
                                      const ServingJob& job) {
  const LaunchNames names = names_of(options, job);
  write_file(options.out, launch_lines(plan, names));
  if (!plan.disaggregated || options.out == "-") return {};
  const std::int64_t node = job.system->groups.front().devices_per_node;
  const std::string stem = stem_of(options.out);
  std::vector<std::string> manifests = {stem + ".dynamo.yaml"};
  write_file(manifests.front(), dynamo_manifest(plan, names, node));
  const std::string llm_d = llm_d_manifest(plan, names, node);
  if (llm_d.empty()) return manifests;
  manifests.push_back(stem + ".llm-d.yaml");
  write_file(manifests.back(), llm_d);
  return manifests;
}

int run(const ServePlanOptions& options) {
  const double rate = rate_of(options.asked);
  std::vector<TracedRequest> requests;
  if (!options.requests.empty()) requests = load_request_trace(options.requests);
  std::optional<double> blocks;
  if (options.asked.cached < 0) blocks = prefix_block_tokens(requests, options.requests);
  ServedJob served(options, requests);
  ServingJob& job = served.job;
  PrefixPlan planned;
  if (blocks) {
    planned = plan_with_prefixes(*blocks, job, requests);
  } else {
    planned.outcome = plan_serving(job);
  }
  const ServingOutcome& outcome = planned.outcome;
  if (!outcome.plan) return no_plan(outcome, job, options.json);
  std::vector<std::string> manifests;
  if (!options.out.empty()) manifests = write_launch(options, *outcome.plan, job);
  if (!options.html.empty()) {
    write_file(options.html,
               serving_page(outcome, job, options.cluster, notes_of(outcome, options, job)));
  }
  // What goes to standard output is one thing.
  if (options.out == "-" || options.html == "-") return kFound;
  std::optional<RatedService> rated;
  if (rate > 0) rated = smallest_service(*outcome.plan, job, rate);
  std::optional<ServedTrace> traced;
  if (!requests.empty()) {
    traced = serve_trace(*outcome.plan, job, requests);
    if (blocks) traced->caching = planned.caching;
    traced->hashes_unused = !blocks && has_hashes(requests);
  }
  if (options.json) {
    Json json = outcome_json(outcome, job, rate);
    json["notes"] = notes_of(outcome, options, job);
    if (rated) json["simulated"] = to_json(*rated);
    if (traced) json["requests"] = to_json(*traced);
    fmt::print("{}", to_text(json));
  } else {
    print_plan(outcome, options, job);
    if (rate > 0) fmt::print("\n{}", rate_text(*outcome.plan, rated, rate));
    if (traced) fmt::print("{}", trace_text(*traced, *outcome.plan));
    std::vector<WrittenFile> written = {{"Command lines", options.out}};
    for (const std::string& manifest : manifests) written.push_back({"Manifest", manifest});
    written.push_back({"Page", options.html, kOpenPage});
    say_written_below(written);
  }
  return kFound;
}

}  // namespace

Run add_serve_plan(CLI::App& app) {
  auto options = std::make_shared<ServePlanOptions>();
  Verb verb(app, "serve-plan", "Find how to serve a model within latency targets");
  verb.footer(
      "Example:\n  braid serve-plan llama-3-70b --cluster dgx-h100:8 --input-len 4096 "
      "--output-len 512 --ttft 2s --tpot 50ms\n\nModels, engines and what the times depend on: "
      "docs/serving.md.");
  verb.add_option("MODEL", options->model, "Served or zoo model, config.json, or graph").required();
  verb.add_option("--cluster,-c", options->cluster, "Cluster and devices, such as dgx-h100:8")
      .required();
  add_serving_options(verb, options->asked);
  add_text(verb, "--requests", options->requests,
           "Simulate these: JSON lines with timestamp (ms), input_length, output_length, hash_ids")
      .excludes(verb.option("--rate"));
  add_text(verb, "--engine", options->engine, "Only this engine, of the catalogue or a file");
  add_text(verb, "--precision", options->precision, "Only this precision: bf16, fp8, fp4, int4");
  verb.add_option("--mode", options->mode,
                  "Only aggregated workers, or disaggregated ones: prefill and decode")
      .one_of({"aggregated", "disaggregated"});
  add_count(verb, "--budget", options->budget, 1, std::int64_t{1} << 40,
            "Steps that are evaluated at most");
  add_output_file(
      verb, "-o,--out", options->out,
      "Write the engines' command lines here, and manifests of a disaggregated service beside");
  add_output_file(verb, "--html", options->html, "Write a page about the service here");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
