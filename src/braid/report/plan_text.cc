#include "braid/report/plan_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/and_list.h"
#include "braid/base/counted.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/names.h"
#include "braid/report/bound_text.h"
#include "braid/report/confidence_text.h"
#include "braid/report/devices_text.h"
#include "braid/report/form_text.h"
#include "braid/report/heading.h"
#include "braid/report/plans_table.h"
#include "braid/report/recommendation_text.h"
#include "braid/report/sharding_text.h"
#include "braid/report/table.h"
#include "braid/report/terms.h"
#include "braid/system/links.h"

namespace braid {
namespace {

double gap_of(double time_s, double bound_s) { return time_s > 0 ? 1 - bound_s / time_s : 0; }

/// Is what the planner made least the simulated time, which tables have?
bool is_simulated_objective(const Outcome& outcome) {
  const double time_s = fastest_of(outcome).metrics.iteration_time_s;
  return outcome.objective >= time_s * kBelowTolerance &&
         outcome.objective <= time_s * kAboveTolerance;
}

std::string bar(double share) {
  const auto cells = std::lround(share * 40);
  std::string text;
  for (long i = 0; i < cells; ++i) text += "█";
  return text;
}

std::string shares_text(const std::vector<std::pair<std::string, double>>& parts, double whole,
                        const std::string& unit, double scale) {
  std::string text;
  for (const auto& [name, value] : parts) {
    const std::string figure = part_text(value / scale, whole / scale);
    if (is_zero(figure)) continue;
    text += fmt::format("  {:<26}{:>9} {}  {:>5.1f} %  {}\n", name, figure, unit,
                        100 * value / whole, bar(value / whole));
  }
  return text;
}

std::string time_text(const Plan& plan, const Metrics& m) {
  return fmt::format("{} ({} s)\n", time_heading(plan, m), four_figures(m.iteration_time_s)) +
         shares_text(time_terms(m), m.iteration_time_s, "s", 1);
}

std::string sureness_text(const Candidate& best) {
  const std::vector<std::string> lines = confidence_lines(best);
  if (lines.empty()) return "";
  return titled_lines("How sure that is, as 80 % intervals: four of five measurements lie within",
                      lines) +
         "\n";
}

}  // namespace

std::string placeholders_note(const Plan& plan) {
  if (!plan.trainer.does.gradient_placeholders) return "";
  return fmt::format(
      "weights: with a placeholder of each weight's shape, which {} hands on in place of its "
      "gradient\n",
      plan.trainer.name);
}

namespace {

std::string memory_text(const Plan& plan, const Metrics& m) {
  const Chip& chip = chip_at(plan.system, plan.stages[m.tightest_stage].devices.front());
  const MemoryBreakdown& memory = m.tightest_memory;
  std::string text = fmt::format(
      "Memory of the tightest stage, {} of {}, and % of usable ({:.1f} of {:.1f} GiB, {:.1f} GiB "
      "more kept free)\n",
      m.tightest_stage + 1, plan.stages.size(), memory.device_total() / kGiB,
      usable_bytes(chip) / kGiB, chip.reserved_bytes / kGiB);
  text += shares_text(memory_terms(memory), usable_bytes(chip), "GiB", kGiB);
  if (memory.host > 0) {
    text += fmt::format("  {:<26}{:>9} GiB\n", "on the host",
                        part_text(memory.host / kGiB, usable_bytes(chip) / kGiB));
  }
  return text + placeholders_note(plan);
}

/// How many layers of a stage run with each option, in order of first use.
std::string options_text(const Plan& plan, const Stage& stage) {
  std::vector<std::pair<std::string, int>> used;
  for (const Chunk& chunk : stage.chunks) {
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const std::string& name =
          options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])]
              .name;
      auto found = used.begin();
      while (found != used.end() && found->first != name) ++found;
      if (found == used.end()) found = used.insert(found, {name, 0});
      ++found->second;
    }
  }
  std::string text;
  for (const auto& [name, count] : used) {
    text += fmt::format("{}{}x {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

/// The layers of each chunk; of many chunks the first and the last.
std::string chunks_text(const Stage& stage) {
  constexpr std::size_t kMost = 12, kFirst = 8, kLast = 2;
  const std::size_t count = stage.chunks.size();
  std::string text;
  for (std::size_t c = 0; c < count; ++c) {
    if (!text.empty()) text += " | ";
    if (count > kMost && c == kFirst) {
      text += "…";
      c = count - kLast - 1;
    } else {
      text += ranges_text(stage.chunks[c].layers);
    }
  }
  return text;
}

/// Whether the chunks, those of one round after another, have the layers in the model's order.
bool is_in_model_order(const Plan& plan) {
  std::int32_t next = 0;
  for (std::size_t c = 0; c < plan.stages.front().chunks.size(); ++c) {
    for (const Stage& stage : plan.stages) {
      for (const std::int32_t layer : stage.chunks.at(c).layers) {
        if (layer != next++) return false;
      }
    }
  }
  return true;
}

/// The numbers, from 1, of the stages that each one hands over to; none where every stage hands
/// over to the next one alone.
std::vector<std::string> targets_of_stages(const Plan& plan) {
  std::vector<std::set<std::int32_t>> targets(plan.stages.size());
  for (const ChunkEdge& edge : chunk_edges(plan)) {
    targets[static_cast<std::size_t>(edge.source_stage)].insert(edge.target_stage + 1);
  }
  bool is_line = true;
  std::vector<std::string> texts;
  for (std::size_t s = 0; s < targets.size(); ++s) {
    is_line = is_line &&
              (s + 1 == targets.size() || targets[s] == std::set{static_cast<std::int32_t>(s) + 2});
    texts.push_back(targets[s].empty() ? "-" : fmt::format("{}", fmt::join(targets[s], ", ")));
  }
  return is_line ? std::vector<std::string>() : texts;
}

std::string stages_text(const Plan& plan) {
  const bool uniform = is_uniform(plan);
  if ((uniform && plan.stages.size() < 2) || plan.stages.size() > 64) return "";
  std::vector<std::vector<std::string>> rows = {{"stage", "layers", "devices"}};
  if (!uniform) rows[0].insert(rows[0].end(), {"DP", "TP", "CP", "MBS", "options"});
  const bool own_orders =
      std::any_of(plan.stages.begin(), plan.stages.end(),
                  [](const Stage& stage) { return !own_order_text(stage).empty(); });
  if (own_orders) rows[0].emplace_back("in flight");
  const std::vector<std::string> targets =
      uniform ? std::vector<std::string>() : targets_of_stages(plan);
  if (!targets.empty()) rows[0].insert(rows[0].begin() + 2, "hands over to");
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    std::size_t count = 0;
    for (const Chunk& chunk : plan.stages[s].chunks) count += chunk.layers.size();
    rows.push_back({fmt::format("{}", s + 1),
                    fmt::format("{}: {}", count, chunks_text(plan.stages[s])),
                    stage_devices_text(plan, s)});
    if (uniform) continue;
    if (!targets.empty()) rows.back().insert(rows.back().begin() + 2, targets[s]);
    const Parallelism form = form_of(plan, s);
    rows.back().insert(rows.back().end(),
                       {fmt::format("{}", form.dp),
                        fmt::format("{}{}", form.tp, form.sequence_parallel ? "sp" : ""),
                        fmt::format("{}", form.cp), fmt::format("{}", form.micro_batch),
                        options_text(plan, plan.stages[s])});
    if (!own_orders) continue;
    const std::optional<StageConfig>& own = plan.stages[s].own;
    if (own && !own->passes.empty()) {
      rows.back().push_back(
          fmt::format("{}: {}", most_in_flight(own->passes), passes_text(own->passes)));
    } else {
      rows.back().push_back(own && own->warm_up ? fmt::format("{}", *own->warm_up) : "-");
    }
  }
  return "Stages (layers numbered from 0 in model order)\n" + text_table(rows) +
         (own_orders ? "in flight: micro-batches that a stage has begun and not ended, at most\n"
                     : "") +
         (uniform && is_in_model_order(plan)
              ? fmt::format("As braid evaluate takes it: --pp {}{} --layout {}\n", plan.parallel.pp,
                            plan.parallel.vp > 1 ? fmt::format(" --vp {}", plan.parallel.vp) : "",
                            layout_text(layer_counts(plan)))
              : "");
}

std::string idle_text(const Outcome& outcome) {
  const Plan& plan = outcome.candidates.front().plan;
  const std::string unused = unused_text(plan);
  if (unused.empty()) return "";
  if (!outcome.any_device_count) return unused + "\n";
  if (!outcome.device_limit.empty()) {
    return fmt::format("{}: no plan {} has more\n", unused, outcome.device_limit);
  }
  const double gain = gain_of_fastest(outcome);
  return fmt::format("{}: no plan found on more is faster{} (--all-devices: on all)\n", unused,
                     gain > 0 ? fmt::format(" by more than {:.2g} %", 100 * gain) : "");
}

/// Of many ways to divide layers the first.
std::string sharding_paragraph(const Plan& plan) {
  constexpr std::size_t kMost = 12;
  const std::vector<std::string> lines = sharding_text(plan);
  if (lines.empty()) return "";
  std::string text = "Automatic sharding: how layers are sharded over tensor parallel ranks\n";
  for (std::size_t i = 0; i < std::min(kMost, lines.size()); ++i) text += "  " + lines[i] + "\n";
  if (lines.size() > kMost) {
    text += fmt::format("  and {} more: the plan's file (-o) has all\n", lines.size() - kMost);
  }
  return text + "\n";
}

std::string assumptions_text(const Outcome& outcome) {
  const std::string& provenance = outcome.candidates.front().plan.profile.provenance;
  std::string text =
      provenance == "estimated"
          ? "The times are estimated from the chip's figures, not measured. Assumed:\n"
          : "The times are those of the profile (" + provenance + "). Assumed:\n";
  for (const std::string& assumption : outcome.assumptions) text += "  " + assumption + "\n";
  return text;
}

}  // namespace

std::string ranges_text(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    if (!text.empty()) text += ",";
    text += j > i ? fmt::format("{}-{}", numbers[i], numbers[j]) : fmt::format("{}", numbers[i]);
    i = j + 1;
  }
  return text;
}

std::vector<PlanRow> rows_of(const Outcome& outcome) {
  std::vector<PlanRow> rows;
  if (outcome.candidates.empty()) return rows;
  const bool labels = outcome.candidates.size() > 1 && outcome.recommendation &&
                      outcome.recommendation->fastest.has_value();
  const double least_s = fastest_of(outcome).metrics.iteration_time_s;
  for (const Candidate& candidate : outcome.candidates) {
    rows.push_back({.candidate = &candidate});
    if (labels && rows.size() == 1) rows.back().label = "recommended";
    if (labels && rows.size() > 1 && candidate.metrics.iteration_time_s == least_s) {
      rows.back().label = "fastest";
    }
    // A search for another objective bounds that.
    if (outcome.search_bound_s <= 0 || !is_simulated_objective(outcome)) continue;
    rows.back().gap =
        std::max(0.0, gap_of(candidate.metrics.iteration_time_s, outcome.search_bound_s));
  }
  return rows;
}

std::string plans_table(const Outcome& outcome) { return plans_table(rows_of(outcome)); }

namespace {

/// What the planner made least, where that is not the simulated time that the table has.
std::string objective_text(const Outcome& outcome) {
  if (is_simulated_objective(outcome) && outcome.own_times.empty()) return "";
  std::string text =
      fmt::format("Own objective: {:.6g}, {}", outcome.objective, outcome.objective_name);
  for (const OwnTime& each : outcome.own_times) {
    text += fmt::format("; {} {:.6g} s", each.words, each.time_s);
  }
  return text + ".\n";
}

std::string space_text(const Outcome& outcome) {
  return outcome.space.empty() ? "" : " That space: " + outcome.space + ".";
}

/// How sure it is that the fastest plan is that.
std::string search_text(const Outcome& outcome) {
  const bool of_first = !outcome.recommendation || !outcome.recommendation->fastest;
  if (outcome.status == Status::optimal) {
    const bool leaves_out = outcome.assignments_bound_s > 0;
    std::string text =
        fmt::format("{}{} {} ({}, {} timed).", of_first ? "Proven" : "The fastest is proven",
                    leaves_out ? " within the searched space: no plan of it"
                               : ": no plan of the searched space",
                    is_simulated_objective(outcome)
                        ? "is faster"
                        : "has less of its own objective, which is not the time above",
                    counted(outcome.work, "bound"), counted(outcome.evaluated, "plan"));
    text += space_text(outcome);
    if (leaves_out) {
      text += fmt::format(
          " Other ways to deal layers out may be faster; by the times that layers are estimated to "
          "take, none takes less than {} s.",
          bound_figures(outcome.assignments_bound_s));
    }
    return text + "\n";
  }
  if (outcome.search_bound_s > 0) {
    return fmt::format(
        "{} proven best: the searched space may hold one of {} s, {:.2g} % less ({}, {} "
        "timed).{}\n",
        of_first ? "Not" : "The fastest is not", bound_figures(outcome.search_bound_s),
        100 * gap_of(outcome.objective, outcome.search_bound_s), counted(outcome.work, "bound"),
        counted(outcome.evaluated, "plan"), space_text(outcome));
  }
  if (outcome.evaluated > 1) {
    return fmt::format("{} proven best: the best of the {} plans that were timed.\n",
                       of_first ? "Not" : "The fastest is not", outcome.evaluated);
  }
  return "Taken by rule, without a search.\n";
}

}  // namespace

std::string proof_text(const Outcome& outcome) {
  return objective_text(outcome) + search_text(outcome);
}

std::string plan_text(const Outcome& outcome) {
  const Candidate& best = outcome.candidates.front();
  const Plan& plan = best.plan;
  std::string text = heading_text(plan, outcome.trainer_notes);
  text += plans_table(outcome) + "\n";
  text += time_text(plan, best.metrics) + "\n";
  text += sureness_text(best);
  text += memory_text(plan, best.metrics) + "\n";
  const std::string stages = stages_text(plan) + idle_text(outcome);
  if (!stages.empty()) text += stages + "\n";
  text += sharding_paragraph(plan);
  const LowerBound& bound = outcome.physical_bound;
  text += fmt::format("No plan at all takes less than {} s ({}), {:.1f} % of this one's time.\n",
                      bound_figures(bound.time_s), bound.binding,
                      100 * bound.time_s / best.metrics.iteration_time_s);
  text += recommendation_text(outcome) + not_told_apart_text(outcome.candidates) +
          proof_text(outcome) + "\n";
  return text + assumptions_text(outcome);
}

namespace {

/// What a configuration keeps on the host, as one more word of a list.
std::string on_host_text(const Parallelism& p) {
  const std::string marks = std::string(p.offload_optimizer ? "+opt" : "") +
                            (p.offload_activations ? "+act" : "") + (p.offload_weights ? "+w" : "");
  return marks.empty() ? "" : ", " + offload_words(marks) + " in host memory";
}

}  // namespace

std::string infeasibility_text(const Outcome& outcome) {
  if (!outcome.infeasibility) return "none was found within the budget";
  const Infeasibility& why = *outcome.infeasibility;
  if (why.stage < 0) return why.reason;
  const Parallelism& p = why.parallel;
  // What a search did not come to may fit.
  const std::string reason = outcome.status == Status::budget_exhausted
                                 ? "none was found within the budget; a larger one may find some"
                                 : why.reason;
  const double missing_bytes = why.needed_bytes - why.available_bytes;
  const double missing_host_bytes = why.host_needed_bytes - why.host_available_bytes;
  std::vector<std::string> lacks;
  if (missing_bytes > 0) {
    lacks.push_back(fmt::format("needs {} in stage {}, and a device has {} usable: {} short",
                                format_bytes(why.needed_bytes), why.stage + 1,
                                format_bytes(why.available_bytes), format_bytes(missing_bytes)));
  }
  if (missing_host_bytes > 0) {
    lacks.push_back(
        fmt::format("keeps {} of a device in host memory, which has {} for each: {} short",
                    format_bytes(why.host_needed_bytes), format_bytes(why.host_available_bytes),
                    format_bytes(missing_host_bytes)));
  }
  return fmt::format(
      "{}: the nearest of those tried (tp {}, pp {}, cp {}, {}dp {}, micro-batch {}, recompute {}, "
      "ZeRO {}{}) {}",
      reason, p.tp, p.pp, p.cp, p.ep > 1 ? fmt::format("ep {}, ", p.ep) : "", p.dp, p.micro_batch,
      name_of(p.recompute), name_of(p.zero), on_host_text(p), and_list(lacks, "; it also "));
}

}  // namespace braid
