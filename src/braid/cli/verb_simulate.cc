#include <memory>

#include <fmt/format.h>

#include "braid/base/file.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/text_option.h"
#include "braid/cli/valid_plan.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/plan/plan_json.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/verify.h"

namespace braid {
namespace {

struct SimulateOptions {
  std::string plan, trace;
  bool json = false;
};

int run_simulate(const SimulateOptions& options) {
  const Plan plan = read_valid_plan(options.plan);
  const Metrics metrics = measure(plan);
  if (!options.trace.empty()) write_file(options.trace, to_trace(plan, simulate(plan)));
  if (options.trace == "-") return kFound;
  if (options.json) {
    Json json = Json::object();
    json["iteration_time_s"] = metrics.iteration_time_s;
    json["tokens_per_s"] = metrics.tokens_per_s;
    json["mfu"] = metrics.mfu;
    json["bubble_s"] = metrics.bubble_s;
    json["peak_memory_bytes"] = metrics.peak_memory_bytes;
    fmt::print("{}", to_text(json));
    return kFound;
  }
  fmt::print(
      "{}: {:.6g} s per iteration, {:.6g} {}/s, MFU {:.1f}%, bubble {:.3g} s, peak {:.1f} "
      "GiB in stage {}\n",
      plan.model, metrics.iteration_time_s, metrics.tokens_per_s,
      plan.seq_len > 0 ? "tokens" : "samples", 100 * metrics.mfu, metrics.bubble_s,
      metrics.peak_memory_bytes / (1024.0 * 1024 * 1024), metrics.tightest_stage + 1);
  if (!options.trace.empty()) {
    fmt::print("Trace written to {}; open it at ui.perfetto.dev or chrome://tracing\n",
               options.trace);
  }
  return kFound;
}

struct VerifyOptions {
  std::string plan;
  bool json = false;
};

int run_verify(const VerifyOptions& options) {
  const Plan plan = read_plan(options.plan);
  Verification verification = verify(plan);
  // A plan that claims nothing is held against the simulator.
  if (!plan.claims && verification.holds()) {
    const Metrics metrics = measure(plan);
    verification =
        verify(plan, Claims{metrics.iteration_time_s, metrics.peak_memory_bytes, 0, 0, 0});
  }
  const double time_s = verification.iteration_time_s;
  const double gap = time_s > 0 ? 1 - verification.lower_bound_s / time_s : 0;
  if (options.json) {
    Json json = Json::object();
    json["holds"] = verification.holds();
    json["iteration_time_s"] = time_s;
    json["peak_memory_bytes"] = verification.peak_memory_bytes;
    json["lower_bound_s"] = verification.lower_bound_s;
    json["gap"] = gap;
    json["checks"] = Json::array();
    for (const Check& check : verification.checks) {
      json["checks"].push_back(
          {{"name", check.name}, {"holds", check.holds}, {"detail", check.detail}});
    }
    fmt::print("{}", to_text(json));
  } else {
    for (const Check& check : verification.checks) {
      fmt::print("{}  {:<9} {}\n", check.holds ? "ok  " : "FAIL", check.name, check.detail);
    }
    if (verification.holds()) {
      fmt::print("The plan holds; its gap to the arithmetic bound is {:.1f}%.\n", 100 * gap);
    }
  }
  return verification.holds() ? kFound : kInfeasible;
}

}  // namespace

Run add_simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  Verb verb(app, "simulate", "Replay a plan; write a Perfetto trace");
  verb.footer("Example:\n  braid simulate plan.json --trace trace.json");
  verb.add_option("PLAN", options->plan, "Plan JSON, as braid plan -o writes it").required();
  add_output_file(verb, "--trace", options->trace, "Write a Chrome/Perfetto trace");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run_simulate(*options); };
}

Run add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  Verb verb(app, "verify", "Check a plan independently of the planners");
  verb.footer("Example:\n  braid verify plan.json");
  verb.add_option("PLAN", options->plan, "Plan JSON, as braid plan -o writes it").required();
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run_verify(*options); };
}

}  // namespace braid
