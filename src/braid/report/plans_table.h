#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"

namespace braid {

/// A plan in a table.
struct PlanRow {
  const Candidate* candidate = nullptr;
  std::string label = {};  ///< "yours"; where all are empty, the table has no such column.
  /// How far at most the best plan of the space that was searched is below this one, as a share of
  /// this one's time; where no row has one, the table has no such column.
  std::optional<double> gap = std::nullopt;
};

/// The titles of the columns, and below them the cells of each row.
std::vector<std::vector<std::string>> plan_cells(std::span<const PlanRow> rows);

/// FormText::offload in words: "+opt+w" as "optimizer state and weights".
std::string offload_words(const std::string& offload);

/// What marks may stand in of what is said of a plan; see FormText.
struct MarkedForm {
  std::string tp, ep, offload;
  std::string schedule;  ///< Empty where it is not said.
};

/// What the marks stand for, those that occur ("sp: with sequence parallelism; …"), and a line's
/// end; or nothing. `gaps`: there is a column of them.
std::string marks_legend(std::span<const MarkedForm> forms, bool gaps);

/// The same of the cells of plans. `schedules`: the table says them.
std::string marks_legend(std::span<const PlanRow> rows, bool schedules = true);

/// Whether anything is known of the devices' arithmetic, which profiles alone say nothing of:
/// without, there are no formats and no shares of a peak.
bool knows_arithmetic(const System& system);

/// Plans as rows in the columns that the field uses, and under them what the marks in the cells
/// stand for ("sp: sequence parallelism"). There is at least one.
std::string plans_table(std::span<const PlanRow> rows);

}  // namespace braid
