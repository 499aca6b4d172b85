#include "braid/evaluate/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/plan/stage_context.h"
#include "braid/report/bound_text.h"
#include "braid/report/confidence_text.h"
#include "braid/report/heading.h"
#include "braid/report/plan_text.h"
#include "braid/report/plans_table.h"
#include "braid/report/recommendation_text.h"
#include "braid/report/run_costs_text.h"
#include "braid/report/table.h"
#include "braid/report/terms.h"

namespace braid {
namespace {

/// Whether mine fits and is faster than all that was found.
bool is_faster(const ConfigurationEvaluation& evaluation) {
  const Candidate* best = evaluation.best();
  return best != nullptr && evaluation.mine.fits() &&
         evaluation.mine.candidate.metrics.iteration_time_s <
             best->metrics.iteration_time_s * (1 - kSameTime);
}

std::string table_text(const ConfigurationEvaluation& evaluation) {
  std::vector<PlanRow> rows = {{.candidate = &evaluation.mine.candidate, .label = "yours"}};
  if (const Candidate* best = evaluation.best()) {
    rows.push_back({.candidate = best, .label = is_faster(evaluation) ? "best found" : "best"});
  }
  return plans_table(rows) + "\n";
}

/// `share`: of mine's time that the best takes less.
std::string beside_best(double share, bool fits, bool proven) {
  if (share > kSameTime) {
    return proven ? fmt::format("The best takes {:.1f} % less time.\n", 100 * share)
                  : fmt::format("The best found takes {:.1f} % less time (not proven best).\n",
                                100 * share);
  }
  const double more = -share;
  if (!fits) return fmt::format("Of what fits, the best takes {:.1f} % more time.\n", 100 * more);
  if (more <= kSameTime) return "No configuration that was tried is faster.\n";
  return fmt::format("Yours is faster than the best found, which takes {:.2g} % more time.\n",
                     100 * more);
}

/// That somebody who would rather not use host memory can do without, and may get it from
/// `braid plan`.
std::string offload_note(const Candidate& best) {
  const std::string kept = offload_text(best.plan);
  if (kept.empty()) return "";
  return fmt::format(
      "The best is the fastest plan, which braid plan need not recommend: it keeps {} "
      "(--no-offload: nothing there).\n",
      kept);
}

std::string verdict(const ConfigurationEvaluation& evaluation) {
  const Metrics& mine = evaluation.mine.candidate.metrics;
  std::string text;
  if (!evaluation.mine.fits()) {
    text = fmt::format("Yours does not fit: {}. {}\n", evaluation.mine.misfit, kTimeOfMisfit);
  } else {
    const Plan& plan = evaluation.mine.candidate.plan;
    text = fmt::format("Yours fits: the tightest stage, {} of {}, needs {:.1f} of {:.1f} GiB.\n",
                       mine.tightest_stage + 1, plan.stages.size(), mine.peak_memory_bytes / kGiB,
                       usable_bytes_of_stage(plan, mine.tightest_stage) / kGiB);
  }
  if (const Candidate* best = evaluation.best()) {
    const double share = 1 - best->metrics.iteration_time_s / mine.iteration_time_s;
    text +=
        beside_best(share, evaluation.mine.fits(), evaluation.search->status == Status::optimal);
    text += offload_note(*best);
    if (evaluation.unusual_trainer) {
      text += fmt::format(
          "The best is run with your other settings of {}, which are not the usual ones: "
          "braid plan takes the usual.\n",
          evaluation.mine.candidate.plan.trainer.name);
    }
  } else if (evaluation.search) {
    text += "Nothing fits at all: " + infeasibility_text(*evaluation.search) + "\n";
  }
  return text + "\n";
}

std::string seconds(double time_s) { return four_figures(time_s); }

/// Where the time goes, in mine and in the best.
std::string terms_text(const ConfigurationEvaluation& evaluation) {
  const Metrics& mine = evaluation.mine.candidate.metrics;
  const auto terms = time_terms(mine);
  const Candidate* best = evaluation.best();
  const auto stages_of = [](const Candidate& of) { return of.plan.stages.size(); };
  const bool staged =
      stages_of(evaluation.mine.candidate) > 1 || (best != nullptr && stages_of(*best) > 1);
  std::vector<std::vector<std::string>> rows = {
      {staged ? "Where the time goes in the busiest stage, s" : "Where the time goes, s", "yours"}};
  if (best != nullptr) rows.front().insert(rows.front().end(), {"best", "yours - best"});
  const auto best_terms = best != nullptr ? time_terms(best->metrics) : terms;
  const double most_s =
      std::max(mine.iteration_time_s, best != nullptr ? best->metrics.iteration_time_s : 0.0);
  const auto add = [&](const std::string& name, double here_s, double there_s) {
    std::vector<std::string> row = {name, part_text(here_s, most_s)};
    if (best != nullptr) {
      row.push_back(part_text(there_s, most_s));
      row.push_back(part_text(here_s - there_s, most_s));
    }
    if (!std::all_of(row.begin() + 1, row.end(), is_zero)) rows.push_back(std::move(row));
  };
  for (std::size_t t = 0; t < terms.size(); ++t) {
    add(terms[t].first, terms[t].second, best_terms[t].second);
  }
  add("iteration", mine.iteration_time_s,
      best != nullptr ? best->metrics.iteration_time_s : mine.iteration_time_s);
  return text_table(rows) + "\n";
}

/// A stage's memory by kind, its sum and what is usable; what lies on the host where `host`.
std::vector<std::string> memory_row(const std::string& label, const Plan& plan, std::size_t stage,
                                    const MemoryBreakdown& memory, bool host) {
  const auto gib = [](double bytes) { return fmt::format("{:.2f}", bytes / kGiB); };
  std::vector<std::string> row = {label};
  for (const auto& [name, bytes] : memory_terms(memory)) row.push_back(gib(bytes));
  row.push_back(gib(memory.device_total()));
  row.push_back(gib(usable_bytes_of_stage(plan, stage)));
  if (host) row.push_back(gib(memory.host));
  return row;
}

/// Memory of mine, stage by stage, of many stages the first, the tightest and the last; below it
/// that of the best's tightest stage.
std::string memory_text(const ConfigurationEvaluation& evaluation) {
  constexpr std::size_t kMost = 16;
  const Candidate& mine = evaluation.mine.candidate;
  const Candidate* best = evaluation.best();
  const std::vector<MemoryBreakdown> memories = memory_of_stages(mine.plan);
  const bool host = (best != nullptr && best->metrics.tightest_memory.host > 0) ||
                    std::any_of(memories.begin(), memories.end(),
                                [](const MemoryBreakdown& memory) { return memory.host > 0; });
  std::vector<std::vector<std::string>> rows = {{"Memory of yours, GiB"}};
  if (best != nullptr) rows.front().front() = "Memory of yours and the best, GiB";
  for (const auto& [name, bytes] : memory_terms({})) rows.front().push_back(name);
  rows.front().insert(rows.front().end(), {"sum", "usable"});
  if (host) rows.front().emplace_back("on the host");
  for (std::size_t s = 0; s < memories.size(); ++s) {
    const bool shown = memories.size() <= kMost || s < 4 || s + 4 >= memories.size() ||
                       s == mine.metrics.tightest_stage;
    if (!shown) continue;
    rows.push_back(memory_row(fmt::format("stage {}", s + 1), mine.plan, s, memories[s], host));
  }
  if (best != nullptr) {
    const std::size_t s = best->metrics.tightest_stage;
    rows.push_back(memory_row(fmt::format("best, stage {} (the fullest)", s + 1), best->plan, s,
                              best->metrics.tightest_memory, host));
  }
  return text_table(rows) + placeholders_note(mine.plan) + "\n";
}

std::string changes_text(const ConfigurationEvaluation& evaluation) {
  if (evaluation.changes.empty() || is_faster(evaluation)) return "";
  const Metrics& mine = evaluation.mine.candidate.metrics;
  const int dp = evaluation.mine.candidate.plan.parallel.dp;
  const bool dp_changes = std::any_of(
      evaluation.changes.begin(), evaluation.changes.end(),
      [&](const ConfigurationChange& change) { return change.after.parallel.dp != dp; });
  std::vector<std::vector<std::string>> rows = {
      {dp_changes ? "From yours to the best, one step at a time; dp takes up the rest"
                  : "From yours to the best, one change at a time",
       "s/iter", "change, s", "GiB", "fits"},
      {"yours", seconds(mine.iteration_time_s), "-",
       fmt::format("{:.1f}", mine.peak_memory_bytes / kGiB),
       evaluation.mine.fits() ? "yes" : "no"}};
  double before_s = mine.iteration_time_s;
  for (const ConfigurationChange& change : evaluation.changes) {
    rows.push_back({change.what, seconds(change.time_s),
                    part_text(change.time_s - before_s, mine.iteration_time_s),
                    fmt::format("{:.1f}", change.peak_memory_bytes / kGiB),
                    change.fits ? "yes" : "no"});
    before_s = change.time_s;
  }
  return text_table(rows) + "\n";
}

/// What a run costs with mine and with the best.
std::string run_text(const ConfigurationEvaluation& evaluation) {
  if (!evaluation.run) return "";
  const RunCosts& mine = *evaluation.run;
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("A run of {} {}", format_count(mine.tokens), mine.unit), "yours"}};
  for (const auto& [name, value] : run_figures(mine)) rows.push_back({name, value});
  if (evaluation.run_of_best) {
    rows.front().emplace_back("best");
    const auto best = run_figures(*evaluation.run_of_best);
    for (std::size_t r = 0; r < best.size(); ++r) rows[r + 1].push_back(best[r].second);
  }
  std::string text = text_table(rows);
  for (const std::string& assumption : mine.assumptions) text += "  " + assumption + "\n";
  return text + "\n";
}

}  // namespace

std::string evaluation_text(const ConfigurationEvaluation& evaluation) {
  const Metrics& mine = evaluation.mine.candidate.metrics;
  return heading_text(evaluation.mine.candidate.plan, evaluation.trainer_notes) +
         table_text(evaluation) + verdict(evaluation) + terms_text(evaluation) +
         memory_text(evaluation) + changes_text(evaluation) + run_text(evaluation) +
         titled_lines("How sure yours is, as 80 % intervals: four of five measurements lie within",
                      confidence_lines(evaluation.mine.candidate)) +
         fmt::format("No plan at all takes less than {} s ({}), {:.1f} % of yours.\n",
                     bound_figures(evaluation.bound.time_s), evaluation.bound.binding,
                     100 * evaluation.bound.time_s / mine.iteration_time_s) +
         titled_lines("Not given, taken as:", evaluation.not_given) +
         titled_lines("Not known to braid, and left out:", evaluation.not_known) +
         titled_lines("Modelled otherwise, or not at all:", evaluation.not_modelled) +
         titled_lines("Assumed:", evaluation.assumptions);
}

}  // namespace braid
