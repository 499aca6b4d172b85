#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/temporary_folder.h"
#include "braid/cli/count_option.h"
#include "braid/cli/text_option.h"
#include "braid/cli/valid_plan.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/worker_program.h"
#include "braid/cli/written.h"
#include "braid/report/html_timeline.h"
#include "braid/report/table.h"
#include "braid/report/terms.h"
#include "braid/run/checkpoint.h"
#include "braid/run/dry_run.h"
#include "braid/run/parity.h"
#include "braid/run/process_watch.h"
#include "braid/run/run_job.h"
#include "braid/run/run_measurement.h"
#include "braid/run/safetensors.h"
#include "braid/run/whole_weights.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

struct RunOptions {
  RunJob job;
  std::string type = "float32", optimizer = "sgd", rate = "0.01";
  std::int64_t timeout_s = 300;
  std::string trace, html, weights;
  bool check = false, json = false, type_given = false;
};

/// A run as it is told to its processes.
struct PlannedRun {
  RunJob job;
  LoadedRun loaded;
  std::vector<ParameterGroup> groups;
  std::vector<std::vector<Instruction>> ranks;
  DryRun dry;
  Metrics predicted;
};

PlannedRun planned_run(const RunJob& job, const Plan& plan) {
  PlannedRun run;
  run.job = job;
  run.loaded = load_run(job);
  const StagedModel& staged = run.loaded.staged;
  run.groups = parameter_groups(staged, run.loaded.ordered.plan);
  run.ranks = instructions_of(staged, run.loaded.ordered.order, run.groups);
  run.dry = dry_run(staged, run.groups, run.ranks);
  run.predicted = measure(plan);
  return run;
}

std::string who_is(const PlannedRun& run, std::int32_t rank) {
  const StagedModel& staged = run.loaded.staged;
  const auto place = static_cast<std::size_t>(rank);
  return fmt::format("rank {} (stage {}, device {})", rank, staged.places[place].stage + 1,
                     staged.rank_device[place]);
}

/// Prints what rank 0 says of an iteration.
class ProgressLines {
 public:
  ProgressLines(const PlannedRun& run, bool silent) : run_(run), silent_(silent) {}

  void hear(const std::string& line) {
    long long iteration = 0;
    double loss = 0;
    if (std::sscanf(line.c_str(), "iteration %lld %lg", &iteration, &loss) != 2) return;
    const auto now = std::chrono::steady_clock::now();
    if (!silent_) {
      const Plan& plan = run_.loaded.ordered.plan;
      std::string speed;
      if (last_) {
        const double took_s = std::chrono::duration<double>(now - *last_).count();
        const auto units = static_cast<double>(plan.global_batch) *
                           static_cast<double>(std::max<std::int64_t>(1, plan.seq_len));
        speed = fmt::format("  {} {}/s", rate_text(units / took_s),
                            plan.seq_len > 0 ? "tokens" : "samples");
      }
      fmt::print("iteration {:>4}  loss {:.6g}{}  predicted {}\n", iteration + 1, loss, speed,
                 rate_text(run_.predicted.tokens_per_s));
      std::fflush(stdout);
    }
    last_ = now;
  }

 private:
  const PlannedRun& run_;
  bool silent_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

/// Starts one process a word ("0", "1", … or "whole") and waits. Throws Error with the failure.
void run_processes(const PlannedRun& run, const std::vector<std::string>& ranks, bool silent) {
  const std::string file = run.job.folder + "/job.json";
  write_file(file, run_job_text(run.job));
  const std::string program = worker_program();
  std::vector<ProcessStart> starts;
  for (const std::string& rank : ranks) {
    const bool whole = rank == "whole";
    starts.push_back({{program, file, rank},
                      whole ? "the single process" : who_is(run, std::atoi(rank.c_str()))});
  }
  ProgressLines lines(run, silent);
  // They load their libraries and wait for each other, of many processes for a minute.
  if (!silent && starts.size() > 1) {
    fmt::print(stderr, "braid: starting {} processes; iterations begin when all have met\n",
               starts.size());
  }
  const ProcessEnd end =
      watch_processes(starts, [&](std::size_t, const std::string& line) { lines.hear(line); });
  if (end.failure.empty()) return;
  throw Error("the run " +
              (end.interrupted ? "was " + end.failure : "ended early: " + end.failure));
}

std::string percent_off(double predicted, double measured) {
  if (measured <= 0) return "-";
  return fmt::format("{:+.1f} %", 100 * (predicted - measured) / measured);
}

void print_terms(const PlannedRun& run, const RunMeasurement& measured) {
  const Metrics& p = run.predicted;
  const RankTimes& busiest = measured.ranks[measured.busiest_rank];
  const double passes_s = p.compute_s + p.recompute_s + p.tp_comm_s + p.cp_comm_s + p.ep_comm_s;
  std::vector<std::vector<std::string>> rows = {
      {"of an iteration, ms", "predicted", "measured", "off"}};
  const auto add = [&](const std::string& name, double predicted_s, double measured_s) {
    rows.push_back({name, part_text(1e3 * predicted_s, 1e3 * p.iteration_time_s),
                    part_text(1e3 * measured_s, 1e3 * measured.iteration_time_s),
                    percent_off(predicted_s, measured_s)});
  };
  add("whole", p.iteration_time_s, measured.iteration_time_s);
  add("passes", passes_s, busiest.passes_s);
  // Differences of sums may be below 0 by what they are rounded.
  add("handing over and waiting", std::max(0.0, p.pp_comm_s + p.bubble_s),
      busiest.handover_s + busiest.rest_s);
  add("data parallelism", std::max(0.0, p.dp_comm_s), busiest.gradients_s);
  add("optimizer", p.optimizer_s + p.offload_s, busiest.optimizer_s);
  rows.push_back({"memory, GiB", fmt::format("{:.3f}", p.peak_memory_bytes / kGiB),
                  fmt::format("{:.3f}", measured.peak_memory_bytes / kGiB),
                  percent_off(p.peak_memory_bytes, measured.peak_memory_bytes)});
  fmt::print("\n{}", text_table(rows));
  fmt::print("Predicted for {}; measured on this machine, by {}; memory is of whole processes.\n",
             run.loaded.ordered.plan.system.name,
             who_is(run, static_cast<std::int32_t>(measured.busiest_rank)));
}

std::vector<NamedTensor> trained_weights(const PlannedRun& run) {
  std::vector<NamedTensor> pieces;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    for (NamedTensor& each :
         read_safetensors(rank_weights_file(run.job, static_cast<std::int32_t>(r)))) {
      pieces.push_back(std::move(each));
    }
  }
  return whole_weights(run.loaded.staged.model, run.groups, pieces);
}

Json result_json(const PlannedRun& run, const RankRecord& first, const RunMeasurement& measured,
                 const std::optional<Parity>& parity) {
  Json json = Json::object();
  json["model"] = run.loaded.ordered.plan.model;
  json["ranks"] = run.ranks.size();
  json["losses"] = first.losses;
  json["iteration_time_s"] = measured.iteration_time_s;
  json["predicted_s"] = run.predicted.iteration_time_s;
  json["peak_memory_bytes"] = measured.peak_memory_bytes;
  json["in_flight"] = Json::array();
  for (const std::vector<std::int64_t>& part : run.dry.in_flight) {
    json["in_flight"].push_back(part.front());
  }
  json["times"] = Json::array();
  for (const RankTimes& each : measured.ranks) {
    json["times"].push_back({{"passes_s", each.passes_s},
                             {"handover_s", each.handover_s},
                             {"gradients_s", each.gradients_s},
                             {"optimizer_s", each.optimizer_s},
                             {"rest_s", each.rest_s}});
  }
  if (parity) {
    json["check"] = {{"holds", parity->holds()},
                     {"loss_difference", parity->loss},
                     {"weight_difference", parity->weight},
                     {"allowed", parity->allowed}};
  }
  return json;
}

std::string parity_text(const Parity& parity) {
  if (!parity.missing.empty()) return "The check fails: only one side has " + parity.missing;
  const std::string figures =
      fmt::format("losses differ by {:.2g}, weights by {:.2g} (allowed: {:.0e})", parity.loss,
                  parity.weight, parity.allowed);
  if (parity.holds()) return "As one process trains it: " + figures;
  return "The check fails: " + figures + ", most of all " + parity.worst;
}

/// This process is one rank of several on other machines, as its environment says.
int run_own_rank(const PlannedRun& run, const std::string& rank) {
  const char* size = std::getenv("WORLD_SIZE");
  if (size == nullptr) size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr || std::to_string(run.ranks.size()) != size) {
    throw Error(fmt::format("the plan has {} ranks, and {} were started", run.ranks.size(),
                            size == nullptr ? "an unknown number" : size),
                "start as many processes as the plan has devices");
  }
  if (std::getenv("MASTER_ADDR") == nullptr || std::getenv("MASTER_PORT") == nullptr) {
    throw Error("MASTER_ADDR and MASTER_PORT do not say where rank 0 is", "set them");
  }
  run_processes(run, {rank}, rank != "0");
  return kFound;
}

/// The job that the options ask for. Throws Error for options that contradict each other.
RunJob job_of(const RunOptions& options) {
  RunJob job = options.job;
  job.settings.type =
      training_type(options.check && !options.type_given ? "float64" : options.type);
  job.settings.optimizer = options.optimizer == "adam" ? OptimizerRule::adam : OptimizerRule::sgd;
  char* end = nullptr;
  job.settings.learning_rate = std::strtod(options.rate.c_str(), &end);
  if (*end != '\0' || !std::isfinite(job.settings.learning_rate)) {
    throw Error(Where{"", 0, "--lr"}, "is not a number: " + options.rate, "such as 0.01");
  }
  job.timeout_s = static_cast<double>(options.timeout_s);
  if (options.check && !job.resume.empty()) {
    throw Error(Where{"", 0, "--check"}, "trains from the start, and --resume goes on",
                "leave one of them out");
  }
  if (job.checkpoint_every > 0 && job.checkpoint.empty()) {
    throw Error(Where{"", 0, "--checkpoint-every"}, "says nothing without --checkpoint",
                "give the file");
  }
  return job;
}

int run_plan(const RunOptions& options) {
  RunJob job = job_of(options);
  const ValidPlan valid = read_valid_plan(job.plan);
  const TemporaryFolder folder;
  job.folder = folder.path();
  job.plan = std::filesystem::absolute(job.plan).string();
  for (std::string* file : {&job.checkpoint, &job.resume}) {
    if (!file->empty()) *file = std::filesystem::absolute(*file).string();
  }
  const PlannedRun run = planned_run(job, valid.plan);
  if (!job.resume.empty()) {
    check_resumable(read_checkpoint(job.resume), options.job.resume, valid.plan.model,
                    job.settings);
  }
  worker_program();
  const char* own = std::getenv("RANK");
  if (own == nullptr) own = std::getenv("OMPI_COMM_WORLD_RANK");
  if (own != nullptr) return run_own_rank(run, own);

  std::vector<std::string> ranks;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) ranks.push_back(std::to_string(r));
  if (!options.json) {
    fmt::print("{} ({} samples an iteration) by {} processes in {} stages\n", valid.plan.model,
               valid.plan.global_batch, ranks.size(), valid.plan.stages.size());
    std::fflush(stdout);
  }
  run_processes(run, ranks, options.json);
  std::vector<RankRecord> records;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    records.push_back(read_rank_record(rank_record_file(job, static_cast<std::int32_t>(r))));
  }
  const RunMeasurement measured = measurement_of(run.loaded.staged, run.ranks, records);
  if (!options.trace.empty() || !options.html.empty()) {
    const Plan& plan = run.loaded.ordered.plan;
    const Timeline predicted =
        job.schedule.empty() ? simulate(valid.plan) : draw_order(valid.plan, job.schedule).timeline;
    if (!options.trace.empty()) {
      write_file(options.trace, to_trace(plan, predicted, measured.timeline));
    }
    if (!options.html.empty()) {
      write_file(options.html, measured_page(plan, predicted, measured.timeline, valid.notes));
    }
  }
  if (!options.weights.empty()) write_safetensors(options.weights, trained_weights(run));
  std::optional<Parity> parity;
  if (options.check) {
    run_processes(run, {"whole"}, true);
    const RankRecord whole = read_rank_record(whole_record_file(job));
    parity = parity_of({records.front().losses, trained_weights(run)},
                       {whole.losses, read_safetensors(whole_weights_file(job))},
                       allowed_difference(job.settings.type));
  }
  if (options.json) {
    fmt::print("{}", to_text(result_json(run, records.front(), measured, parity)));
  } else {
    print_terms(run, measured);
    say_written_below({{"Trace", options.trace, kOpenTrace},
                       {"Page", options.html, kOpenPage},
                       {"Weights", options.weights},
                       {"Checkpoint", job.checkpoint, "go on from it with --resume"}});
    if (parity) fmt::print("{}\n", parity_text(*parity));
  }
  print_warnings(valid.warnings);
  return !parity || parity->holds() ? kFound : kInfeasible;
}

}  // namespace

Run add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  Verb verb(app, "run", "Train by a plan, with a process for each of its devices");
  verb.footer(
      "Example:\n  braid run plan.json --iterations 20 --trace run.json\n  braid run plan.json "
      "--check\n\nThe processes run on this machine's cores. Where RANK, WORLD_SIZE, MASTER_ADDR "
      "and MASTER_PORT are set, as torchrun does, this is one of them. Weights and data are made "
      "up. docs/running.md says more.");
  RunJob& job = options->job;
  verb.add_option("PLAN", job.plan, "Plan JSON, as braid plan -o writes it").required();
  add_text(verb, "--model", job.model, "The plan's model, where it lies elsewhere now");
  verb.add_option("--schedule", job.schedule, "Another order of passes than the plan's")
      .one_of({"gpipe", "1f1b", "1f1b-least", "interleaved", "zb-h1", "zb-h2", "zb-v", "kfkb",
               "greedy", "search"});
  add_count(verb, "--iterations", job.settings.iterations, 1, std::int64_t{1} << 40,
            "How many (default: 10)");
  verb.add_option(
          "--dtype",
          [options](const std::string& text) {
            options->type = text;
            options->type_given = true;
          },
          "Numbers to train in (default: float32; with --check float64)")
      .one_of({"float64", "float32", "bf16"});
  verb.add_option("--optimizer", options->optimizer, "sgd (default) or adam")
      .one_of({"sgd", "adam"});
  add_text(verb, "--lr", options->rate, "Learning rate (default: 0.01)");
  add_count(verb, "--seed", job.settings.seed, 0, std::int64_t{1} << 40,
            "Of weights and data (default: 1)");
  add_count(verb, "--threads", job.threads, 1, 1024, "Of each process (default: 1)");
  add_count(verb, "--timeout", options->timeout_s, 1, 86400,
            "Seconds to wait for a process or its message (default: 300)");
  verb.add_flag("--check", options->check,
                "Train by one process too, and compare all losses and weights");
  add_output_file(verb, "--trace", options->trace,
                  "Write the predicted timeline and the measured one under it, for Perfetto");
  add_output_file(verb, "--html", options->html,
                  "Write a page with the predicted timeline above the measured one");
  add_output_file(verb, "--checkpoint", job.checkpoint,
                  "Keep weights and optimizer state here (safetensors), to go on from");
  add_count(verb, "--checkpoint-every", job.checkpoint_every, 1, std::int64_t{1} << 40,
            "Iterations from one to the next (default: after the last alone)");
  add_text(verb, "--resume", job.resume, "Go on from a checkpoint, by this plan");
  add_output_file(verb, "--weights", options->weights, "Write the weights (safetensors)");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run_plan(*options); };
}

}  // namespace braid
