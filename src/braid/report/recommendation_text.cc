#include "braid/report/recommendation_text.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantity.h"
#include "braid/report/form_text.h"
#include "braid/report/plans_table.h"

namespace braid {
namespace {

/// In what a plan is easier, by what counts most.
std::string reason_text(const Ease& ease, const Ease& other) {
  if (ease.offload != other.offload) return "it keeps nothing in host memory";
  if (ease.dimensions != other.dimensions) {
    return fmt::format("only {} of TP, CP, EP and PP {} above 1, {} in the fastest",
                       ease.dimensions, ease.dimensions == 1 ? "is" : "are", other.dimensions);
  }
  if (ease.own_layout != other.own_layout)
    return "its layers and devices lie as trainers put them by themselves";
  return "its micro-batches and chunks are of usual size and number";
}

/// "TP 2sp, CP 4, PP 4, VP 7, DP 2, MBS 1, off+opt": degrees of 1 are left out.
std::string degrees_text(const Plan& plan) {
  const FormText form = form_text(plan);
  std::vector<std::string> parts;
  for (const auto& [name, degree] : {std::pair{"TP", form.tp},
                                     {"CP", form.cp},
                                     {"PP", std::to_string(plan.parallel.pp)},
                                     {"VP", std::to_string(plan.parallel.vp)},
                                     {"EP", form.ep},
                                     {"DP", form.dp}}) {
    if (degree != "1") parts.push_back(fmt::format("{} {}", name, degree));
  }
  parts.push_back("MBS " + form.micro_batch);
  if (form.recompute != "none") parts.push_back("recompute " + form.recompute);
  if (!form.offload.empty()) parts.push_back("off" + form.offload);
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What the best without offload takes beside a plan with.
std::string without_text(double without_s, double with_s, bool of_all) {
  if (!std::isfinite(without_s)) {
    return of_all ? "Nothing fits without offload.\n" : "No plan without offload was found.\n";
  }
  const double more = 100 * (without_s / with_s - 1);
  return fmt::format("Without offload the fastest{} takes {} s, {} % more.\n",
                     of_all ? "" : " that was found", four_figures(without_s),
                     more < 99.5 ? fmt::format("{:.2g}", more) : fmt::format("{:.0f}", more));
}

/// How long the fastest takes, where another is recommended.
std::string fastest_text(const Outcome& outcome, const Candidate& fastest) {
  const std::string time = four_figures(fastest.metrics.iteration_time_s);
  const bool looks_alike =
      time == four_figures(outcome.candidates.front().metrics.iteration_time_s);
  const std::string with = degrees_text(fastest.plan);
  if (looks_alike) {
    return fmt::format("To four figures the fastest, with {}, takes no less: --fastest gives that.",
                       with);
  }
  return fmt::format("The fastest takes {} s, {:.2g} % less, with {}: --fastest gives that.", time,
                     100 * gain_of_fastest(outcome), with);
}

}  // namespace

std::string offload_text(const Plan& plan) {
  const std::string offload = form_text(plan).offload;
  return offload.empty() ? "" : offload_words(offload) + " in host memory";
}

double gain_of_fastest(const Outcome& outcome) {
  return 1 - fastest_of(outcome).metrics.iteration_time_s /
                 outcome.candidates.front().metrics.iteration_time_s;
}

std::string recommendation_text(const Outcome& outcome) {
  if (outcome.candidates.empty()) return "";
  const Candidate& first = outcome.candidates.front();
  std::string text;
  if (outcome.recommendation) {
    const Recommendation& why = *outcome.recommendation;
    if (why.fastest) {
      text += fmt::format("Recommended as the easiest to run of {} nearly as fast: {}. {}\n",
                          why.of_all ? "all plans that are" : "the tried plans that are",
                          reason_text(why.ease, why.ease_of_fastest),
                          fastest_text(outcome, *why.fastest));
    }
    if (why.ease.offload && why.without_offload_s) {
      return text +
             without_text(*why.without_offload_s, first.metrics.iteration_time_s, why.of_all);
    }
  }
  const std::string kept = offload_text(first.plan);
  if (kept.empty()) return text;
  return text + fmt::format("This plan keeps {}: --no-offload plans without.\n", kept);
}

}  // namespace braid
