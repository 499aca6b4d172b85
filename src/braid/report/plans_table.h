#pragma once

#include <optional>
#include <span>
#include <string>

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

/// Plans as rows in the columns that the field uses, and under them what the marks in the cells
/// stand for ("sp: sequence parallelism"). There is at least one.
std::string plans_table(std::span<const PlanRow> rows);

}  // namespace braid
