#include "braid/evaluate/service_evaluation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/report/table.h"
#include "braid/serve/number_formats.h"

namespace braid {
namespace {

using ServiceRows = std::vector<std::vector<std::string>>;

std::string ms(double seconds) { return fmt::format("{} ms", four_figures(1e3 * seconds)); }

std::string workers_text(const WorkerPlan& of) {
  std::string text = fmt::format("{} of {}", of.workers, layout_text(of.layout));
  if (of.draft_tokens > 0) text += fmt::format(", drafts {}", of.draft_tokens);
  return text;
}

/// A row's cells of mine and, if there is one, the best.
template <typename Cell>
void add_row(ServiceRows& rows, const ServiceEvaluation& evaluation, const char* name, Cell cell) {
  rows.push_back({name, cell(evaluation.mine)});
  if (evaluation.best) rows.back().push_back(cell(*evaluation.best));
}

std::string service_figures_text(const ServiceEvaluation& evaluation, const ServingJob& job) {
  ServiceRows rows = {{"Within both targets", "yours"}};
  if (evaluation.best) rows.front().emplace_back("best");
  const auto add = [&](const char* name, auto cell) { add_row(rows, evaluation, name, cell); };
  using T = const StatedTimes&;
  const auto if_held = [](T of, const std::string& text) {
    return of.holds_targets() ? text : std::string("none");
  };
  add("requests/s", [&](T of) { return if_held(of, four_figures(of.plan.requests_per_s)); });
  add("requests/s a GPU",
      [&](T of) { return if_held(of, four_figures(of.plan.requests_per_s_per_device())); });
  add("output tokens/s a GPU", [&](T of) {
    return if_held(of, four_figures(of.plan.requests_per_s_per_device() * job.output_tokens));
  });
  add("TTFT", [&](T of) { return if_held(of, ms(of.plan.ttft_s)); });
  add("TPOT", [&](T of) { return if_held(of, ms(of.plan.tpot_s)); });
  add("sequences of a worker",
      [&](T of) { return if_held(of, fmt::format("{:g}", of.sequences)); });
  add("GPUs", [](T of) { return std::to_string(of.plan.devices); });
  const bool two = evaluation.mine.plan.disaggregated;
  if (two) add("prefill workers", [](T of) { return workers_text(of.plan.prefill); });
  add(two ? "decode workers" : "workers", [](T of) { return workers_text(of.plan.decode); });
  const auto batch = [](double sequences) { return fmt::format("{:.0f}", sequences); };
  add("sequences at once", [&](T of) { return batch(of.plan.decode.limits.sequences); });
  add("chunk",
      [&](T of) { return batch((two ? of.plan.prefill : of.plan.decode).limits.chunk_tokens); });
  return text_table(rows) + "\n";
}

std::string service_verdict(const ServiceEvaluation& evaluation, const ServingJob& job) {
  const StatedTimes& mine = evaluation.mine;
  std::string text;
  if (!mine.fits()) {
    const double missing = std::max(mine.decode.missing_bytes, mine.prefill.missing_bytes);
    text = fmt::format("It does not fit: a GPU lacks {} GiB for one request.\n",
                       four_figures(missing / kGiB));
    return text + (evaluation.search && !evaluation.best
                       ? "No workers of this engine and kind hold the targets.\n\n"
                       : "\n");
  }
  text += fmt::format("One request alone: TTFT {}, TPOT {}.\n", ms(mine.alone.ttft_s),
                      ms(mine.alone.tpot_s));
  if (mine.plan.disaggregated) {
    text += fmt::format("With {:.0f} sequences on a decode worker: TPOT {}.\n", mine.full_batch,
                        ms(mine.full.tpot_s));
  } else {
    text += fmt::format("With all {:.0f} sequences that a worker takes: TTFT {}, TPOT {}.\n",
                        mine.full_batch, ms(mine.full.ttft_s), ms(mine.full.tpot_s));
  }
  if (mine.holds_targets()) {
    const ServingIntervals& sure = evaluation.sure;
    text += fmt::format(
        "80 % intervals, of such services within the targets: TTFT {} to {}, TPOT {} to {}.\n",
        ms(mine.plan.ttft_s * sure.ttft.low), ms(mine.plan.ttft_s * sure.ttft.high),
        ms(mine.plan.tpot_s * sure.tpot.low), ms(mine.plan.tpot_s * sure.tpot.high));
  } else {
    text += fmt::format("It never holds both targets, TTFT {} and TPOT {}.\n", ms(job.ttft_s),
                        ms(job.tpot_s));
  }
  if (!evaluation.search) return text + "\n";
  if (!evaluation.best) return text + "No workers of this engine and kind hold the targets.\n\n";
  const double best = evaluation.best->plan.requests_per_s_per_device();
  const double own = mine.plan.requests_per_s_per_device();
  if (own > best * kAboveTolerance) {
    return text + fmt::format(
                      "Yours serves {} times as many requests a GPU as the best of the searched "
                      "space, which has fewer numbers of sequences and tokens to choose from.\n\n",
                      four_figures(own / best));
  }
  if (own >= best * kBelowTolerance) return text + "None of the space is better.\n\n";
  if (mine.holds_targets()) {
    text +=
        fmt::format("The best serves {} times as many requests a GPU.\n", four_figures(best / own));
  }
  return text + "\n";
}

std::string worker_memory_text(const ServiceEvaluation& evaluation, const ServingJob& job) {
  const ServingPlan& plan = evaluation.mine.plan;
  ServiceRows rows = {{"Memory of a GPU, GiB", "weights", "activations", "graphs", "caches",
                       "a request", "requests held"}};
  const auto add = [&](const char* name, const WorkerRoom& room) {
    const WorkerMemory& memory = room.memory;
    const auto gib = [](double bytes) { return fmt::format("{:.2f}", bytes / kGiB); };
    rows.push_back({name, gib(memory.weights_bytes), gib(memory.activation_bytes),
                    gib(memory.graph_bytes),
                    memory.room_bytes < 0 ? "none" : gib(memory.room_bytes),
                    gib(room.request_bytes), fmt::format("{:.0f}", room.held)});
  };
  if (plan.disaggregated) add("a prefill worker's", evaluation.mine.prefill);
  add(plan.disaggregated ? "a decode worker's" : "a worker's", evaluation.mine.decode);
  const Chip& chip = job.system->groups.front().chip;
  return text_table(rows) +
         fmt::format("Of {:.4g} GiB, of which {} takes {:g} {}.\n\n", chip.memory.bytes / kGiB,
                     plan.decode.engine->name, plan.decode.engine->memory_share,
                     plan.decode.engine->share_of_free ? "of what weights leave" : "in all");
}

std::string service_changes_text(const ServiceEvaluation& evaluation) {
  if (evaluation.changes.empty()) return "";
  ServiceRows rows = {{"From yours to the best, one change at a time", "requests/s a GPU", "TTFT",
                       "TPOT", "requests held"}};
  const auto add = [&](const std::string& what, const StatedTimes& of) {
    const bool held = of.holds_targets();
    const std::string none = of.fits() ? "none" : "does not fit";
    rows.push_back({what, held ? four_figures(of.plan.requests_per_s_per_device()) : none,
                    held ? ms(of.plan.ttft_s) : "-", held ? ms(of.plan.tpot_s) : "-",
                    fmt::format("{:.0f}", of.decode.held)});
  };
  add("yours", evaluation.mine);
  for (const ServiceChange& change : evaluation.changes) add(change.what, change.after);
  return text_table(rows) + "\n";
}

/// With the catalogue's share of memory where that is more.
Engine engine_of_best(const Engine& mine) {
  Engine engine = mine;
  const std::vector<Engine>& known = engine_catalogue();
  const auto usual = std::find_if(known.begin(), known.end(),
                                  [&](const Engine& each) { return each.name == mine.name; });
  if (usual != known.end()) {
    engine.memory_share = std::max(engine.memory_share, usual->memory_share);
  }
  return engine;
}

/// The best of the space, by the figures of a stated service.
void look_for(const Engine& engine, const ServingJob& job, ServiceEvaluation& evaluation) {
  ServingJob free = job;
  const ServingPlan& mine = evaluation.mine.plan;
  free.engines = {&engine};
  free.formats = {mine.decode.format};
  const ServingFormat usual = serving_format(*job.model, mine.decode.format.name);
  if (usual.cache != mine.decode.format.cache) free.formats.push_back(usual);
  free.aggregated = !mine.disaggregated;
  free.disaggregated = mine.disaggregated;
  try {
    evaluation.search = plan_serving(free);
  } catch (const Error&) {
    evaluation.search = ServingOutcome{};  // Its weights fit no worker.
  }
  if (!evaluation.search->plan) return;
  evaluation.best = stated_times(*evaluation.search->plan, job);
  if (evaluation.best->plan.requests_per_s_per_device() <=
      evaluation.mine.plan.requests_per_s_per_device() * kAboveTolerance) {
    return;
  }
  evaluation.changes = service_changes(mine, *evaluation.search->plan, job);
}

}  // namespace

ServingIntervals intervals_of(const ServingPlan& plan, const ServingJob& job) {
  return serving_intervals({plan.decode.engine->name, job.system->groups.front().chip.name,
                            job.model->name, plan.decode.format.name, plan.disaggregated},
                           serving_evidence());
}

ServiceEvaluation evaluate_service(const StatedService& stated, const ServingJob& job,
                                   bool look_for_best) {
  ServiceEvaluation evaluation;
  evaluation.mine = stated_times(stated.plan, job);
  evaluation.sure = intervals_of(stated.plan, job);
  evaluation.not_given = stated.not_given;
  if (look_for_best) {
    evaluation.engine = std::make_unique<Engine>(engine_of_best(*stated.plan.decode.engine));
    look_for(*evaluation.engine, job, evaluation);
  }
  return evaluation;
}

std::string service_evaluation_text(const ServiceEvaluation& evaluation, const ServingJob& job) {
  const WorkerPlan& decode = evaluation.mine.plan.decode;
  return fmt::format(
             "{} by {} in {}, caches in {}; requests of {:.0f} input and {:.0f} output tokens\n",
             job.model->name, decode.engine->name, decode.format.name, decode.format.cache,
             job.input_tokens, job.output_tokens) +
         fmt::format("Targets: TTFT {:.10g} ms, TPOT {:.10g} ms\n\n", 1e3 * job.ttft_s,
                     1e3 * job.tpot_s) +
         service_figures_text(evaluation, job) + service_verdict(evaluation, job) +
         worker_memory_text(evaluation, job) + service_changes_text(evaluation) +
         titled_lines("Not given, taken as:", evaluation.not_given) +
         titled_lines("Not known to braid, and left out:", evaluation.not_known) +
         titled_lines("Modelled otherwise, or not at all:", evaluation.not_modelled);
}

}  // namespace braid
