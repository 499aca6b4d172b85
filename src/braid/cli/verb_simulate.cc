#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/cli/count_option.h"
#include "braid/cli/outcome_json.h"
#include "braid/cli/text_option.h"
#include "braid/cli/valid_plan.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/plan/plan_json.h"
#include "braid/plan/stage_context.h"
#include "braid/report/bound_text.h"
#include "braid/report/html_timeline.h"
#include "braid/report/plans_table.h"
#include "braid/report/table.h"
#include "braid/report/terms.h"
#include "braid/schedule/plan_orders.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/verify.h"

namespace braid {
namespace {

struct SimulateOptions {
  std::string plan, trace, html, schedule;
  KChoice k;
  bool k_given = false;
  bool json = false;
};

/// What a plan takes by one schedule, or why it cannot run so.
struct ScheduleRow {
  std::string name;
  std::optional<PlanOrder> order;
  std::string refusal;
  double short_bytes = 0;  ///< That the tightest stage lacks; 0: it fits.
};

Json to_json(const ScheduleRow& row) {
  Json json = Json::object();
  json["schedule"] = row.name;
  if (!row.order) {
    json["refusal"] = row.refusal;
    return json;
  }
  json["iteration_time_s"] = row.order->iteration_time_s;
  json["idle_s"] = row.order->idle_s;
  json["peak_memory_bytes"] = row.order->peak_memory_bytes;
  json["fits"] = row.short_bytes == 0;
  if (!row.order->in_flight.empty()) json["in_flight"] = row.order->in_flight;
  if (row.order->proved) json["proved_shortest"] = *row.order->proved;
  if (!row.order->k.empty()) json["k"] = row.order->k;
  if (row.order->k_tried > 0) {
    json["k_tried"] = row.order->k_tried;
    json["all_k_tried"] = row.order->all_k_tried;
  }
  return json;
}

/// What the tightest stage lacks of memory; 0: nothing.
double lacking_bytes(const Plan& plan, const PlanOrder& order) {
  const double usable = usable_bytes_of_stage(plan, static_cast<std::size_t>(order.tightest_stage));
  return order.peak_memory_bytes > usable * kAboveRounding ? order.peak_memory_bytes - usable : 0;
}

/// How the schedule was found, where that has to be said.
std::string way_of(const PlanOrder& order) {
  if (order.proved) {
    return *order.proved ? "proven shortest of whole backward passes" : "best found, not proven";
  }
  if (order.k_tried == 0) return "";
  return fmt::format("k {}, {}", fmt::join(order.k, ","),
                     order.all_k_tried
                         ? "the best of all"
                         : fmt::format("the best of {} tried, not of all", order.k_tried));
}

std::string remark_on(const ScheduleRow& row) {
  std::string text = row.short_bytes > 0
                         ? fmt::format("does not fit: {} too little", format_bytes(row.short_bytes))
                         : "";
  const std::string way = way_of(*row.order);
  return text + (text.empty() || way.empty() ? "" : "; ") + way;
}

/// "3", "2,1,4" or "best".
KChoice parse_k(const std::string& text) {
  KChoice choice;
  choice.best = text == "best";
  if (choice.best) return choice;
  choice.k.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    choice.k.push_back(parse_count("--k", text.substr(begin, end - begin), 1, 1 << 20));
    begin = end + 1;
  }
  return choice;
}

/// A row for each schedule, of all after that of the plan as it is; the refusal of a single one is
/// the verb's.
int run_schedules(const SimulateOptions& options, const Plan& plan) {
  const bool all = options.schedule == "all";
  std::vector<ScheduleRow> rows;
  const auto add_row = [&](const std::string& name, const auto& timed) {
    ScheduleRow row{name, std::nullopt, "", 0};
    try {
      row.order = timed();
      row.short_bytes = lacking_bytes(plan, *row.order);
    } catch (const Error& error) {
      if (!all) throw;
      row.refusal = error.what();
    }
    rows.push_back(std::move(row));
  };
  if (all) add_row("as planned", [&] { return order_as_planned(plan); });
  for (const std::string& name : plan_order_names()) {
    if (!all && name != options.schedule) continue;
    add_row(name, [&] { return order_of_plan(plan, name, options.k); });
  }
  if (options.json) {
    Json json = Json::object();
    json["schedules"] = Json::array();
    for (const ScheduleRow& row : rows) json["schedules"].push_back(to_json(row));
    fmt::print("{}", to_text(json));
    return kFound;
  }
  std::vector<std::vector<std::string>> cells = {
      {"schedule", "iteration", "idle", "peak memory", "in stage", "in flight", ""}};
  for (const ScheduleRow& row : rows) {
    if (!row.order) {
      cells.push_back({row.name, "-", "-", "-", "-", "-", row.refusal});
      continue;
    }
    const PlanOrder& order = *row.order;
    const auto most = std::max_element(order.in_flight.begin(), order.in_flight.end());
    const bool counted = most != order.in_flight.end();
    cells.push_back({row.name, fmt::format("{} s", four_figures(order.iteration_time_s)),
                     fmt::format("{} s", four_figures(order.idle_s)),
                     fmt::format("{:.2f} GiB", order.peak_memory_bytes / kGiB),
                     fmt::format("{}", order.tightest_stage + 1),
                     counted ? fmt::format("{}", *most) : "-", remark_on(row)});
  }
  fmt::print("{}", text_table(cells));
  fmt::print(
      "idle: of the device with most to do, the pipeline's bubble and what it waits for "
      "transfers; in flight: micro-batches that a stage has begun and not ended, at most\n");
  return kFound;
}

/// Writes the files that are asked for; true when one is the standard output, which takes no more.
bool write_timeline(const SimulateOptions& options, const ValidPlan& valid) {
  const Plan& plan = valid.plan;
  if (!options.html.empty()) write_file(options.html, timeline_page(plan, valid.notes));
  if (options.html == "-") return true;
  if (!options.trace.empty()) write_file(options.trace, to_trace(plan, simulate(plan)));
  return options.trace == "-";
}

/// The same by another schedule.
bool write_timeline(const SimulateOptions& options, const DrawnOrder& drawn,
                    const std::vector<std::string>& notes) {
  if (!options.html.empty()) {
    write_file(options.html, timeline_page(drawn, options.schedule, notes));
  }
  if (options.html == "-") return true;
  if (!options.trace.empty()) write_file(options.trace, to_trace(drawn.plan, drawn.timeline));
  return options.trace == "-";
}

void say_files(const SimulateOptions& options) {
  say_written_below({{"Trace", options.trace, kOpenTrace}, {"Page", options.html, kOpenPage}});
}

/// What `options` ask for of a plan.
int simulate_plan(const SimulateOptions& options, const ValidPlan& valid) {
  const Plan& plan = valid.plan;
  const bool files = !options.trace.empty() || !options.html.empty();
  if (!options.schedule.empty()) {
    if (files) {
      const DrawnOrder drawn = draw_order(plan, options.schedule, options.k);
      if (write_timeline(options, drawn, valid.notes)) return kFound;
    }
    const int status = run_schedules(options, plan);
    if (!options.json) say_files(options);
    return status;
  }
  const Metrics metrics = measure(plan);
  if (write_timeline(options, valid)) return kFound;
  if (options.json) {
    Json json = Json::object();
    json["iteration_time_s"] = metrics.iteration_time_s;
    json["tokens_per_s"] = metrics.tokens_per_s;
    json["mfu"] = knows_arithmetic(plan.system) ? Json(metrics.mfu) : Json();
    json["bubble_s"] = metrics.bubble_s;
    json["peak_memory_bytes"] = metrics.peak_memory_bytes;
    fmt::print("{}", to_text(json));
    return kFound;
  }
  fmt::print(
      "{}: {} s per iteration, {} {}/s, {}pipeline bubble {} s, peak {:.1f} GiB in stage {}\n",
      plan.model, four_figures(metrics.iteration_time_s), rate_text(metrics.tokens_per_s),
      plan.seq_len > 0 ? "tokens" : "samples",
      knows_arithmetic(plan.system) ? fmt::format("MFU {:.1f} %, ", 100 * metrics.mfu) : "",
      part_text(metrics.bubble_s, metrics.iteration_time_s), metrics.peak_memory_bytes / kGiB,
      metrics.tightest_stage + 1);
  say_files(options);
  return kFound;
}

int run_simulate(const SimulateOptions& options) {
  const bool files = !options.trace.empty() || !options.html.empty();
  if (options.schedule == "all" && files) {
    throw Error(Where{"", 0, "--schedule"}, "all excludes --trace and --html",
                "they show one schedule");
  }
  if (options.k_given && options.schedule != "kfkb" && options.schedule != "all") {
    throw Error(Where{"", 0, "--k"}, "is for --schedule kfkb", "leave it out");
  }
  const ValidPlan valid = read_valid_plan(options.plan);
  const int status = simulate_plan(options, valid);
  print_warnings(valid.warnings);
  return status;
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
  if (options.json) {
    Json json = Json::object();
    json["holds"] = verification.holds();
    json["iteration_time_s"] = time_s;
    json["peak_memory_bytes"] = verification.peak_memory_bytes;
    json["lower_bound_s"] = verification.lower_bound_s;
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
      fmt::print("The plan holds: {} s an iteration, {} s if all arithmetic ran at peak.\n",
                 four_figures(time_s), bound_figures(verification.lower_bound_s));
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
  add_output_file(verb, "--html", options->html, "Write a page that draws the timeline");
  std::vector<std::string> schedules = plan_order_names();
  schedules.emplace_back("all");
  verb.add_option("--schedule", options->schedule,
                  "Time the plan's stages by this schedule instead: gpipe, 1f1b, 1f1b-least, "
                  "interleaved, zb-h1, zb-h2, zb-v, kfkb, 2bw, greedy, search, or all")
      .one_of(schedules);
  verb.add_option(
          "--k",
          [options](const std::string& text) {
            options->k = parse_k(text);
            options->k_given = true;
          },
          "Passes of a kind in a row under kfkb: one number for all stages (default 2), one for "
          "each, or best")
      .type_name("N,N,...|best");
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
