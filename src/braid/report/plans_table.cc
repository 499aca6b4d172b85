#include "braid/report/plans_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/and_list.h"
#include "braid/base/quantity.h"
#include "braid/plan/names.h"
#include "braid/report/form_text.h"
#include "braid/report/table.h"

namespace braid {
namespace {

/// Marks of what is in host memory, and what they stand for.
constexpr std::pair<std::string_view, std::string_view> kOffloads[] = {
    {"+opt", "optimizer state"}, {"+act", "activations"}, {"+w", "weights"}};

constexpr const char* kNotKnown = "-";

struct Cell {
  std::string title;
  std::string text;
  /// Of what models without sequences mostly have no choice of.
  bool of_sequences = false;
};

/// What people call the devices, where they are of one kind.
std::string device_word(const System& system) {
  const ChipKind kind = system.groups.front().chip.kind;
  const bool alike =
      std::all_of(system.groups.begin(), system.groups.end(),
                  [kind](const DeviceGroup& group) { return group.chip.kind == kind; });
  if (!alike || kind == ChipKind::other) return "chip";
  return kind == ChipKind::gpu ? "GPU" : "TPU";
}

/// A row's cells, the column of the label first and that of the gap last.
std::vector<Cell> cells_of(const PlanRow& row) {
  const Plan& plan = row.candidate->plan;
  const Metrics& m = row.candidate->metrics;
  const FormText form = form_text(plan);
  const auto devices = static_cast<double>(devices_used(plan));
  const std::string word = device_word(plan.system);
  const bool arithmetic = knows_arithmetic(plan.system);
  const auto known = [arithmetic](std::string text) {
    return arithmetic ? std::move(text) : kNotKnown;
  };
  return {
      {"", row.label},
      {word + "s", fmt::format("{}", devices_used(plan))},
      {"prec", known(name_of(plan.precision))},
      {"GBS", fmt::format("{}", plan.global_batch)},
      {"MBS", form.micro_batch},
      {"seq", plan.seq_len > 0 ? fmt::format("{}", plan.seq_len) : "-", true},
      {"TP", form.tp, true},
      {"PP", fmt::format("{}", plan.parallel.pp)},
      {"CP", form.cp, true},
      {"VP", fmt::format("{}", plan.parallel.vp), true},
      {"EP", form.ep, true},
      {"DP", form.dp},
      {"schedule", schedule_text(plan)},
      {"recompute", form.offload.empty() ? form.recompute : form.recompute + " off" + form.offload},
      {"ZeRO", form.zero},
      {"s/iter", four_figures(m.iteration_time_s)},
      {(plan.seq_len > 0 ? "tok/s/" : "samples/s/") + word,
       fmt::format("{:.0f}", m.tokens_per_s / devices)},
      {"TFLOP/s", known(fmt::format("{:.1f}", m.model_flops_per_s_per_device / 1e12))},
      {"MFU", known(fmt::format("{:.1f} %", 100 * m.mfu))},
      {"GiB", fmt::format("{:.1f}", m.peak_memory_bytes / kGiB)},
      {"gap", row.gap ? fmt::format("{:.2f} %", 100 * *row.gap) : "-"}};
}

bool is_unknown(const std::vector<std::vector<Cell>>& cells, std::size_t column) {
  return std::all_of(cells.begin(), cells.end(),
                     [&](const std::vector<Cell>& row) { return row[column].text == kNotKnown; });
}

/// Whether the column is 1 in every row.
bool says_nothing(const std::vector<std::vector<Cell>>& cells, std::size_t column) {
  return std::all_of(cells.begin(), cells.end(), [&](const std::vector<Cell>& row) {
    return row[column].text == "1" || row[column].text == "-";
  });
}

}  // namespace

std::string offload_words(const std::string& offload) {
  std::vector<std::string> kept;
  for (const auto& [mark, words] : kOffloads) {
    if (offload.find(mark) != std::string::npos) kept.emplace_back(words);
  }
  return and_list(kept);
}

bool knows_arithmetic(const System& system) {
  return std::none_of(system.groups.begin(), system.groups.end(),
                      [](const DeviceGroup& group) { return group.chip.peaks.empty(); });
}

std::string marks_legend(std::span<const MarkedForm> forms, bool gaps) {
  std::vector<std::string> marks;
  const auto add_if = [&](bool occurs, std::string mark) {
    if (occurs) marks.push_back(std::move(mark));
  };
  const auto any = [&](const auto& holds) {
    return std::any_of(forms.begin(), forms.end(), holds);
  };
  add_if(any([](const MarkedForm& form) { return form.tp.ends_with("sp"); }),
         "sp: with sequence parallelism");
  add_if(any([](const MarkedForm& form) { return form.ep.ends_with("whole"); }),
         "whole: tensor parallel ranks do not divide experts");
  add_if(any([](const MarkedForm& form) { return form.schedule.ends_with("+"); }),
         "1f1b+: with more micro-batches in flight than 1F1B has, which hides transfers");
  std::string kept;
  for (const auto& offload : kOffloads) {
    const bool occurs = any([&](const MarkedForm& form) {
      return form.offload.find(offload.first) != std::string::npos;
    });
    if (!occurs) continue;
    kept += fmt::format("{}{}: {}", kept.empty() ? "off" : ", ", offload.first, offload.second);
  }
  add_if(!kept.empty(), kept + " in host memory");
  add_if(gaps, "gap: how much less time a plan of the searched space may still take");
  std::string text;
  for (const std::string& mark : marks) text += (text.empty() ? "" : "; ") + mark;
  return text.empty() ? "" : text + "\n";
}

std::string marks_legend(std::span<const PlanRow> rows, bool schedules) {
  std::vector<MarkedForm> forms;
  for (const PlanRow& row : rows) {
    const Plan& plan = row.candidate->plan;
    FormText form = form_text(plan);
    forms.push_back({std::move(form.tp), std::move(form.ep), std::move(form.offload),
                     schedules ? schedule_text(plan) : ""});
  }
  return marks_legend(forms, std::any_of(rows.begin(), rows.end(),
                                         [](const PlanRow& row) { return row.gap.has_value(); }));
}

std::vector<std::vector<std::string>> plan_cells(std::span<const PlanRow> rows) {
  const bool labels =
      std::any_of(rows.begin(), rows.end(), [](const PlanRow& row) { return !row.label.empty(); });
  const bool gaps =
      std::any_of(rows.begin(), rows.end(), [](const PlanRow& row) { return row.gap.has_value(); });
  const bool any_sequence = std::any_of(
      rows.begin(), rows.end(), [](const PlanRow& row) { return row.candidate->plan.seq_len > 0; });
  std::vector<std::vector<Cell>> cells;
  for (const PlanRow& row : rows) cells.push_back(cells_of(row));
  const std::size_t first = labels ? 0 : 1;
  const std::size_t last = cells.front().size() - (gaps ? 0 : 1);
  std::vector<std::vector<std::string>> table(rows.size() + 1);
  for (std::size_t c = first; c < last; ++c) {
    const Cell& title = cells.front()[c];
    if (title.of_sequences && !any_sequence && says_nothing(cells, c)) continue;
    if (c > 0 && !title.of_sequences && is_unknown(cells, c)) continue;
    table.front().push_back(title.title);
    for (std::size_t r = 0; r < rows.size(); ++r) table[r + 1].push_back(cells[r][c].text);
  }
  return table;
}

std::string plans_table(std::span<const PlanRow> rows) {
  return text_table(plan_cells(rows)) + marks_legend(rows);
}

}  // namespace braid
