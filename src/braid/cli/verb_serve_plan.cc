#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/report/table.h"
#include "braid/serve/serving_plan.h"
#include "braid/trust/serving_interval.h"

namespace braid {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

struct ServePlanOptions {
  std::string model, cluster, engine, precision, mode, ttft = "2 s", tpot = "50 ms", rate, out;
  std::string draft, acceptance;
  std::int64_t input_len = 0, output_len = 0, cached = 0, budget = 1'000'000, draft_tokens = 0;
  bool json = false;
};

double target_of(const std::string& option, const std::string& text) {
  const std::optional<double> seconds = parse_quantity(text, Unit::seconds);
  if (!seconds || !(*seconds > 0)) {
    throw Error(Where{"", 0, option}, "'" + text + "' is no time above zero", "such as 50ms");
  }
  return *seconds;
}

/// Requests a second, "20/s"; 0 where none is asked for.
double rate_of(std::string text) {
  if (text.empty()) return 0;
  const std::string given = text;
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(rate > 0) || rate > 1e9) {
    throw Error(Where{"", 0, "--rate"}, "'" + given + "' is no rate of requests above zero",
                "such as 20/s");
  }
  return rate;
}

/// The draft model's offer; `draft` is what it refers to, and must stay.
DraftOffer offer_of(const ServePlanOptions& options, const std::optional<ServedModel>& draft) {
  if (!draft) {
    if (options.acceptance.empty() && options.draft_tokens == 0) return {};
    throw Error(Where{"", 0, options.acceptance.empty() ? "--draft-tokens" : "--acceptance"},
                "there is no draft model", "name one with --draft");
  }
  if (options.acceptance.empty()) {
    throw Error(Where{"", 0, "--draft"}, "how often its tokens are accepted is not known",
                "say it with --acceptance, such as 0.7");
  }
  if (options.mode == "disaggregated") {
    throw Error(Where{"", 0, "--draft"}, "only workers that do all draft tokens",
                "leave out --mode disaggregated");
  }
  char* end = nullptr;
  const double acceptance = std::strtod(options.acceptance.c_str(), &end);
  if (end == options.acceptance.c_str() || *end != '\0' || !(acceptance >= 0 && acceptance <= 1)) {
    throw Error(Where{"", 0, "--acceptance"},
                "'" + options.acceptance + "' is no share from 0 to 1", "such as 0.7");
  }
  return {&*draft, acceptance, options.draft_tokens};
}

std::string layout_text(const ServingLayout& layout) {
  std::string text = fmt::format("TP {}", layout.tp);
  if (layout.dp > 1) text += fmt::format(", attention DP {}", layout.dp);
  if (layout.moe_ep > 1) text += fmt::format(", EP {}", layout.moe_ep);
  if (layout.pp > 1) text += fmt::format(", PP {}", layout.pp);
  if (layout.cp > 1) text += fmt::format(", DCP {}", layout.cp);
  return text;
}

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

Json worker_json(const WorkerPlan& of) {
  return {{"engine", of.engine->name},
          {"precision", of.format.name},
          {"workers", of.workers},
          {"devices", of.layout.devices()},
          {"tp", of.layout.tp},
          {"pp", of.layout.pp},
          {"attention_dp", of.layout.dp},
          {"moe_tp", of.layout.moe_tp},
          {"moe_ep", of.layout.moe_ep},
          {"decode_cp", of.layout.cp},
          {"draft_tokens", of.draft_tokens},
          {"sequences", of.limits.sequences},
          {"chunk_tokens", of.limits.chunk_tokens}};
}

/// Four fifths of measured services as this one were within these factors of their predictions.
ServingIntervals intervals_of(const ServingPlan& plan, const ServingJob& job) {
  return serving_intervals({plan.decode.engine->name, job.system->groups.front().chip.name,
                            job.model->name, plan.decode.format.name, plan.disaggregated},
                           serving_evidence());
}

Json outcome_json(const ServingOutcome& outcome, const ServingJob& job, double rate) {
  Json json = {{"options", outcome.options},
               {"evaluated_steps", outcome.evaluated},
               {"proven", outcome.proven},
               {"least_ttft_s", outcome.least_ttft_s},
               {"least_tpot_s", outcome.least_tpot_s}};
  if (!outcome.plan) return json;
  const ServingPlan& plan = *outcome.plan;
  json["plan"] = {{"disaggregated", plan.disaggregated},
                  {"ttft_s", plan.ttft_s},
                  {"tpot_s", plan.tpot_s},
                  {"requests_per_s", plan.requests_per_s},
                  {"requests_per_s_per_device", plan.requests_per_s_per_device()},
                  {"devices", plan.devices},
                  {plan.disaggregated ? "decode" : "workers", worker_json(plan.decode)}};
  if (plan.disaggregated) json["plan"]["prefill"] = worker_json(plan.prefill);
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
  fmt::print("\nWorkers that do all, by time per token:\n\n{}", text_table(table));
}

void print_plan(const ServingOutcome& outcome, const ServePlanOptions& options,
                const ServingJob& job, double rate) {
  const ServingPlan& plan = *outcome.plan;
  fmt::print("{} on {} by {} in {}: {:.2f} requests/s on {} GPUs, {:.4f} a GPU\n", options.model,
             options.cluster, plan.decode.engine->name, plan.decode.format.name,
             plan.requests_per_s, plan.devices, plan.requests_per_s_per_device());
  fmt::print("TTFT {:.0f} ms, TPOT {:.1f} ms, {:.0f} output tokens/s a GPU\n", 1e3 * plan.ttft_s,
             1e3 * plan.tpot_s,
             plan.requests_per_s_per_device() * static_cast<double>(options.output_len));
  const ServingIntervals sure = intervals_of(plan, job);
  fmt::print("80 % of such services: TTFT {:.0f} to {:.0f} ms, TPOT {:.1f} to {:.1f} ms\n\n",
             1e3 * plan.ttft_s * sure.ttft.low, 1e3 * plan.ttft_s * sure.ttft.high,
             1e3 * plan.tpot_s * sure.tpot.low, 1e3 * plan.tpot_s * sure.tpot.high);
  std::vector<std::vector<std::string>> table = {
      {"workers for", "number", "GPUs each", "layout", "batch", "chunk"}};
  if (plan.disaggregated) table.push_back(worker_row("prompts", plan.prefill));
  table.push_back(worker_row(plan.disaggregated ? "decoding" : "all", plan.decode));
  fmt::print("{}", text_table(table));
  if (rate > 0) {
    fmt::print("\n{:g} requests/s take {} GPUs.\n", rate, devices_for_rate(plan, rate));
  }
  print_front(outcome);
  fmt::print("\n{} of {} kinds of workers, engines' figures fitted to measured runs.\n",
             outcome.proven ? "The best" : "The best that was found within the budget",
             outcome.options);
}

/// Why nothing holds the targets.
int no_plan(const ServingOutcome& outcome, const ServingJob& job) {
  if (!outcome.proven) {
    fmt::print(stderr, "braid: the budget is used up and nothing holds the targets\n");
    return kExhausted;
  }
  if (outcome.least_ttft_s > job.ttft_s) {
    fmt::print(stderr,
               "braid: --ttft: no worker is faster than {:.0f} ms: one prompt alone, on an idle "
               "engine\n",
               1e3 * outcome.least_ttft_s);
  } else if (outcome.least_tpot_s > job.tpot_s) {
    fmt::print(stderr, "braid: --tpot: no worker is faster than {:.2f} ms: one sequence alone\n",
               1e3 * outcome.least_tpot_s);
  } else {
    fmt::print(stderr, "braid: no worker holds both targets at once\n");
  }
  return kInfeasible;
}

int run(const ServePlanOptions& options) {
  const double rate = rate_of(options.rate);
  ServingJob job;
  job.ttft_s = target_of("--ttft", options.ttft);
  job.tpot_s = target_of("--tpot", options.tpot);
  const ServedModel model = load_served_model(options.model);
  const System system = load_system(options.cluster);
  if (!is_homogeneous(system)) {
    throw Error(Where{"", 0, "--cluster"}, "serving is planned for one kind of device");
  }
  const Chip& chip = system.groups.front().chip;
  const std::optional<ChipKernels> kernels = load_kernels(chip);
  if (!kernels) {
    throw Error(Where{"", 0, "--cluster"}, "no kernels of " + chip.name + " were measured",
                "docs/kernels.md lists the chips whose kernels were");
  }
  job.model = &model;
  job.system = &system;
  job.kernels = &*kernels;
  std::optional<Engine> own;
  if (options.engine.empty()) {
    for (const Engine& engine : engine_catalogue()) job.engines.push_back(&engine);
  } else {
    own = load_engine(options.engine);
    job.engines = {&*own};
  }
  job.formats = options.precision.empty()
                    ? serving_formats(model)
                    : std::vector<ServingFormat>{serving_format(model, options.precision)};
  job.input_tokens = static_cast<double>(options.input_len);
  job.output_tokens = static_cast<double>(options.output_len);
  job.cached_share = static_cast<double>(options.cached) / 100;
  job.aggregated = options.mode != "disaggregated";
  job.disaggregated = options.mode != "aggregated";
  job.budget = options.budget;
  std::optional<ServedModel> draft;
  if (!options.draft.empty()) draft = load_served_model(options.draft);
  job.draft = offer_of(options, draft);
  const ServingOutcome outcome = plan_serving(job);
  if (!outcome.plan) return no_plan(outcome, job);
  if (!options.out.empty()) {
    write_file(options.out, launch_lines(*outcome.plan, options.model, options.draft,
                                         job.input_tokens + job.output_tokens));
  }
  if (options.json) {
    fmt::print("{}", to_text(outcome_json(outcome, job, rate)));
  } else {
    print_plan(outcome, options, job, rate);
  }
  return kFound;
}

}  // namespace

Run add_serve_plan(CLI::App& app) {
  auto options = std::make_shared<ServePlanOptions>();
  Verb verb(app, "serve-plan", "Find how to serve a model within latency targets");
  verb.footer(
      "Example:\n  braid serve-plan llama-3-70b --cluster dgx-h100:8 --input-len 4096 "
      "--output-len 512 --ttft 2s --tpot 50ms\n\nModels, engines and what the times rest on: "
      "docs/serving.md.");
  verb.add_option("MODEL", options->model, "Served or zoo model, config.json, or graph").required();
  verb.add_option("--cluster,-c", options->cluster, "Cluster and devices, such as dgx-h100:8")
      .required();
  add_count(verb, "--input-len", options->input_len, 1, kMostTokens, "Tokens of a request's input")
      .required();
  add_count(verb, "--output-len", options->output_len, 1, kMostTokens,
            "Tokens of a request's output")
      .required();
  add_text(verb, "--ttft", options->ttft, "Target: mean time to the first token").show_default();
  add_text(verb, "--tpot", options->tpot, "Target: mean time for each further token")
      .show_default();
  add_text(verb, "--rate", options->rate, "Also tell the GPUs for so many requests (20/s)");
  add_text(verb, "--engine", options->engine, "Only this engine, of the catalogue or a file");
  add_text(verb, "--precision", options->precision, "Only this precision: bf16, fp8, fp4, int4");
  verb.add_option("--mode", options->mode, "Only workers that do all, or of two kinds")
      .one_of({"aggregated", "disaggregated"});
  add_count(verb, "--cached", options->cached, 0, 99,
            "Percent of the input that a prefix cache has");
  add_text(verb, "--draft", options->draft, "Draft model for speculative decoding");
  add_text(verb, "--acceptance", options->acceptance,
           "Chance that a drafted token is accepted where those before it were");
  add_count(verb, "--draft-tokens", options->draft_tokens, 1, 64,
            "Tokens that are drafted at once; else as many as are best, or none");
  add_count(verb, "--budget", options->budget, 1, std::int64_t{1} << 40,
            "Steps that are evaluated at most");
  add_output_file(verb, "--out,-o", options->out, "Write the engines' command lines here");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
